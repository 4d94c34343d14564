"""Panels of reals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.plot.known import TRUTH
from hylift.plot.marginals.panel import Look, Panel
from hylift.plot.style import INK
from hylift.posterior import PointMass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

TAIL = 0.001
"""Probability on each side that is not drawn."""
ROUNDS, ROUGH = 6, 0.003
"""How often points are added at most, and where: as a share of the peak, how far the curve may be
from the straight line between two points."""
HIGHEST = 1.5
"""Where a density is infinite it ends at so many times its largest height in the middle 90 %."""
LOW = 0.06
"""Where measurements stand, as a share of the height."""


def draw_reals(ax: Axes, panel: Panel) -> None:
    """Densities with what is known, on one axis."""
    spread = {k: m for k, m in panel.marginals.items() if not isinstance(m, PointMass)}
    for label, marginal in spread.items():
        x, y = curve(marginal)
        look = panel.looks[label]
        (line,) = ax.plot(x, y, color=look.color, linestyle=look.dash, linewidth=1.6)
        if panel.is_one:
            _draw_summary(ax, panel, marginal, look, x, y)
        else:
            panel.legend[label] = line
    for value in {float(m.value) for m in panel.marginals.values() if isinstance(m, PointMass)}:
        panel.legend["observed"] = ax.axvline(value, color=INK, linewidth=2.2)
    _draw_known(ax, panel)
    if not spread:
        _widen(ax)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylabel("density" if spread else "")


def curve(marginal: Any) -> tuple[Floats, Floats]:
    """Points of a density, near to each other where it bends."""
    levels = np.linspace(TAIL, 1 - TAIL, 200)
    inner = np.asarray(marginal.quantile(levels))
    x = np.unique(np.concatenate([inner, np.linspace(inner[0], inner[-1], 200), [marginal.mode]]))
    x = x[(inner[0] <= x) & (x <= inner[-1])]
    y = np.asarray(marginal.pdf(x))
    top = float(marginal.pdf(marginal.mode))
    if not np.isfinite(top):
        top = HIGHEST * np.max(marginal.pdf(inner[(levels > 0.05) & (levels < 0.95)]))
        y = np.minimum(y, top)
    for _ in range(ROUNDS):
        middle = (x[1:] + x[:-1]) / 2
        height = np.minimum(marginal.pdf(middle), top)
        rough = np.abs(height - (y[1:] + y[:-1]) / 2) > ROUGH * top
        if not rough.any():
            break
        x, y = np.append(x, middle[rough]), np.append(y, height[rough])
        order = np.argsort(x)
        x, y = x[order], y[order]
    return x, y


def _draw_summary(ax: Axes, panel: Panel, marginal: Any, look: Look, x: Floats, y: Floats) -> None:
    """Mean and interval, where they cover no other curve."""
    low, high = marginal.interval(0.9)
    ends = np.array([low, high])
    inside = (low < x) & (x < high)
    at = np.concatenate([ends[:1], x[inside], ends[1:]])
    panel.legend["90 % interval"] = ax.fill_between(
        at, np.interp(at, x, y), color=look.color, alpha=0.25, linewidth=0
    )
    panel.legend["mean"] = ax.axvline(marginal.mean, color=INK, linewidth=1.1, linestyle=":")


def _draw_known(ax: Axes, panel: Panel) -> None:
    across = ax.get_xaxis_transform()  # heights are shares of the panel's
    if panel.measured:
        values, errors = zip(*panel.measured, strict=True)
        heights = LOW * np.arange(1, len(values) + 1)
        panel.legend["measured ± sd"] = ax.errorbar(
            values, heights, xerr=errors, transform=across, linestyle="", marker="o", markersize=5,
            color=INK, markerfacecolor="white", capsize=3, linewidth=1.2, zorder=5,
        )  # fmt: skip
    if panel.truth is not None:
        ax.axvline(panel.truth, color=INK, linewidth=0.9)
        (panel.legend["truth"],) = ax.plot([panel.truth], [0.97], transform=across, **TRUTH)


def _widen(ax: Axes) -> None:
    """Room around values without densities, so that the axis has readable numbers."""
    values = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in ax.lines])
    low, high = float(values.min()), float(values.max())
    room = 0.5 * (high - low) or 0.1 * abs(low) or 1.0
    ax.set_xlim(low - room, high + room)
