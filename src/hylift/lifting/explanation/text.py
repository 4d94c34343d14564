"""An explanation in words: tables and sentences, for a terminal and for `str`."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hylift.lifting.explanation.cost import WORTHWHILE

if TYPE_CHECKING:
    from hylift.lifting.explanation.explain import Explanation

WIDTH = 80


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of words; `right` says which columns are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                word.rjust(width) if place in self.right else word.ljust(width)
                for place, (word, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def plain_text(explanation: Explanation) -> str:
    """Sizes, classes, what evidence did, and what follows."""
    blocks = [str(sizes(explanation))]
    if explanation.largest:
        blocks.append(f"The largest classes:\n{largest(explanation)}\n{alone(explanation)}")
    if explanation.effects:
        blocks.append(f"{evidence_title(explanation)}\n{evidence(explanation)}")
    lines = verdict(explanation)
    blocks.append("\n".join(textwrap.fill(x, WIDTH, break_on_hyphens=False) for x in lines))
    return "\n\n".join(blocks)


def sizes(explanation: Explanation) -> TextTable:
    """Ground and lifted graph side by side."""
    ground, lifted = explanation.ground, explanation.lifted
    pairs = {
        "variables": (ground.num_variables, lifted.num_variables),
        "factors": (ground.num_factors, lifted.num_factors),
        "grid points per step": (ground.num_grid_points, lifted.num_grid_points),
    }
    rows = tuple(
        (what, f"{before:,}", f"{after:,}", _ratio(before / max(after, 1)))
        for what, (before, after) in pairs.items()
    )
    return TextTable(("", "ground", "lifted", "ratio"), rows, (1, 2, 3))


def largest(explanation: Explanation) -> TextTable:
    """The largest classes: how many of each size, and as many examples as fit a line."""
    header = ("predicate", "classes", "size")
    begins = [
        (one.predicate, f"{one.num_classes:,}", f"{one.num_variables:,}")
        for one in explanation.largest
    ]
    used = sum(max(map(len, column)) + 2 for column in zip(header, *begins, strict=True))
    rows = tuple(
        (*begin, _fitting(one.examples, one.num_variables, WIDTH - used))
        for begin, one in zip(begins, explanation.largest, strict=True)
    )
    return TextTable((*header, "such as"), rows, (1, 2))


def alone(explanation: Explanation) -> str:
    """How many variables have no look-alike."""
    count, total = explanation.num_alone, explanation.ground.num_variables
    if not count:
        return "No variable is alone in its class."
    verb = "is alone in its" if count == 1 else "are alone in their"
    return f"{count:,} of {total:,} variables {verb} class."


def evidence_title(explanation: Explanation) -> str:
    """What the numbers of `evidence` are about."""
    return (
        f"What evidence does to the {explanation.lifted.num_variables:,} classes of the "
        f"{explanation.ground.num_variables:,} hidden variables:"
    )


def evidence(explanation: Explanation) -> TextTable:
    """Per predicate with evidence, what it broke; measured."""
    header = ("evidence on", "observed", "without it", "broken by it")
    with_reals = any(effect.num_alike is not None for effect in explanation.effects)
    rows = []
    for effect in explanation.effects:
        numbers = (effect.num_observed, effect.num_without, effect.num_broken)
        row = (effect.predicate or "all of these", *(f"{number:,}" for number in numbers))
        alike = "" if effect.num_alike is None else f"{effect.num_alike:,}"
        rows.append((*row, alike) if with_reals else row)
    return TextTable(
        (*header, "if its values agreed") if with_reals else header, tuple(rows), (1, 2, 3, 4)
    )


def verdict(explanation: Explanation) -> list[str]:
    """What to expect, why, and what can be done."""
    e = explanation
    if not e.ground.num_variables:
        return ["All variables are observed: there is nothing to lift."]
    lines = [_expectation(e)]
    if not e.is_exact:
        return [*lines, "What evidence did to symmetry is measured for exact liftings."]
    lines += _reason(e)
    lines += _remedy(e)
    return lines


def _expectation(e: Explanation) -> str:
    if e.helps:
        return (
            f"A step should be about {_ratio(e.speed_up)} times as fast: an estimate, "
            "the ratio of grid points."
        )
    return (
        f"Lifting does not help here: by its grid points a step would be {e.speed_up:.2f} times as "
        f"fast, and less than {WORTHWHILE:g} does not pay for finding the classes."
    )


def _reason(e: Explanation) -> list[str]:
    """Why there are as many classes as there are, where there is something to say."""
    classes, hidden = e.lifted.num_variables, e.ground.num_variables
    rest = e.num_without_evidence
    assert rest is not None
    if not e.helps and not _fewer(rest, hidden):
        still = "" if not e.num_observed else "without any evidence there are still "
        return [
            "The model itself has hardly any look-alike variables: "
            f"{still}{rest:,} classes of {hidden:,} variables."
        ]
    if not e.effects:
        return []
    together, first = e.effects[-1], e.effects[0]
    if together.num_broken <= 0:
        return ["The evidence breaks no symmetry."]
    if _fewer(first.num_without, classes) or len(e.effects) == 1:
        return [
            f"Most symmetry is broken by the evidence on {first.predicate}: "
            f"without it there would be {_classes(first.num_without)}."
        ]
    return [
        f"Evidence on several predicates breaks symmetry, each enough by itself: "
        f"without any there would be {_classes(rest)}."
    ]


def _remedy(e: Explanation) -> list[str]:
    """Whether coarse-to-fine lifting has something to gain."""
    classes, coarsest, rest = e.lifted.num_variables, e.num_coarsest, e.num_without_evidence
    if coarsest is None or rest is None or not _fewer(rest, classes):
        return []
    if not _fewer(coarsest, classes):
        return [
            "It is broken by who is observed, not by the values: coarse-to-fine lifting does not "
            f"help, it would begin with {_classes(coarsest)}."
        ]
    how_much = "Most" if 2 * (classes - coarsest) >= classes - rest else "Part"
    return [
        f"{how_much} of it is broken by values that differ, not by who is observed: coarse-to-fine "
        "lifting, which takes the values of a predicate for one at first, begins with "
        f"{_classes(coarsest)}."
    ]


def _fewer(count: int, than: int) -> bool:
    """Whether the difference is worth speaking of."""
    return count * WORTHWHILE <= than


def _classes(count: int) -> str:
    return "1 class" if count == 1 else f"{count:,} classes"


def _ratio(number: float) -> str:
    """Two digits, and no more than there is to know."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 2 else f"{number:.2f}"


def _fitting(examples: tuple[str, ...], total: int, room: int) -> str:
    """As many examples as fit, at least one, with dots where there are more."""
    for count in range(len(examples), 0, -1):
        words = ", ".join(examples[:count]) + (", …" if count < total else "")
        if len(words) <= room:
            return words
    return examples[0] + (", …" if total > 1 else "")
