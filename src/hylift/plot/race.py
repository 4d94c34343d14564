"""Pictures of a race: quality against time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.inference.capabilities import METHODS
from hylift.plot.labels import Obstacles, in_points, write_labels
from hylift.plot.style import (
    COLORS,
    FONT_SIZE,
    LINE,
    any_letters,
    dress,
    label_log_time,
    write_figure,
)
from hylift.posterior import History
from hylift.posterior.answers import Measure
from hylift.racing import Finish, Race

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]  # (point, 2)

WIDTH, PANEL_HEIGHT = 7.2, 2.9
"""Width of the figure and height of each panel, in inches."""
MARK_SIZE = 6.5
LEAST_KL = 1e-16
"""Smaller divergences are rounding errors, and drawn as this."""
MOST_ENERGY = 1e6
"""Largest ratio of the largest to the smallest positive gap on the axis."""
LONGEST_TIME = 1e4
"""Largest ratio of the longest to the shortest time on the axis."""
GAPS = (2.0, 7.0, 15.0, 25.0, 36.0)
"""Distances of names from their marks, in points."""
DARK = (*(color for color in COLORS if color != "#F0E442"), "#332288", "#882255", "#117733")
"""Without yellow, which is not seen on white."""
LABELS = [info.label for info in METHODS]
LABELS += [f"{info.label} coarse-to-fine" for info in METHODS if info.races_coarse]
"""Names without settings, in the order of their colors."""
MARKERS = {"exact": "D", "lower bound": "^", "upper bound": "v", "interval": "s", "estimate": "o"}


class _Mark(NamedTuple):
    """The end of a method in a panel."""

    finish: Finish
    height: float
    marker: str = "o"
    reach: float = 0.0
    """The true height is certainly no further off; 0 where that is not known."""


@dataclass(slots=True)
class _Panel:
    """Marks with labels, and curves, of one quantity against time."""

    draw_frame: Callable[[Axes, _Panel], None]
    """Scales, limits and words of the axes."""
    marks: list[_Mark] = field(default_factory=list)
    curves: dict[str, Points] = field(default_factory=dict)
    """Way of a method to its mark, by label."""
    line: float | None = None
    """A height that is drawn from side to side."""
    height: float = 1.0
    """Height of the panel, relative to the others."""

    @property
    def points(self) -> Points:
        """(mark, 2): seconds and heights."""
        return np.array([(mark.finish.seconds, mark.height) for mark in self.marks])


def plot_race(race: Race, *, path: str | Path | None = None) -> list[Axes]:
    """Divergence from the yardstick, MAP energy and log Z against time, a mark per method.

    Panels that would be empty are left out. Curves show how variational methods and MaxWalkSAT
    got there. With `path` the figure is written there.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_figure(path)
    if not isinstance(race, Race):
        raise UnsupportedError(f"plot_race draws what race(graph) returns, not {race!r}")
    panels = [made for made in (_divergence(race), _energy(race), _log_z(race)) if made.marks]
    if not panels:
        raise UnsupportedError("no method of this race has anything that could be drawn")
    heights = [panel.height for panel in panels]
    figure = Figure(figsize=(WIDTH, PANEL_HEIGHT * sum(heights) + 0.3), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, sharex=True, height_ratios=heights)
    axes: list[Axes] = list(grid[:, 0])
    color = _colors([one.label for one in race])
    label_log_time(axes[-1])
    axes[-1].set_xlim(*_times(race, panels))
    axes[-1].set_xlabel("seconds")
    for ax, panel in zip(axes, panels, strict=True):
        panel.draw_frame(ax, panel)
        _draw(ax, panel, color)
    with any_letters():
        figure.draw_without_rendering()  # so that it is known how far apart the marks are
    for ax, panel in zip(axes, panels, strict=True):
        _write_labels(ax, panel)
    write_figure(figure, path)
    return axes


def _colors(labels: Sequence[str]) -> dict[str, str]:
    """A color per label, the same in all pictures for methods that every race has."""
    free = [color for color in DARK if color not in {_own_color(label) for label in labels}]
    others = cycle(free or DARK)
    found: dict[str, str] = {}
    for label in labels:
        own = _own_color(label)
        found[label] = own if own is not None and own not in found.values() else next(others)
    return found


def _own_color(label: str) -> str | None:
    """The color of a method, regardless of its settings."""
    name = re.sub(r"\(.*?\)| #\d+$", "", label)
    return DARK[LABELS.index(name) % len(DARK)] if name in LABELS else None


def _divergence(race: Race) -> _Panel:
    """Mean KL to the yardstick; infinite ones are on the upper edge."""
    found = [one for one in race if one.mean_kl is not None]
    finite = [max(one.mean_kl or 0.0, LEAST_KL) for one in found if np.isfinite(one.mean_kl or 0.0)]
    low, high = min(finite, default=1.0), max(finite, default=1.0)
    high = max(high, 10 * low)
    reach = (high / low) ** 0.15

    def frame(ax: Axes, panel: _Panel) -> None:
        ax.set_yscale("log")
        ax.set_ylim(low / reach, high * reach)
        ax.set_ylabel("mean KL of marginals")
        if race.yardstick is not None:
            best = race.best
            ax.axvline(best.seconds, color=LINE, linewidth=1, linestyle=":", zorder=1)
            words = f"from {best.label} ({race.yardstick.reason}), whose time is dotted"
            if low == LEAST_KL:
                words += f"; less than {LEAST_KL:g} is drawn as that"
            if len(finite) < len(found):
                words += "; on the upper edge: infinite"
            ax.set_title(words, fontsize=FONT_SIZE, loc="left", parse_math=False)

    panel = _Panel(frame)
    for one in found:
        kl = one.mean_kl or 0.0
        panel.marks.append(_Mark(one, max(kl, LEAST_KL) if np.isfinite(kl) else high * reach))
    return panel


def _energy(race: Race) -> _Panel:
    """Energies above the lowest one found, which is at 0; infinite ones are on the upper edge."""
    least = np.inf if race.least_energy is None else race.least_energy

    def frame(ax: Axes, panel: _Panel) -> None:
        ax.set_yscale("symlog", linthresh=smallest, linscale=0.6)
        ax.set_ylim(-0.45 * smallest, top)
        ax.set_ylabel("MAP energy\nabove the best")
        ax.set_title(f"best energy found: {least:.8g}", fontsize=FONT_SIZE, loc="left")
        if top == smallest:
            ax.set_yticks([0.0])

    panel = _Panel(frame)
    for one in race:
        assignment, history = one.posterior.assignment, one.posterior.solution.history
        if assignment is None or not np.isfinite(least):
            continue
        height = race.above_least(np.array(assignment.energy))
        panel.marks.append(_Mark(one, float(height), MARKERS[assignment.kind]))
        # Of chains the energies are those of draws, not of the best assignment so far.
        is_search = one.posterior.draws is None and _measures(history, "energy")
        if is_search and history is not None:
            way = race.above_least(np.minimum.accumulate(history.objective))
            known = np.isfinite(way)
            if known.any():
                panel.curves[one.label] = np.stack([history.seconds, way], axis=1)[known]
    on_curves = any(way[:, 1].any() for way in panel.curves.values())
    panel.height = 1.0 if any(mark.height for mark in panel.marks) or on_curves else 0.6
    smallest, top = _scale(panel)
    panel.marks = [mark._replace(height=min(mark.height, top)) for mark in panel.marks]
    return panel


def _scale(panel: _Panel) -> tuple[float, float]:
    """The smallest positive gap between energies on the axis, and the upper edge."""
    heights = [mark.height for mark in panel.marks]
    gaps = np.concatenate([heights, *(way[:, 1] for way in panel.curves.values())])
    positive = gaps[(gaps > 0) & np.isfinite(gaps)]
    largest = float(positive.max(initial=0.0))
    if not largest:
        return 1.0, 1.0
    smallest = max(float(positive.min()), largest / MOST_ENERGY)
    return float(10 ** np.floor(np.log10(smallest))), 4 * largest


def _measures(history: History | None, measure: Measure) -> bool:
    """Return whether there are steps that measured this."""
    return history is not None and len(history) > 1 and history.measure == measure


def _log_z(race: Race) -> _Panel:
    """log Z with its kind; a lower bound points upwards, an upper one downwards, an interval is
    drawn as long as it is, and the exact value is a line."""

    def frame(ax: Axes, panel: _Panel) -> None:
        low = min(mark.height - mark.reach for mark in panel.marks)
        high = max(mark.height + mark.reach for mark in panel.marks)
        margin = 0.15 * (high - low) or 0.1 * (1 + abs(high))
        ax.set_ylim(low - margin, high + margin)
        ax.set_ylabel("log Z")
        exact = ""
        if panel.line is not None:
            ax.axhline(panel.line, color=LINE, linewidth=1, linestyle=":", zorder=1)
            exact = f"exact: {panel.line:.8g} (dotted); "
        words = f"{exact}triangles are bounds, squares intervals, circles estimates"
        ax.set_title(words, fontsize=FONT_SIZE, loc="left")
        ax.ticklabel_format(axis="y", useOffset=False)

    panel = _Panel(frame)
    for one in race:
        log_z, history = one.posterior.log_partition, one.posterior.solution.history
        if log_z is None or not np.isfinite(log_z.value):
            continue
        reach = log_z.error if log_z.kind == "interval" else 0.0
        panel.marks.append(_Mark(one, log_z.value, MARKERS[log_z.kind], reach))
        if log_z.kind == "exact" and panel.line is None:
            panel.line = log_z.value
        if history is not None and _measures(history, "free energy"):
            way = np.stack([history.seconds, -history.objective], axis=1)
            panel.curves[one.label] = way[np.isfinite(way[:, 1])]
    return panel


def _times(race: Race, panels: Sequence[_Panel]) -> tuple[float, float]:
    """The ends of the axis of time, with room for labels."""
    starts = [way[0, 0] for panel in panels for way in panel.curves.values() if len(way)]
    last = max(one.seconds for one in race)
    first = max(min([*(one.seconds for one in race), *starts]), last / LONGEST_TIME)
    span = max(last / first, 3.0)
    return first / span**0.12, last * span**0.2


def _draw(ax: Axes, panel: _Panel, color: dict[str, str]) -> None:
    for label, way in panel.curves.items():
        ax.plot(*way.T, color=color[label], linewidth=1.1, alpha=0.8, zorder=2)
        end = panel.points[[mark.finish.label for mark in panel.marks].index(label)]
        rest = np.stack([way[-1], end])  # what came after the last step
        ax.plot(*rest.T, color=color[label], linewidth=0.9, linestyle=":", zorder=2)
    for one, height, marker, reach in panel.marks:
        if reach:
            ends = [height - reach, height + reach]
            ax.plot([one.seconds] * 2, ends, color=color[one.label], linewidth=1.1, zorder=2)
        ax.plot(
            [one.seconds], [height], linestyle="", marker=marker, markersize=MARK_SIZE,
            color=color[one.label], markeredgecolor="white", markeredgewidth=0.6, zorder=3,
            clip_on=False,
        )  # fmt: skip
    ax.grid(color="#E6E6E6", linewidth=0.6)
    ax.set_axisbelow(True)
    dress(ax)


def _write_labels(ax: Axes, panel: _Panel) -> None:
    """Names beside the marks, where they cover neither each other nor curves."""
    at = in_points(ax, ax.transData.transform(panel.points))
    frame = in_points(ax, ax.get_window_extent().get_points())
    lines: list[tuple[Points, Points]] = []
    for drawn in ax.lines:
        way = in_points(ax, drawn.get_transform().transform(drawn.get_xydata()))
        lines += list(pairwise(way[:: max(1, len(way) // 60)]))
    obstacles = Obstacles.of(at, np.full(len(at), MARK_SIZE / 2 + 1), lines, frame)
    texts, fonts = [mark.finish.label for mark in panel.marks], np.full(len(at), FONT_SIZE)
    write_labels(ax, panel.points, texts, fonts, obstacles, gaps=GAPS, has_leaders=True)
