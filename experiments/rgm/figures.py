"""Pictures: the objective against time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hylift as hl
from experiments.measure import Run
from experiments.rgm.times import ADAM, BANKS, MARKETS, PAPERS, Case, Runs, Size, runs_of
from hylift.plot.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a case that was timed."""

    size: Size
    method: str
    title: str
    gap: bool = True
    """Whether objectives are drawn as distances from the lowest."""


FIGURES = {
    "figure-3": (
        Panel(PAPERS, ADAM, "Adam(0.2) as in the paper, K = 1", gap=False),
        Panel(PAPERS, "BVI(3)", "our steps, K = 3"),
    ),
    "larger": (
        Panel(MARKETS, ADAM, "BVI, K = 1, Adam(0.2)"),
        Panel(MARKETS, "NPVI(3)", "NPVI, K = 3"),
        Panel(BANKS, "NPVI(3)", "NPVI, K = 3"),
    ),
}


def draw(panels: Sequence[Panel], found: Mapping[Case, Runs]) -> Figure:
    """Panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.9 * len(panels), 4.4), layout="constrained")
    for place, (panel, ax) in enumerate(zip(panels, figure.subplots(1, len(panels)), strict=True)):
        runs = runs_of(found, panel.size, panel.method)
        hl.plot_convergence(
            {each.label: each.posterior for each in runs}, ax=ax, log_time=True, gap=panel.gap
        )
        title = f"({'abc'[place]}) {panel.title}\n{panel.size} (markets × banks)"
        solved = [] if panel.gap else runs_of(found, panel.size, "BVI(1)")
        for each in solved:
            if each.lift == "exact":
                title += f"; ★ L-BVI in closed form, {1e3 * _mark(ax, each):.0f} ms"
        ax.set_title(title, loc="left", fontsize=10, pad=24)
    return figure


def _mark(ax: Axes, run: Run) -> float:
    """Marks where a run without steps is; returns its seconds."""
    history = run.history
    assert history is not None
    x, y = float(history.seconds[-1]), float(history.objective[-1])
    ax.plot(x, y, marker="*", markersize=12, color=COLORS[5], linestyle="", zorder=5)
    return x
