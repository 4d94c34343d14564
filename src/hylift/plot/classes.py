"""Plot of a lifted graph: circles for variable classes, squares for factor classes."""

from __future__ import annotations

import numbers
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.graph import FactorGraph
from hylift.lifting import Lifting
from hylift.plot.class_graph import ClassGraph
from hylift.plot.class_layout import Positions, place_nodes
from hylift.plot.labels import Obstacles, in_points, write_labels
from hylift.plot.style import COLORS, INK, LETTER, LINE, width_of, write_figure, write_legend
from hylift.words import counted, num_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT_SIZE = 8.0
TITLE_SIZE = 10.0
LEAST_SIZE = 4.0
"""Smallest font size in small axes; smaller text is left out."""

SMALL = 300.0
"""Width of axes, in points, up to which their title and legend are small."""

UNIT = 0.8
"""Inches of an edge in a figure of its own."""


def plot_classes(
    lifting: Lifting,
    *,
    ax: Axes | None = None,
    max_classes: int = 40,
    path: str | Path | None = None,
) -> Axes:
    """The lifted graph: a circle per class of variables, a square per class of factors.

    A circle's area grows with the logarithm of the class, its colour is that of the predicate. A
    double line joins a factor to a class in several of its slots. With more than `max_classes`
    classes a connected part with every predicate is drawn, large classes first, and the factors
    among them; the title says how many are left out. With `path` the figure is
    written there.
    """
    from matplotlib.figure import Figure

    _check(lifting, max_classes, path)
    drawn = ClassGraph.of(lifting.graph, max_classes)
    positions = place_nodes(drawn)
    title = _title(lifting, drawn)
    if ax is None:
        wide, high = np.ptp(positions, axis=0) if len(positions) else (0.0, 0.0)
        least = 6.5 if "\n" in title else 5.0  # room for the title
        width, height = np.clip([UNIT * wide + 2.6, UNIT * high + 2], [least, 3], [16, 12]).tolist()
        figure = Figure(figsize=(width, height))
        ax = figure.add_axes((0.01, 0.5 / height, 0.98, 1 - 0.95 / height))
    ax.set_axis_off()
    if drawn.num_circles:
        _draw(ax, drawn, positions)
    else:
        _say_why_empty(ax, lifting)
    _write_title(ax, title)
    write_figure(ax, path)
    return ax


def _check(lifting: Lifting, max_classes: int, path: str | Path | None) -> None:
    """Raise an error for arguments of the wrong type."""
    if isinstance(lifting, FactorGraph):
        raise UnsupportedError(
            "plot_classes draws a lifting, not a FactorGraph: pass hl.lift(graph)"
        )
    if not isinstance(lifting, Lifting):
        raise UnsupportedError(
            "plot_classes draws a lifting, such as hl.lift(graph), not a value of type "
            f"'{type(lifting).__name__}'"
        )
    if not isinstance(max_classes, numbers.Integral) or max_classes < 1:
        raise UnsupportedError(f"max_classes must be an integer of at least 1, not {max_classes!r}")
    if path is not None:
        check_figure(path)


def _draw(ax: Axes, drawn: ClassGraph, positions: Positions) -> None:
    circles, squares = positions[: drawn.num_circles], positions[drawn.num_circles :]
    scale = _frame(ax, positions)
    area = (90 + 130 * np.log10(np.maximum(drawn.size, 1))) * scale**2
    colors = [COLORS[place % len(COLORS)] for place in drawn.predicate.tolist()]
    for at, slots in zip(squares, drawn.slots, strict=True):
        for circle, times in zip(*np.unique(slots, return_counts=True), strict=True):
            _join(ax, circles[circle], at, int(times), scale)
    x, y = squares.T
    ax.scatter(x, y, s=22 * scale**2, marker="s", color=INK, zorder=3, linewidths=0)
    x, y = circles.T
    ax.scatter(x, y, s=area, c=colors, edgecolors=INK, linewidths=0.8 * scale, zorder=4)
    _write_labels(ax, drawn, positions, area, scale)
    _write_legend(ax, drawn.predicates)


def _write_legend(ax: Axes, predicates: tuple[str, ...]) -> None:
    """Colours of predicates below the picture."""
    from matplotlib.lines import Line2D

    handles = {
        name: Line2D([], [], marker="o", linestyle="", color=COLORS[place % len(COLORS)])
        for place, name in enumerate(predicates)
    }
    handles["factors"] = Line2D([], [], marker="s", markersize=4, linestyle="", color=INK)
    font_size = FONT_SIZE if width_of(ax) > SMALL else 0.7 * FONT_SIZE
    write_legend(ax, handles, where="below", font_size=font_size)


def _frame(ax: Axes, positions: Positions) -> float:
    """Sets limits that leave room for labels, with equal units, so that the axes are filled.

    Returns how large things are drawn, 1 where there is room.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    box = ax.get_window_extent()
    wanted = high - low + np.array([2.0, 1.4])  # in lengths of an edge
    unit = max(wanted[0] / max(box.width, 1), wanted[1] / max(box.height, 1))
    half = unit * np.array([box.width, box.height]) / 2
    middle = (low + high) / 2
    ax.set(
        xlim=(middle[0] - half[0], middle[0] + half[0]),
        ylim=(middle[1] - half[1], middle[1] + half[1]),
    )
    ax.set_aspect("equal")
    inches = 1 / unit / ax.figure.dpi
    return float(np.clip(1.2 * inches / UNIT, 0.2, 1.0))


def _say_why_empty(ax: Axes, lifting: Lifting) -> None:
    why = (
        "All variables are observed." if lifting.source.num_variables else "There are no variables."
    )
    ax.text(
        0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=INK,
        fontsize=FONT_SIZE,
    )  # fmt: skip


def _write_title(ax: Axes, title: str) -> None:
    """The title, in lines that are no longer than the axes are wide."""
    size = TITLE_SIZE if width_of(ax) > SMALL else 0.7 * TITLE_SIZE
    letters = max(int(width_of(ax) / (LETTER * size)), 20)
    lines = [part for line in title.split("\n") for part in textwrap.wrap(line, letters)]
    ax.set_title("\n".join(lines), fontsize=size, loc="left")


def _join(ax: Axes, start: Any, end: Any, times: int, scale: float) -> None:
    """A line; a double one if the class is in several slots."""
    x, y = zip(start, end, strict=True)
    ax.plot(x, y, color=LINE, linewidth=scale * (1 if times == 1 else 3.6), zorder=1)
    if times > 1:
        ax.plot(x, y, color="white", linewidth=1.6 * scale, zorder=2)


def _write_labels(
    ax: Axes, drawn: ClassGraph, positions: Positions, area: NDArray[np.float64], scale: float
) -> None:
    """Labels of circles, and the sizes of factor classes, where they cover least."""
    num_circles = drawn.num_circles
    at = in_points(ax, ax.transData.transform(positions))
    radius = np.concatenate([np.sqrt(area / np.pi), np.full(len(drawn.slots), 3.0 * scale)])
    # Fonts shrink less than nodes, down to the smallest readable size.
    fonts = np.sqrt(scale) * np.array(
        [FONT_SIZE] * num_circles + [FONT_SIZE - 1.5] * len(drawn.counts)
    )
    texts = [*drawn.labels, *drawn.counts]
    texts = [text if font >= LEAST_SIZE else "" for text, font in zip(texts, fonts, strict=True)]
    lines = [
        (at[circle], at[num_circles + place])
        for place, joined in enumerate(drawn.joined)
        for circle in joined.tolist()
    ]
    obstacles = Obstacles.of(at, radius, lines)
    write_labels(ax, positions, texts, fonts, obstacles, halo=2.5 * scale)


def _title(lifting: Lifting, drawn: ClassGraph) -> str:
    """The size of the graph, and how much of it is left out."""
    graph, ground = lifting.graph, lifting.ground
    title = (
        f"{counted(ground.num_variables, 'variable')} in {num_classes(graph.num_variables)}, "
        f"{counted(ground.num_factors, 'factor')} in {graph.num_factors:,}"
    )
    factors = drawn.num_factors_left
    of_factors = f"{num_classes(factors)} of factors" if factors else ""
    if drawn.num_variables_left:
        others = counted(drawn.num_variables_left, "other")
        left = f"{others} and {of_factors}" if factors else others
        verb = "is" if left == "1 other" else "are"
        title += f"\n{num_classes(drawn.num_circles)} shown; {left} {verb} left out"
    elif factors:
        title += f"\n{of_factors} {'is' if factors == 1 else 'are'} left out"
    return title
