"""Plot of the objective of iterative methods against time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.inputs import by_label
from hylift.plot.style import (
    INK,
    LINE,
    dress,
    figure_of,
    label_log_time,
    looks_of,
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
RING: dict[str, Any] = {
    "linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "white",
}  # fmt: skip
"""The mark of the beginning of a level of coarse-to-fine lifting."""
DECADES = 1e-6
"""Heights below this share of the largest count as 0 on a logarithmic axis."""


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
    labelled = by_label(posteriors, "plot_convergence", MAX_LINES)
    histories = {label: _history(label, found) for label, found in labelled.items()}
    measures = {history.measure for history in histories.values()}
    is_new = ax is None
    if ax is None:
        ax = Figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
    right = ax.twinx() if classes else None
    is_log = gap or measures == {"largest change"}
    heights = _heights(histories, above=_lowest(histories) if gap else 0.0)
    floor = _floor(heights) if is_log else -np.inf
    for label, look in looks_of(histories).items():
        history = histories[label]
        _draw(ax, label, history, np.maximum(heights[label], floor), look)
        if right is not None:
            classes_at = history.seconds, history.num_classes
            right.step(*classes_at, where="post", linewidth=0.7, **look)
    if floor > 0:
        meaning = "lowest end, or below" if gap else "no change"
        ax.axhline(floor, color=LINE, linewidth=0.7, zorder=1, label=meaning)
    if any(history.level.any() for history in histories.values()):
        ax.plot([], [], **RING, markeredgecolor=INK, label="next level")
    if log_time:
        label_log_time(ax)
    else:
        ax.set_xlim(left=0)
    ax.set_xlabel("seconds")
    only = MEASURES[measures.pop()] if len(measures) == 1 else "objective"
    ax.set_ylabel("objective above the lowest end" if gap else only)
    if is_log:
        ax.set_yscale("log")
    dress(ax)
    if right is not None:
        right.set_yscale("log")
        right.set_ylabel("classes of variables (thin)")
        dress(right)
        right.spines["right"].set_visible(True)
    handles, labels = ax.get_legend_handles_labels()
    drawn = dict(zip(labels, handles, strict=True))
    write_legend(figure_of(ax) if is_new else ax, drawn)
    write_figure(ax, path)
    return ax


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


def _heights(histories: Mapping[str, History], above: float) -> dict[str, NDArray[np.float64]]:
    """The objective of each step above a value; NaN, a gap in the line, if it is infinite."""
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
    ax: Axes, label: str, history: History, height: NDArray[np.float64], look: Mapping[str, Any]
) -> None:
    is_point = len(history) == 1
    ax.plot(
        history.seconds, height, **look, linewidth=1.6, label=label,
        marker="o" if is_point else None, clip_on=not is_point,
    )  # fmt: skip
    begins = np.flatnonzero(np.diff(history.level, prepend=0))
    ax.plot(history.seconds[begins], height[begins], **RING, markeredgecolor=look["color"])
