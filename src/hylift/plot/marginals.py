"""The marginals of some atoms, one panel each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.inputs import (
    TRUTH,
    by_label,
    doubt_mark,
    explained,
    measurements,
    true_values,
)
from hylift.plot.style import (
    INK,
    LETTER,
    as_written,
    dress,
    looks_of,
    shortened,
    write_figure,
    write_legend,
)
from hylift.posterior import Categorical, PointMass, Posterior
from hylift.words import Wording, worded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MARKS = ("90 % interval", "mean", "measured ± sd", "observed", "truth")
"""Legend entries besides labels, in their order."""
MAX_PANELS = 24
MAX_POSTERIORS = 6
COLUMNS = 4
WIDTH, HEIGHT = 3.2, 2.3
"""Inches of a panel."""
LEAST_WIDTH = 4.2
"""Least width of a figure, with room for the legend."""
TITLE_SIZE = 10.0
TITLE_WIDTH = 0.8
"""Largest width of a title, as a share of its panel's."""
MAX_STATES = 12
"""Most states with a bar of their own; the least probable others share one."""
MAX_LETTERS = 24
"""Letters of all state names together, beyond which bars are horizontal."""
MAX_NAME = 18
HATCHES = ("", "//", "..", "xx", "--", "\\\\")
"""Hatches, so that bars differ without colour."""
TAIL = 0.001
"""Probability on each side that is not drawn."""
ROUNDS, ROUGH = 6, 0.003
"""Rounds of refinement, and the error of linear interpolation, as a share of the peak, above which
a point is added."""
HIGHEST = 1.5
"""Height at which an infinite density is cut off, relative to its maximum in the middle 90 %."""
LOW = 0.06
"""Height of measurements, as a share of the panel's."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The marginals of one atom by label, with the line styles of the labels."""

    marginals: dict[str, Any]
    looks: dict[str, dict[str, Any]]
    observed: bool
    """True if it is observed in all posteriors."""
    truth: float | None
    measured: list[tuple[float, float]]
    legend: dict[str, Any] = field(default_factory=dict)
    """Drawn artists, by legend entry."""

    @property
    def is_discrete(self) -> bool:
        return isinstance(next(iter(self.marginals.values())), Categorical)

    @property
    def is_one(self) -> bool:
        """True for a single posterior, which needs no label."""
        return len(self.marginals) == 1


def plot_marginals(
    posteriors: Posterior | Mapping[str, Posterior],
    atoms: str | Iterable[str] | None = None,
    *,
    truth: Mapping[str, object] | None = None,
    axes: Iterable[Axes] | None = None,
    path: str | Path | None = None,
) -> list[Axes]:
    """One panel per atom: a density with its mean and 90 % interval, or bars of probability.

    A mapping of several posteriors labels them; their densities lie over each other, and their bars
    stand beside each other. `atoms` are names, patterns, or predicates for their atoms that are not
    observed. `truth` has values that are known to be true, by atom: triangles mark them.
    Measurements with an error (`hl.Soft`) are marked as well, unless the posterior was loaded from
    a file. `axes` are drawn on, one per atom, in place of a new figure. With `path` the figure is
    written there.
    """
    if path is not None:
        check_figure(path)
    labelled = by_label(posteriors, "plot_marginals", MAX_POSTERIORS)
    first = next(iter(labelled.values()))
    ids = first.select(atoms)
    check_panels(len(ids))
    names: list[str] = first.variables.names.render(ids).to_pylist()
    panels = _panels(labelled, names, truth)
    if axes is None:
        figure, places = _grid(len(names))
    elif len(places := list(axes)) != len(names):
        raise UnsupportedError(f"{len(names)} marginals need as many axes, not {len(places)}")
    marks = [doubt_mark(labelled.values(), name) for name in names]
    for ax, name, mark, panel in zip(places, names, marks, panels, strict=True):
        draw = _draw_states if panel.is_discrete else _draw_reals
        draw(ax, panel)
        letters = int(TITLE_WIDTH * 72 * WIDTH / (LETTER * TITLE_SIZE))
        title = shortened(name, letters - len(mark)) + mark
        ax.set_title(title, fontsize=TITLE_SIZE, parse_math=False)
        dress(ax)
    handles = explained(_handles([*labelled, *MARKS], panels), marks)
    write_legend(
        figure if axes is None else places[0], handles, where="above" if axes is None else "inside"
    )
    write_figure(places[0], path)
    return places


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels."""
    from matplotlib.figure import Figure

    rows = math.ceil(count / COLUMNS)
    columns = math.ceil(count / rows)
    size = (max(WIDTH * columns, LEAST_WIDTH), HEIGHT * rows + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1).tolist()
    for unused in grid[count:]:
        unused.set_visible(False)
    return figure, grid[:count]


def check_panels(count: int) -> None:
    """Raise an error unless a figure has room for so many marginals."""
    if not 0 < count <= MAX_PANELS:
        raise UnsupportedError(
            f"a figure shows 1 to {MAX_PANELS} marginals, not {count:,}",
            worded(
                Wording("name some of the atoms", "name some with --query"),
                ", or draw a forest plot" if count else "",
            ),
        )


def _panels(
    labelled: Mapping[str, Posterior], names: list[str], truth: Mapping[str, object] | None
) -> list[Panel]:
    looks = looks_of(labelled)
    true = true_values(truth, next(iter(labelled.values())), names)
    return [
        Panel(
            {label: posterior.marginal(name) for label, posterior in labelled.items()},
            looks,
            all(one.observed[one.variables.names.id(name)] for one in labelled.values()),
            true.get(name),
            measurements(labelled.values(), name),
        )
        for name in names
    ]


def _handles(words: list[str], panels: list[Panel]) -> dict[str, Any]:
    """Legend entries: a label shows its line and its bar, if both are drawn."""
    handles: dict[str, Any] = {}
    for label in dict.fromkeys(words):
        drawn = [panel.legend[label] for panel in panels if label in panel.legend]
        if drawn:
            handles[label] = tuple({type(one): one for one in drawn}.values())
    return handles


def _draw_reals(ax: Axes, panel: Panel) -> None:
    """Densities with what is known, on one axis."""
    spread = {k: m for k, m in panel.marginals.items() if not isinstance(m, PointMass)}
    for label, marginal in spread.items():
        x, y = curve(marginal)
        (line,) = ax.plot(x, y, **panel.looks[label], linewidth=1.6)
        if panel.is_one:
            _draw_summary(ax, panel, marginal, panel.looks[label]["color"], x, y)
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
    """Points on a density, denser where it bends."""
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


def _draw_summary(ax: Axes, panel: Panel, marginal: Any, color: str, x: Floats, y: Floats) -> None:
    """Mean and interval, where they cover no other curve."""
    low, high = marginal.interval(0.9)
    ends = np.array([low, high])
    inside = (low < x) & (x < high)
    at = np.concatenate([ends[:1], x[inside], ends[1:]])
    panel.legend["90 % interval"] = ax.fill_between(
        at, np.interp(at, x, y), color=color, alpha=0.25, linewidth=0
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
    """Add room around values without densities, for readable tick labels."""
    values = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in ax.lines])
    low, high = float(values.min()), float(values.max())
    room = 0.5 * (high - low) or 0.1 * abs(low) or 1.0
    ax.set_xlim(low - room, high + room)


def _draw_states(ax: Axes, panel: Panel) -> None:
    """Bars of probability, those of several posteriors beside each other."""
    probs = np.stack([marginal.probs for marginal in panel.marginals.values()])
    names = next(iter(panel.marginals.values())).states
    names, probs, truth = _most_probable(tuple(names), probs, panel.truth)
    lies = len(names) > 6 or sum(map(len, names)) > MAX_LETTERS
    places = np.arange(len(names), dtype=float)
    width = 0.8 / len(probs)
    for number, (label, row) in enumerate(zip(panel.marginals, probs, strict=True)):
        at = places + (number - (len(probs) - 1) / 2) * width
        color = INK if panel.observed else panel.looks[label]["color"]
        draw = ax.barh if lies else ax.bar
        bars = draw(at, row, width, color=color, edgecolor="white", linewidth=0.5)
        if panel.observed:
            panel.legend["observed"] = bars
        elif not panel.is_one:
            for bar in bars:
                bar.set_hatch(HATCHES[number % len(HATCHES)])
            panel.legend[label] = bars
    _label_states(
        ax, [shortened(name, MAX_NAME) for name in names], lies=lies, most=float(probs.max())
    )
    if truth is not None:
        across = ax.get_yaxis_transform() if lies else ax.get_xaxis_transform()
        at_end = ([0.97], [truth]) if lies else ([truth], [0.97])
        mark = TRUTH | ({"marker": "<"} if lies else {})
        (panel.legend["truth"],) = ax.plot(*at_end, transform=across, **mark)


def _label_states(ax: Axes, names: list[str], *, lies: bool, most: float) -> None:
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

    If there are too many states, the last one represents all others.
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
