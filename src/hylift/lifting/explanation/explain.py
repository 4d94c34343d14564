"""What a lifting saved, and what stood against it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.lifting.explanation.cost import WORTHWHILE, Size
from hylift.lifting.explanation.symmetry import EvidenceEffect, evidence_effects
from hylift.lifting.explanation.text import plain_text
from hylift.lifting.lift import Lifting
from hylift.lifting.predicates import Predicates
from hylift.progress import Progress, silent
from hylift.words import counted, num_classes

MAX_LARGEST = 8
MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LargeClasses:
    """Classes of one predicate with equally many variables, more than one."""

    predicate: str
    num_classes: int
    num_variables: int
    """Of each class."""
    examples: tuple[str, ...]
    """Variables of the first of these classes."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sizes before and after, the largest classes, and what evidence did to symmetry.

    `print(explanation)` shows it as a text, `to_dict()` is for JSON.
    """

    ground: Size
    """Of the hidden variables."""
    lifted: Size
    largest: tuple[LargeClasses, ...]
    """Largest first, at most eight."""
    num_alone: int
    """Variables that are alone in their class."""
    is_exact: bool
    num_observed: int
    num_measured: int
    """Variables that were measured with an error, and stay hidden."""
    effects: tuple[EvidenceEffect, ...]
    """Per predicate with evidence, the one that breaks most symmetry first, and of all evidence
    where there are several. Not measured for coarse liftings."""

    @property
    def speed_up(self) -> float:
        """How many times fewer grid points a step visits: an estimate of the time it takes."""
        points = self.lifted.num_grid_points
        return self.ground.num_grid_points / points if points else 1.0

    @property
    def helps(self) -> bool:
        """Whether the speed-up is worth finding the classes."""
        return self.speed_up >= WORTHWHILE

    @property
    def has_evidence(self) -> bool:
        return self.num_observed + self.num_measured > 0

    @property
    def num_without_evidence(self) -> int | None:
        """Classes of the hidden variables if nothing had been observed; None if not measured."""
        if not self.has_evidence:
            return self.lifted.num_variables if self.is_exact else None
        return self.effects[-1].num_without if self.effects else None

    @property
    def num_coarsest(self) -> int | None:
        """Classes of the first level of coarse-to-fine lifting; None without real evidence."""
        return self.effects[-1].num_alike if self.effects else None

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, dictionaries and numbers."""
        return {
            "ground": asdict(self.ground),
            "lifted": asdict(self.lifted),
            "speed_up": self.speed_up,
            "helps": self.helps,
            "is_exact": self.is_exact,
            "largest": [asdict(one) | {"examples": list(one.examples)} for one in self.largest],
            "num_alone": self.num_alone,
            "num_observed": self.num_observed,
            "num_measured": self.num_measured,
            "evidence": [asdict(effect) for effect in self.effects],
        }

    def __str__(self) -> str:
        return plain_text(self)

    def __repr__(self) -> str:
        return (
            f"Explanation({counted(self.ground.num_variables, 'variable')} in "
            f"{num_classes(self.lifted.num_variables)}, speed-up {self.speed_up:.3g})"
        )


def explain(lifting: Lifting, progress: Progress = silent) -> Explanation:
    """What a lifting saved, and what stood against it.

    Evidence is judged by lifting again without it, predicate by predicate, to the same tolerance.
    """
    progress(0.0, "counting grid points")
    ground, lifted = Size.of(lifting.ground), Size.of(lifting.graph)
    size = np.bincount(lifting.variable_to_class, minlength=lifting.num_classes)
    effects: tuple[EvidenceEffect, ...] = ()
    if lifting.is_exact and len(lifting.source.evidence) and lifting.ground.num_variables:
        effects = evidence_effects(lifting, lambda share, what: progress(0.2 + 0.8 * share, what))
    progress(1.0, "explained")
    return Explanation(
        ground,
        lifted,
        _largest(lifting, size),
        int(np.count_nonzero(size == 1)),
        lifting.is_exact,
        lifting.source.evidence.num_observed,
        lifting.source.evidence.num_measured,
        effects,
    )


def _largest(lifting: Lifting, size: NDArray[np.int64]) -> tuple[LargeClasses, ...]:
    """size: (class,)."""
    predicates = Predicates.of(lifting.graph.variables.names)
    shared = np.flatnonzero(size > 1)
    # One number per size and predicate, the largest size first.
    key = predicates.of_variable[shared] - size[shared] * len(predicates.names)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    names = lifting.ground.variables.names
    found = []
    for at, how_many in zip(first[:MAX_LARGEST].tolist(), count.tolist(), strict=False):
        number = int(shared[at])
        members = lifting.members(number)
        found.append(
            LargeClasses(
                predicates.names[predicates.of_variable[number]],
                how_many,
                len(members),
                tuple(names.render(members[:MAX_EXAMPLES]).to_pylist()),
            )
        )
    return tuple(found)
