"""What an experiment works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import hylift as hl

Variant = Literal["paper", "clean"]
"""`paper`: with the quirks of the data and of the code behind the paper's figures. `clean`: as the
paper's text says."""


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """A model of the paper with evidence."""

    graph: hl.FactorGraph
    label: str
    """What sets it apart from others of its model: `published evidence 0`, `trial 2`."""
    note: str = ""
    """What there is to know of its evidence."""

    @classmethod
    def generated(cls, graph: hl.FactorGraph, seed: int) -> Instance:
        """With evidence that was drawn at random."""
        return cls(graph, f"generated evidence, seed {seed}")
