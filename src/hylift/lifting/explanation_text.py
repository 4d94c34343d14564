"""An explanation as text: tables and sentences, for a terminal and for `str`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hylift.words import TextTable, counted, listed, num_classes

if TYPE_CHECKING:
    from hylift.lifting.explanation import Explanation

WIDTH = 80

WORTHWHILE = 1.2
"""Speed-up of a step from which lifting is said to help: less hardly pays for its own cost."""


def plain_text(explanation: Explanation) -> str:
    """Sizes, largest classes, effects of evidence, and conclusions."""
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
        (what, f"{before:,}", f"{after:,}", _ratio(before / after if after else 1.0))
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
    """The number of variables without a look-alike."""
    count, total = explanation.num_alone, explanation.ground.num_variables
    if not count:
        return "No variable is alone in its class."
    verb = "is alone in its" if count == 1 else "are alone in their"
    return f"{count:,} of {counted(total, 'variable')} {verb} class."


def evidence_title(explanation: Explanation) -> str:
    """The title of the table of evidence."""
    return (
        f"What evidence does to the {num_classes(explanation.lifted.num_variables)} of the "
        f"{counted(explanation.ground.num_variables, 'hidden variable')}:"
    )


def evidence(explanation: Explanation) -> TextTable:
    """Per predicate with evidence, what it broke; measured."""
    effects = explanation.effects
    columns: list[tuple[str, list[int | None]]] = [
        ("observed", [effect.num_observed for effect in effects]),
        ("measured", [effect.num_measured or None for effect in effects]),
        ("without it", [effect.num_without for effect in effects]),
        ("broken by it", [effect.num_broken for effect in effects]),
        ("if its values agreed", [effect.num_alike for effect in effects]),
    ]
    columns = [column for column in columns if any(number is not None for number in column[1])]
    names = [effect.predicate or "all of these" for effect in effects]
    texts = (["" if n is None else f"{n:,}" for n in numbers] for _, numbers in columns)
    header = ("evidence on", *(title for title, _ in columns))
    return TextTable(header, tuple(zip(names, *texts, strict=True)), (1, 2, 3, 4, 5))


def verdict(explanation: Explanation) -> list[str]:
    """The expected speed-up, its reasons, and possible remedies."""
    e = explanation
    if not e.ground.num_variables:
        return [
            "All variables are observed: there is nothing to lift."
            if e.has_evidence
            else "The model has no variables."
        ]
    lines = [_expectation(e)]
    if not e.is_exact:
        measured = "What evidence did to symmetry is measured for exact liftings."
        return [*lines, measured, *_rewrites(e)]
    return [*lines, *_cost(e), *_reason(e), *_remedy(e), *_rewrites(e)]


def _rewrites(e: Explanation) -> list[str]:
    """The rewrites that inference begins with."""
    return [f"Rewritten before inference, {name}: {what}." for name, what in e.rewrites.items()]


def _expectation(e: Explanation) -> str:
    if e.helps:
        return (
            "A step of variational inference on the lifted graph should be about "
            f"{_ratio(e.speed_up)} times as fast: an estimate, the ratio of grid points."
        )
    return (
        "Lifting does not help here: by its grid points a step of variational inference would be "
        f"{e.speed_up:.2f} times as fast, and less than {WORTHWHILE:g} does not pay for finding "
        "the classes."
    )


def _cost(e: Explanation) -> list[str]:
    """The reason why steps are no faster although variables merge."""
    ground, lifted = e.ground, e.lifted
    if e.helps or not _fewer(lifted.num_variables, ground.num_variables):
        return []
    merged = f"{ground.num_variables:,} into {num_classes(lifted.num_variables)}"
    if _fewer(lifted.num_joint_points, ground.num_joint_points):
        return [f"Variables merge, {merged}, but not those that cost most."]
    share = ground.num_joint_points / ground.num_grid_points
    return [
        f"Variables merge, {merged}, but {share:.0%} of the grid points are of factors with "
        "several variables, and few of these merge."
    ]


def _reason(e: Explanation) -> list[str]:
    """The reason for the number of classes, where there is something to say."""
    hidden, rest = e.ground.num_variables, e.num_without_evidence
    assert rest is not None
    if not e.helps and not _fewer(rest, hidden):
        still = "without any evidence there are still " if e.has_evidence else ""
        return [
            "The model itself has hardly any look-alike variables: "
            f"{still}{num_classes(rest)} of {counted(hidden, 'variable')}."
        ]
    return _blame(e) if e.effects else []


def _blame(e: Explanation) -> list[str]:
    """The evidence that breaks symmetry."""
    *single, together = e.effects
    classes = e.lifted.num_variables
    if together.num_broken <= 0:
        return [("All in all the" if single else "The") + " evidence breaks no symmetry."]
    if not single:
        return [
            f"The evidence on {together.predicate} breaks symmetry: without it "
            f"{_instead(together.num_without, classes)}."
        ]
    most = single[0].num_broken
    if most <= 0 or not _fewer(single[0].num_without, classes):
        return [
            "Evidence on several predicates breaks symmetry: without any "
            f"{_instead(together.num_without, classes)}; without that on a single predicate "
            f"there would still be {single[0].num_without:,} or more."
        ]
    names = [str(effect.predicate) for effect in single if effect.num_broken == most]
    if len(names) == 1:
        return [
            f"Of all predicates, the evidence on {names[0]} breaks most symmetry: without it "
            f"{_instead(single[0].num_without, classes)}."
        ]
    return [
        f"The evidence on {listed(names)} breaks most symmetry, on each of them as much: without "
        f"that on one of them {_instead(single[0].num_without, classes)}."
    ]


def _instead(without: int, classes: int) -> str:
    return f"there would be {num_classes(without)}, not {classes:,}"


def _remedy(e: Explanation) -> list[str]:
    """Advice on coarse-to-fine lifting."""
    classes, coarsest, rest = e.lifted.num_variables, e.num_coarsest, e.num_without_evidence
    if coarsest is None or rest is None or not _fewer(rest, classes):
        return []
    if not _fewer(coarsest, classes):
        return [
            "It is broken by who is observed, not by the values: coarse-to-fine lifting does not "
            f"help, it would begin with {num_classes(coarsest)}."
        ]
    how_much = "Most" if 2 * (classes - coarsest) > classes - rest else "Part"
    return [
        f"{how_much} of it is broken by values that differ, not by who is observed: coarse-to-fine "
        "lifting, which takes the values of a predicate for one at first, begins with "
        f"{num_classes(coarsest)}."
    ]


def _fewer(count: int, than: int) -> bool:
    """True if the difference is worth mentioning."""
    return count * WORTHWHILE <= than


def _ratio(number: float) -> str:
    """A ratio with two or three significant digits."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 2 else f"{number:.2f}"


def _fitting(examples: tuple[str, ...], total: int, room: int) -> str:
    """As many examples as fit, at least one, with dots where there are more."""
    for count in range(len(examples), 0, -1):
        words = ", ".join(examples[:count]) + (", …" if count < total else "")
        if len(words) <= room:
            return words
    return examples[0] + (", …" if total > 1 else "")
