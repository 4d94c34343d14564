"""What lifting does to the time of an answer."""

from __future__ import annotations

import math
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
    """Seconds until it stays near a level that all kinds of lifting reach; may be infinite."""
    num_classes: int
    """Of variables, at the end; of the ground graph all hidden variables."""
    first_classes: int | None = None
    """Of coarse to fine: at the first level."""
    end: float | None = None
    """The objective, or energy, at which it ends; lower is better."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The same method on the ground graph, lifted, and from coarse to fine.

    Ratios are of the times until all have come equally far: at their ends they may stand at
    different optima.
    """

    instance: str
    method: str
    """With its number of components: 'BVI(3)'."""
    ground: Timing
    lifted: Timing
    coarse: Timing | None = None
    nearness: str = ""
    """What `near` of the timings means."""

    @property
    def by_lifting(self) -> float | None:
        """How many times as fast the lifted graph gets near as the ground one."""
        return _ratio(self.ground, self.lifted)

    @property
    def by_coarseness(self) -> float | None:
        """How many times as fast coarse to fine gets near as exact lifting."""
        return None if self.coarse is None else _ratio(self.lifted, self.coarse)

    @property
    def timings(self) -> tuple[Timing, ...]:
        return tuple(one for one in (self.ground, self.lifted, self.coarse) if one is not None)

    @property
    def above_lowest(self) -> tuple[float, ...] | None:
        """How far each ends above the lowest end; None where ends are not known."""
        ends = [one.end for one in self.timings if one.end is not None]
        return tuple(end - min(ends) for end in ends) if len(ends) == len(self.timings) else None

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"instance": self.instance, "method": self.method}
        for name, one in zip(("ground", "lifted", "coarse"), self.timings, strict=False):
            found |= {
                f"{name}_seconds": one.seconds,
                f"{name}_near_seconds": one.near,
                f"{name}_end": one.end,
                f"{name}_classes": one.num_classes,
            }
        coarse = self.coarse
        return found | {
            "coarse_first_classes": None if coarse is None else coarse.first_classes,
            "lifted_over_ground": self.by_lifting,
            "coarse_over_lifted": self.by_coarseness,
            "nearness": self.nearness or None,
        }


def _ratio(slower: Timing, faster: Timing) -> float | None:
    """Of the times until near; None where one never gets there."""
    if not (math.isfinite(slower.near) and math.isfinite(faster.near) and faster.near > 0):
        return None
    return slower.near / faster.near
