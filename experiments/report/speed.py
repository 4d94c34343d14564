"""What lifting does to the time of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NOTICED = 1.2
"""Ratio of times from which on one is called faster: less is what the machine does by itself."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a method takes with one kind of lifting."""

    seconds: float
    """Until the answer is there, with coloring and all."""
    near: float
    """Seconds until it stays near the best answer of all."""
    num_classes: int
    """Of variables, at the end; of the ground graph all hidden variables."""
    first_classes: int | None = None
    """Of coarse to fine: at the first level."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The same method on the ground graph, lifted, and from coarse to fine."""

    instance: str
    method: str
    """With its number of components: 'BVI(3)'."""
    ground: Timing
    lifted: Timing
    coarse: Timing | None = None
    nearness: str = ""
    """What `near` of the timings means."""

    @property
    def by_lifting(self) -> float:
        """How many times as fast the lifted graph is answered as the ground one."""
        return self.ground.seconds / self.lifted.seconds

    @property
    def by_coarseness(self) -> float | None:
        """How many times as fast coarse to fine is near the best answer as exact lifting."""
        return None if self.coarse is None else self.lifted.near / self.coarse.near

    def to_dict(self) -> dict[str, Any]:
        coarse = self.coarse
        return {
            "instance": self.instance,
            "method": self.method,
            "ground_seconds": self.ground.seconds,
            "lifted_seconds": self.lifted.seconds,
            "coarse_seconds": None if coarse is None else coarse.seconds,
            "lifted_over_ground": self.by_lifting,
            "ground_near_seconds": self.ground.near,
            "lifted_near_seconds": self.lifted.near,
            "coarse_near_seconds": None if coarse is None else coarse.near,
            "coarse_over_lifted": self.by_coarseness,
            "nearness": self.nearness or None,
            "hidden_variables": self.ground.num_classes,
            "lifted_classes": self.lifted.num_classes,
            "coarse_first_classes": None if coarse is None else coarse.first_classes,
            "coarse_last_classes": None if coarse is None else coarse.num_classes,
        }
