"""What one panel shows: the marginals of an atom, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hylift.posterior import Categorical


@dataclass(frozen=True, slots=True)
class Look:
    """How the marginals of one posterior are drawn."""

    color: str
    dash: str


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The marginals of one atom by label, with the looks of the labels."""

    marginals: dict[str, Any]
    looks: dict[str, Look]
    observed: bool
    """By all posteriors."""
    truth: float | None
    measured: list[tuple[float, float]]
    legend: dict[str, Any] = field(default_factory=dict)
    """What has been drawn, by the words that explain it."""

    @property
    def is_discrete(self) -> bool:
        return isinstance(next(iter(self.marginals.values())), Categorical)

    @property
    def is_one(self) -> bool:
        """Whether there is one posterior only, whose label goes without saying."""
        return len(self.marginals) == 1
