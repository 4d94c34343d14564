"""Pictures: levels of wells with what methods say of them, and accuracy against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.kalman.levels import Levels
from experiments.report import Row
from hylift.plot.style import COLORS, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADE = "#D9D9D9"
BAND_STYLES = ((COLORS[0], "--"), (COLORS[5], "-."))
"""Of the limits that approximations give."""

MARKERS = {"EPBP": "o", "BVI": "s", "L-BVI": "^", "C2F-BVI": "D"}
LEAST = 1e-17
"""Where a distance of nothing at all is drawn: there is no 0 on a logarithmic axis."""


def draw_levels(shown: Sequence[Levels]) -> Figure:
    """A row per well, a column per variant."""
    from matplotlib.figure import Figure

    wells = shown[0].shown()
    figure = Figure(figsize=(1.5 + 4.5 * len(shown), 1.0 + 2.2 * len(wells)), layout="constrained")
    axes = figure.subplots(len(wells), len(shown), squeeze=False, sharex=True, sharey="row")
    for column, levels in enumerate(shown):
        for ax, well in zip(axes[:, column], wells, strict=True):
            _draw_well(ax, levels, well)
        axes[0, column].set_title(_title(levels), loc="left", fontsize=10)
        axes[-1, column].set_xlabel("month")
    for ax, well in zip(axes[:, 0], wells, strict=True):
        ax.set_ylabel(f"level of well {well}")
    parts: dict[str, Artist] = {}
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        parts |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(parts.values()),
        list(parts),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _title(levels: Levels) -> str:
    means = {
        "paper": "paper variant: 0 or 1 in place of what is missing",
        "clean": "clean variant: what is missing is left out",
    }
    return means[levels.variant]


def _draw_well(ax: Axes, levels: Levels, well: int) -> None:
    month = np.arange(levels.measured.shape[1])
    exact, *others = levels.bands
    ax.fill_between(
        month, exact.low[well], exact.high[well], color=SHADE, linewidth=0,
        label="exact: 90 % of the probability",
    )  # fmt: skip
    ax.plot(month, exact.mean[well], color=INK, linewidth=1.6, label="mean (exact)")
    for band, (color, dash) in zip(others, BAND_STYLES, strict=True):
        for limit, label in ((band.low, f"{band.label}: 90 %"), (band.high, None)):
            ax.plot(month, limit[well], color=color, linestyle=dash, linewidth=1.4, label=label)
    ax.plot(
        month, levels.fillers[well], linestyle="", marker="x", markersize=5, color=COLORS[3],
        label="filler",
    )  # fmt: skip
    ax.plot(
        month, levels.measured[well], linestyle="", marker="o", markersize=4.5, color=INK,
        label="measured",
    )  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xticks(month[::5])


def draw_accuracy(rows: Sequence[Row], source: str) -> Figure:
    """The distance from Gaussian belief propagation against time: ours full, the paper's hollow."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    ax = figure.subplots()
    for (method, marker), color in zip(MARKERS.items(), COLORS, strict=False):
        found = {
            row.measure: (row.value, row.paper)
            for row in rows
            if row.method == method and row.components in (None, 1)
        }
        seconds, their_seconds = found["seconds"]
        distance, their_distance = found.get("l1", (np.nan, None))
        if their_seconds is None or their_distance is None:
            continue
        ours = (seconds, max(distance, LEAST))
        theirs = (their_seconds.value, their_distance.value)
        arrow = {"arrowstyle": "->", "color": color, "shrinkA": 7, "shrinkB": 9}
        ax.annotate("", ours, theirs, arrowprops=arrow)
        style: dict[str, Any] = {"marker": marker, "linestyle": "", "color": color, "ms": 9}
        ax.plot(*ours, **style, label=method)
        ax.plot(*theirs, **style, markerfacecolor="none", markeredgewidth=1.6)
    ax.plot([], [], "o", color=INK, label=f"full: ours ({source} evidence)")
    ax.plot([], [], "o", color=INK, markerfacecolor="none", label="hollow: the paper")
    is_exact = any(row.why for row in rows if row.measure == "l1")
    distance_from = "exact; the paper's: from GaBP" if is_exact else "GaBP"
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="seconds",
        ylabel=f"mean distance (l1) from {distance_from}",
    )
    ax.set_title(
        "Levels of the last month: nearer and sooner is down and left.\n"
        "The paper's as printed: it warns not to compare its times of EPBP and of BVI.",
        loc="left",
        fontsize=10,
    )
    ax.grid(color=SHADE, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return figure
