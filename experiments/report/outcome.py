"""All that an experiment found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from experiments.report.row import Row
from experiments.report.speed import Speed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Outcome:
    """Measured figures, speeds and pictures of one experiment, and what else there is to say."""

    title: str
    """What it reproduces: 'Toy hybrid MLN (Table 1, Figure 1)'."""
    source: Literal["published", "generated", "no"]
    """Of its evidence."""
    rows: tuple[Row, ...]
    speeds: tuple[Speed, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences below the tables."""
    accuracy: str = ""
    """A sentence on how accurate the variational answers are, beside the count of figures that
    were reached."""
    figures: dict[str, Callable[[], Figure]] = field(default_factory=dict)
    """By the name of their files, without ending; drawn when they are written."""
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Further numbers, for files only: a list of rows by the name of its file."""
