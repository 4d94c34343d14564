"""Pictures of wells, of scores, and of what wells share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.groundwater.cluster import PAIRS, Band, Cluster, Shown
from experiments.groundwater.filters.predictions import FIRST_HELD_OUT, WITHIN_90
from experiments.groundwater.model import MONTHS_OF_YEAR
from experiments.groundwater.scores import by_cluster, score
from hylift.plot.style import COLORS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE = COLORS[:2]
MARKED = (-1000, -100, -10, -1, -0.5, 0, 0.5, 1, 10, 100)


def draw_wells(shown: Sequence[tuple[str, Shown]]) -> Figure:
    """Filtered and smoothed levels of wells, with bands of 90 %, and what was measured."""
    figure, panels = _panels(len(shown), height=1.9)
    for ax, (what, one) in zip(panels, shown, strict=True):
        year = np.arange(len(one.levels)) / MONTHS_OF_YEAR
        _band(ax, year, one.filtered, ORANGE, "--", "filtered: given months up to then")
        _band(ax, year, one.smoothed, BLUE, "-", "smoothed: given all months")
        ax.plot(year, one.levels, ".", color=INK, markersize=3.5, label="measured")
        _shade(ax, len(year))
        ax.set_title(f"Well {one.well} of cluster {one.cluster}: {what}", loc="left", fontsize=9)
        ax.set_ylabel("level")
    _finish(figure, panels)
    return figure


def draw_scores(clusters: Sequence[Cluster]) -> Figure:
    """What each cluster gains by a trend and a season, with shared and with own parameters."""
    figure, panels = _panels(len(PAIRS), height=2.6, sharex=False)
    for ax, (alone, relational) in zip(panels, PAIRS, strict=True):
        gain = by_cluster(clusters, relational) - by_cluster(clusters, alone)
        order = np.argsort(-gain)
        order = order[np.isfinite(gain[order])]
        place, height = np.arange(len(order)), gain[order]
        better = height > 0
        ax.axhline(0, color=INK, linewidth=1)
        ax.vlines(place, 0, height, color=np.where(better, BLUE, ORANGE), linewidth=1)
        ax.plot(place[better], height[better], "o", color=BLUE, markersize=5.5)
        ax.plot(
            place[~better], height[~better], "v", color=ORANGE, markersize=6, markerfacecolor="none"
        )
        _wide_scale(ax, height)
        ax.set_xticks(
            place, [str(clusters[each].number) for each in order], fontsize=7, rotation=90
        )
        ax.margins(x=0.01)
        ours, theirs = score(clusters, relational).joint, score(clusters, alone).joint
        ax.set_title(
            f"'{relational}' against '{alone}': better in {better.sum()} of {len(order)} clusters, "
            f"{ours:.3f} against {theirs:.3f} over all",
            loc="left", fontsize=9,
        )  # fmt: skip
        ax.set_ylabel("gain in log-density per\nheld-out measurement")
        _plain(ax)
    panels[-1].set_xlabel("cluster, by what it gains")
    return figure


def draw_shared(clusters: Sequence[Cluster]) -> Figure:
    """Trend and season of clusters, smoothed, with bands of 90 %."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.8 * len(clusters) + 0.6), layout="constrained")
    panels = figure.subplots(
        len(clusters), 2, squeeze=False, sharex="col", width_ratios=(3, 1), sharey="row"
    )
    month = np.arange(1, MONTHS_OF_YEAR + 1)
    for (left, right), one in zip(panels, clusters, strict=True):
        year = np.arange(len(one.trend.mean)) / MONTHS_OF_YEAR
        _band(left, year, one.trend, BLUE, "-", "")
        _shade(left, len(year))
        count = f"{len(one.wells)} wells, {len(one.measurements):,} measurements"
        left.set_title(f"Cluster {one.number}: {count}", loc="left", fontsize=9)
        left.set_ylabel("trend")
        right.errorbar(
            month, one.season.mean, WITHIN_90 * one.season.sd, color=ORANGE, marker="o",
            markersize=4, linewidth=1.2, capsize=2,
        )  # fmt: skip
        right.set_title("season", loc="left", fontsize=9)
        for ax in (left, right):
            ax.axhline(0, color=INK, linewidth=0.6)
            _plain(ax)
    panels[-1, 0].set_xlabel("year")
    panels[-1, 1].set_xlabel("month of the year")
    panels[-1, 1].set_xticks(month[::3])
    return figure


def _wide_scale(ax: Axes, values: np.ndarray) -> None:
    """Where some values are beyond 1, an axis that is logarithmic there."""
    if np.abs(values).max(initial=0.0) <= 1:
        return
    ax.set_yscale("symlog", linthresh=1.0, linscale=2.0)
    marks = [value for value in MARKED if values.min() * 2 <= value <= values.max() * 2]
    ax.set_yticks(marks, [f"{value:,g}".replace("-", "−") for value in marks])


def _panels(count: int, height: float, sharex: bool = True) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, height * count + 0.6), layout="constrained")
    return figure, list(figure.subplots(count, squeeze=False, sharex=sharex)[:, 0])


def _band(ax: Axes, x: np.ndarray, band: Band, color: str, dash: str, label: str) -> None:
    reach = WITHIN_90 * band.sd
    ax.fill_between(x, band.mean - reach, band.mean + reach, color=color, alpha=0.22, linewidth=0)
    ax.plot(x, band.mean, dash, color=color, linewidth=1.1, label=label or None)


def _shade(ax: Axes, num_months: int) -> None:
    """Marks the months that were held out."""
    begin, end = FIRST_HELD_OUT / MONTHS_OF_YEAR, num_months / MONTHS_OF_YEAR
    ax.axvspan(begin, end, color=INK, alpha=0.08, linewidth=0, label="held out")
    ax.set_xlim(0, end)


def _finish(figure: Figure, panels: Sequence[Axes]) -> None:
    for ax in panels:
        _plain(ax)
    panels[-1].set_xlabel("year")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=9)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
