"""Plot of the objective of iterative methods against time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.inputs import by_label
from hylift.plot.style import (
    COLORS,
    DASHES,
    INK,
    LINE,
    dress,
    figure_of,
    write_figure,
    write_legend,
)
from hylift.posterior import History, Posterior
from hylift.posterior.answers import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURES: dict[Measure, str] = {
    "free energy": "objective (free energy)",
    "energy": "energy",
    "largest change": "largest change of a message",
}

MAX_LINES = 12
DECADES = 1e-6
"""Heights below this share of the largest count as 0 on a logarithmic axis."""
ROOM = 0.8
"""Labels of a logarithmic axis, as a share of those that matplotlib has room for on others."""


def plot_convergence(
    posteriors: Posterior | Mapping[str, Posterior],
    *,
    ax: Axes | None = None,
    log_time: bool = False,
    gap: bool = False,
    classes: bool = False,
    path: str | Path | None = None,
) -> Axes:
    """The objective against time, a line per posterior; a mapping gives each its label.

    That is the free energy of a variational method, the energy of the best assignment that a search
    has found, or the largest change of a message of belief propagation, on a logarithmic axis.
    Rings mark where levels of coarse-to-fine lifting begin. `log_time` has a logarithmic time axis.
    `gap` draws how far each objective is above the lowest at which one ends, on a logarithmic axis.
    What such an axis has no place for, the lowest end itself and what is below or within a
    millionth of it, lies on a line at the bottom. `classes` adds thin lines for the number of
    classes, with an axis on the right. With `path` the figure is written there.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_figure(path)
    histories, measures = _histories(posteriors)
    is_new = ax is None
    if ax is None:
        ax = Figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
    right = ax.twinx() if classes else None
    is_log = gap or measures == {"largest change"}
    heights = _heights(histories, above=_lowest(histories) if gap else 0.0)
    floor = _floor(heights) if is_log else -np.inf
    for (label, history), color, dash in zip(
        histories.items(), cycle(COLORS), cycle(DASHES), strict=False
    ):
        _draw(ax, label, history, np.maximum(heights[label], floor), color, dash)
        if right is not None:
            right.step(
                history.seconds, history.num_classes, where="post", color=color, linestyle=dash,
                linewidth=0.7,
            )  # fmt: skip
    if floor > 0:
        meaning = "lowest end, or below" if gap else "no change"
        ax.axhline(floor, color=LINE, linewidth=0.7, zorder=1, label=meaning)
    _label(
        ax,
        right,
        "objective above the lowest end" if gap else _name(measures),
        log_time=log_time,
        log_height=is_log,
        has_levels=any(h.level.any() for h in histories.values()),
    )
    handles, labels = ax.get_legend_handles_labels()
    drawn = dict(zip(labels, handles, strict=True))
    write_legend(figure_of(ax) if is_new else ax, drawn)
    if path is not None:
        write_figure(figure_of(ax), path)
    return ax


def _histories(
    posteriors: Posterior | Mapping[str, Posterior],
) -> tuple[dict[str, History], set[Measure]]:
    """What to draw, by label, and what it measures."""
    labelled = by_label(posteriors, "plot_convergence", MAX_LINES)
    histories = {label: _history(label, found) for label, found in labelled.items()}
    return histories, {history.measure for history in histories.values()}


def _history(label: str, posterior: Posterior) -> History:
    """The history of a posterior; a single point if it was found without steps."""
    solution, mixture = posterior.solution, posterior.mixture
    history = solution.history
    if history is not None and len(history):
        return history
    if history is None or solution.objective is None or mixture is None:
        raise UnsupportedError(
            f"'{label}' took no steps that could be drawn: its method is '{solution.method}'. "
            "Variational methods, belief propagation and MaxWalkSAT take some"
        )
    return History(
        np.array([solution.seconds]),
        np.array([solution.objective]),
        np.array([len(mixture.layout)]),
        np.zeros(1, dtype=np.int32),
    )


def _lowest(histories: Mapping[str, History]) -> float:
    """The lowest objective at which one of them ends."""
    ends = [history.objective[-1] for history in histories.values() if len(history)]
    return min((float(end) for end in ends if np.isfinite(end)), default=0.0)


def _name(measures: set[Measure]) -> str:
    return MEASURES[next(iter(measures))] if len(measures) == 1 else "objective"


def _heights(histories: Mapping[str, History], above: float) -> dict[str, NDArray[np.float64]]:
    """How far the objective of each step is above a value; NaN, a gap in the line, if infinite."""
    return {
        label: np.where(np.isfinite(history.objective), history.objective - above, np.nan)
        for label, history in histories.items()
    }


def _floor(heights: Mapping[str, NDArray[np.float64]]) -> float:
    """The height at which a logarithmic axis draws values near or below 0; -∞ if there are none."""
    every = np.concatenate(list(heights.values()))
    tall = every[every > DECADES * np.nanmax(every, initial=0.0)]
    floor = 0.5 * float(tall.min()) if len(tall) else 1.0
    return floor if (every < floor).any() else -np.inf


def _draw(
    ax: Axes, label: str, history: History, height: NDArray[np.float64], color: str, dash: str
) -> None:
    (line,) = ax.plot(
        history.seconds, height, color=color, linestyle=dash, linewidth=1.6, label=label,
        marker="o" if len(history) == 1 else None,
    )  # fmt: skip
    line.set_clip_on(len(history) > 1)
    begins = np.flatnonzero(np.diff(history.level, prepend=0))
    ax.plot(
        history.seconds[begins], height[begins], linestyle="", marker="o", markersize=4,
        markerfacecolor="white", markeredgecolor=color,
    )  # fmt: skip


def _label(
    ax: Axes,
    right: Axes | None,
    height: str,
    *,
    log_time: bool,
    log_height: bool,
    has_levels: bool,
) -> None:
    if log_time:
        ax.set_xscale("log")
        _label_log_time(ax)
    else:
        ax.set_xlim(left=0)
    ax.set_xlabel("seconds")
    ax.set_ylabel(height)
    if log_height:
        ax.set_yscale("log")
    dress(ax)
    if right is not None:
        right.set_yscale("log")
        right.set_ylabel("classes of variables (thin)")
        dress(right)
        right.spines["right"].set_visible(True)
    if has_levels:
        ax.plot(
            [], [], linestyle="", marker="o", markersize=4, markerfacecolor="white",
            markeredgecolor=INK, label="next level",
        )  # fmt: skip


def _label_log_time(ax: Axes) -> None:
    """Set tick labels of a logarithmic time axis that do not overlap."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    @final
    class Ticks(LogLocator):
        """As many of 1, 2, 5, 10, … as have room for their labels."""

        def tick_values(self, vmin: float, vmax: float) -> list[float]:
            assert self.axis is not None  # set_major_locator sets it
            low, high = sorted((vmin, vmax))
            room = max(2, int(ROOM * self.axis.get_tick_space()))
            powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
            sets = [np.outer(powers, subs).ravel() for subs in ((1, 2, 5), (1, 3), (1,))]
            inside = [ticks[(low <= ticks) & (ticks <= high)] for ticks in sets]
            enough = [ticks for ticks in inside if len(ticks) > 1]
            if not enough:
                return [float(tick) for tick in MaxNLocator(room - 1).tick_values(low, high)]
            fitting = [ticks for ticks in enough if len(ticks) <= room]
            ticks = fitting[0] if fitting else enough[-1]
            return [float(tick) for tick in ticks[:: math.ceil(len(ticks) / room)]]

    ax.xaxis.set_major_locator(Ticks())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
