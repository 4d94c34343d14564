"""Pictures of marginals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.style import COLORS, write_figure
from hylift.posterior import Categorical, PointMass, Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PANELS = 24
COLOR = COLORS[0]


def plot_marginals(
    posterior: Posterior,
    atoms: str | Iterable[str] | None = None,
    *,
    path: str | Path | None = None,
) -> list[Axes]:
    """One panel per variable: a density with its mean and 90 % interval, or bars of probability.

    `atoms` are names or patterns. With `path` the figure is written there.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_figure(path)
    ids = posterior.select(atoms)
    check_panels(len(ids))
    columns = min(len(ids), 4)
    rows = -(-len(ids) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for panel, variable in zip(grid, ids.tolist(), strict=False):
        name = posterior.variables.names[variable]
        marginal = posterior.marginal(name)
        if isinstance(marginal, Categorical):
            _bars(panel, marginal)
        else:
            _density(panel, marginal)
        panel.set_title(name, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    for unused in grid[len(ids) :]:
        unused.set_visible(False)
    if path is not None:
        write_figure(figure, path)
    return list(grid[: len(ids)])


def check_panels(count: int) -> None:
    """Raises unless a figure has room for so many marginals."""
    if not 0 < count <= MAX_PANELS:
        raise UnsupportedError(
            f"a figure shows 1 to {MAX_PANELS} marginals, not {count}: name some of the atoms"
        )


def _bars(panel: Axes, marginal: Categorical) -> None:
    panel.bar(list(marginal.states), marginal.probs, color=COLOR)
    panel.set_ylim(0, 1)
    panel.set_ylabel("probability")


def _density(panel: Axes, marginal: Any) -> None:
    if isinstance(marginal, PointMass):
        panel.axvline(float(marginal.value), color=COLOR)
        panel.set_yticks([])
        return
    x = np.linspace(marginal.quantile(0.0005), marginal.quantile(0.9995), 400)
    panel.plot(x, marginal.pdf(x), color=COLOR)
    low, high = marginal.interval(0.9)
    inside = (x >= low) & (x <= high)
    panel.fill_between(x[inside], marginal.pdf(x[inside]), color=COLOR, alpha=0.2, linewidth=0)
    panel.axvline(marginal.mean, color="black", linewidth=1, linestyle=":")
    panel.set_ylim(bottom=0)
    panel.set_ylabel("density")
