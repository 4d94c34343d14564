"""Panels of discrete variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hylift.plot.known import TRUTH
from hylift.plot.marginals.panel import Panel
from hylift.plot.style import INK, as_written, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_STATES = 12
"""More are not told apart: the least probable ones share a bar."""
MAX_LETTERS = 24
"""Of all states together, which stand beside each other up to there and below each other beyond."""
MAX_NAME = 18
HATCHES = ("", "//", "..", "xx", "--", "\\\\")
"""Bars differ in these too, so that they are told apart without colours."""


def draw_states(ax: Axes, panel: Panel) -> None:
    """Bars of probability, those of several posteriors beside each other."""
    probs = np.stack([marginal.probs for marginal in panel.marginals.values()])
    names = next(iter(panel.marginals.values())).states
    names, probs, truth = _most_probable(tuple(names), probs, panel.truth)
    lies = len(names) > 6 or sum(map(len, names)) > MAX_LETTERS
    places = np.arange(len(names), dtype=float)
    width = 0.8 / len(probs)
    for number, (label, row) in enumerate(zip(panel.marginals, probs, strict=True)):
        at = places + (number - (len(probs) - 1) / 2) * width
        color = INK if panel.observed else panel.looks[label].color
        draw = ax.barh if lies else ax.bar
        bars = draw(at, row, width, color=color, edgecolor="white", linewidth=0.5)
        if panel.observed:
            panel.legend["observed"] = bars
        elif not panel.is_one:
            for bar in bars:
                bar.set_hatch(HATCHES[number % len(HATCHES)])
            panel.legend[label] = bars
    _label(ax, [shortened(name, MAX_NAME) for name in names], lies=lies, most=float(probs.max()))
    if truth is not None:
        across = ax.get_yaxis_transform() if lies else ax.get_xaxis_transform()
        at_end = ([0.97], [truth]) if lies else ([truth], [0.97])
        mark = TRUTH | ({"marker": "<"} if lies else {})
        (panel.legend["truth"],) = ax.plot(*at_end, transform=across, **mark)


def _label(ax: Axes, names: list[str], *, lies: bool, most: float) -> None:
    """Names of states and the scale of probability, whose bars lie or stand."""
    axis = ax.yaxis if lies else ax.xaxis
    axis.set_ticks(np.arange(len(names)))
    as_written(axis.set_ticklabels(names))
    axis.set_tick_params(length=0)
    if lies:
        ax.set_xlim(0, min(1.0, 1.2 * most))  # many states have small probabilities
        ax.set_ylim(len(names) - 0.5, -0.5)  # the first state on top
        ax.set_xlabel("probability")
    else:
        ax.set_ylim(0, 1)
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_ylabel("probability")


def _most_probable(
    names: tuple[str, ...], probs: NDArray[np.float64], truth: float | None
) -> tuple[tuple[str, ...], NDArray[np.float64], int | None]:
    """States that are drawn, in their order, and the place of the true one; probs: (label, state).

    The last one stands for all others where there are too many.
    """
    true = None if truth is None else int(truth)
    if len(names) <= MAX_STATES:
        return names, probs, true
    weight = probs.max(axis=0)
    if true is not None:
        weight[true] = 2.0  # it is always drawn
    kept = np.sort(np.argsort(-weight, kind="stable")[: MAX_STATES - 1])
    rest = np.delete(probs, kept, axis=1).sum(axis=1, keepdims=True)
    shown = (*(names[place] for place in kept.tolist()), f"{len(names) - len(kept):,} others")
    at = None if true is None else int(np.searchsorted(kept, true))
    return shown, np.hstack([probs[:, kept], rest]), at
