"""Directions in which a density is improper, and the error that reports one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hylift.errors import DivergentModelError, proper_remedy, proper_rule
from hylift.graph import Variables
from hylift.words import Wording, listed, worded

MAX_NAMED = 6
"""Reals and states named in a sentence."""

LIST_ALL = Wording(
    ". bethe_certificate(graph) lists all such variables",
    ". `hylift check --bethe` lists all such variables",
)


@dataclass(frozen=True, slots=True)
class ImproperDirection:
    """A direction in which the density has no finite integral, in a state of discrete variables."""

    reals: tuple[tuple[str, float], ...]
    """Names, and how far each moves."""
    states: tuple[tuple[str, str], ...] = ()
    """Names and states of the discrete variables that matter; all others may be in any state."""
    curvature: float = 0.0
    """The coefficient of -½ t² along the direction: zero, or negative where the density grows."""
    context: str = ""
    """The circumstances, as the beginning of a sentence, such as `up to time 3, `."""

    @classmethod
    def of(
        cls,
        variables: Variables,
        direction: Mapping[int, float],
        states: Mapping[int, int] | None = None,
        curvature: float = 0.0,
        context: str = "",
    ) -> ImproperDirection:
        """From variable ids to how far they move, and to states."""
        states = states or {}
        names = variables.names.render(np.array([*direction, *states], dtype=np.int64)).to_pylist()
        labels = [(variables.domain(i).states or ())[state] for i, state in states.items()]
        return cls(
            tuple(zip(names[: len(direction)], direction.values(), strict=True)),
            tuple(zip(names[len(direction) :], labels, strict=True)),
            curvature,
            context,
        )

    @property
    def what(self) -> str:
        """The reals in words."""
        names = [f"'{name}'" for name, _ in self.reals]
        return _some(names) + (" jointly" if len(names) > 1 else "")

    @property
    def where(self) -> str:
        """The states in words; empty if there are none."""
        return _some([f"{name} is {state}" for name, state in self.states])

    @property
    def remedy(self) -> str:
        """Advice to the user."""
        return proper_remedy(self.reals[0][0])

    @property
    def rule(self) -> str:
        """The remedy where bounds are ignored."""
        return proper_rule(self.reals[0][0])

    def __str__(self) -> str:
        verb = "is improper" if self.curvature == 0 else "grows without bound"
        text = f"{self.context}the density {verb} in {self.what}"
        return f"{text} where {self.where}" if self.states else text

    def error(self, note: str = "", remedy: str = "") -> DivergentModelError:
        """The error to raise; `note` ends the first clause, `remedy` replaces the usual one."""
        return DivergentModelError(f"{self}{note}", worded(remedy or self.remedy))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "direction": dict(self.reals),
            "states": dict(self.states),
            "curvature": self.curvature,
        }


def _some(words: Sequence[str]) -> str:
    if len(words) <= MAX_NAMED:
        return listed(words)
    return f"{', '.join(words[:MAX_NAMED])} and {len(words) - MAX_NAMED} more"
