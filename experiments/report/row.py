"""A figure of ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiments.report.printed import Printed

Verdict = Literal["beaten", "matched", "within ±", "not reached", ""]
"""Smaller than the printed figure; the same, as far as its digits go; larger, but within the spread
that is printed beside it; or larger than that."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure; smaller is better."""

    instance: str
    """What evidence it was measured with, such as 'paper variant'."""
    method: str
    """As the paper calls it: 'L-BVI'."""
    components: int | None
    measure: str
    """What the figure is: 'KL', 'l1', 'seconds', 'energy'."""
    value: float
    spread: float | None = None
    """Standard deviation over seeds, evidence settings or trials."""
    paper: Printed | None = None
    """The figure of the paper, or of its authors, beside ours."""
    why: str = ""
    """Where the paper's figure is not reached, the reason."""

    @property
    def verdict(self) -> Verdict:
        if self.paper is None:
            return ""
        above = self.value - self.paper.value
        if abs(above) <= self.paper.unit / 2:
            return "matched"
        if above < 0:
            return "beaten"
        return "within ±" if above <= self.paper.spread else "not reached"

    def to_dict(self) -> dict[str, Any]:
        return {
            "instance": self.instance,
            "method": self.method,
            "components": self.components,
            "measure": self.measure,
            "ours": self.value,
            "ours_spread": self.spread,
            "paper": None if self.paper is None else self.paper.value,
            "paper_spread": None if self.paper is None else self.paper.spread or None,
            "paper_source": None if self.paper is None else self.paper.source,
            "verdict": self.verdict or None,
            "why": self.why or None,
        }


def summary(values: Sequence[float] | np.ndarray) -> tuple[float, float | None]:
    """Mean and standard deviation of repeated measurements; no deviation of a single one."""
    found = np.asarray(values, dtype=float)
    mean, spread = float(found.mean()), float(found.std())
    if spread < 1e-12 * abs(mean):  # the same figure every time, up to rounding
        spread = 0.0
    return mean, spread if len(found) > 1 else None
