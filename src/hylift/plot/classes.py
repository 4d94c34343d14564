"""Pictures of lifted graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.lifting import Lifting
from hylift.plot.class_graph import ClassGraph
from hylift.plot.labels import Obstacles, place_labels
from hylift.plot.layout import Positions
from hylift.plot.placement import place_nodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#999999",
)  # Okabe-Ito, told apart by colour-blind readers
INK = "#333333"
LINE = "#8C8C8C"

FONT_SIZE = 8.0


def plot_classes(
    lifting: Lifting,
    ax: Axes | None = None,
    max_classes: int = 40,
    *,
    path: str | Path | None = None,
) -> Axes:
    """The lifted graph: a circle per class of variables, a square per class of factors.

    A circle's area grows with the logarithm of the class, its colour is that of the predicate. A
    double line joins a factor to a class that stands in several of its slots. With more than
    `max_classes` classes only the largest are drawn, and the factors among them. With `path` the
    figure is written there.
    """
    from matplotlib.figure import Figure

    if max_classes < 1:
        raise UnsupportedError(f"a picture shows at least 1 class, not max_classes={max_classes}")
    drawn = ClassGraph.of(lifting.graph, max_classes)
    positions = place_nodes(drawn)
    if ax is None:
        wide, high = np.ptp(positions, axis=0) if len(positions) else (0.0, 0.0)
        least = 6.5 if drawn.num_variables_left else 5.0  # room for the title
        width, height = np.clip([0.8 * wide + 2.6, 0.8 * high + 2], [least, 3], [16, 12]).tolist()
        figure = Figure(figsize=(width, height))
        ax = figure.add_axes((0.01, 0.5 / height, 0.98, 1 - 0.95 / height))
    _draw(ax, drawn, positions)
    ax.set_title(_title(lifting, drawn), fontsize=10, loc="left")
    if path is not None:
        kind = Path(path).suffix.lstrip(".") or "png"
        whole: Any = ax.figure.canvas.figure
        write_whole(path, lambda stream: whole.savefig(stream, format=kind, dpi=150))
    return ax


def _draw(ax: Axes, drawn: ClassGraph, positions: Positions) -> None:
    from matplotlib.lines import Line2D

    circles, squares = positions[: drawn.num_circles], positions[drawn.num_circles :]
    area = 90 + 130 * np.log10(np.maximum(drawn.size, 1))
    colors = [COLORS[place % len(COLORS)] for place in drawn.predicate.tolist()]
    for at, slots in zip(squares, drawn.slots, strict=True):
        for circle, times in zip(*np.unique(slots, return_counts=True), strict=True):
            _join(ax, circles[circle], at, int(times))
    ax.scatter(squares[:, 0], squares[:, 1], s=22, marker="s", color=INK, zorder=3, linewidths=0)
    ax.scatter(
        circles[:, 0], circles[:, 1], s=area, c=colors, edgecolors=INK, linewidths=0.8, zorder=4
    )
    _frame(ax, positions)
    _write_labels(ax, drawn, positions, area)
    handles = [
        Line2D([], [], marker="o", linestyle="", color=COLORS[place % len(COLORS)], label=name)
        for place, name in enumerate(drawn.predicates)
    ]
    handles.append(
        Line2D([], [], marker="s", markersize=4, linestyle="", color=INK, label="factors")
    )
    legend = ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(len(handles), 6),
        fontsize=FONT_SIZE,
        frameon=False,
    )
    for words in legend.get_texts():
        words.set_parse_math(False)


def _frame(ax: Axes, positions: Positions) -> None:
    """Limits that leave room for labels, with equal units, so that the axes are filled."""
    low, high = positions.min(axis=0, initial=0), positions.max(axis=0, initial=0)
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
    ax.set_axis_off()


def _join(ax: Axes, start: Any, end: Any, times: int) -> None:
    """A line; a double one where the class stands in several slots."""
    x, y = zip(start, end, strict=True)
    ax.plot(x, y, color=LINE, linewidth=1 if times == 1 else 3.6, zorder=1)
    if times > 1:
        ax.plot(x, y, color="white", linewidth=1.6, zorder=2)


def _write_labels(
    ax: Axes, drawn: ClassGraph, positions: Positions, area: NDArray[np.float64]
) -> None:
    """Labels of circles, and the sizes of factor classes, where they cover least."""
    from matplotlib.patheffects import withStroke

    num_circles = drawn.num_circles
    at = ax.transData.transform(positions) * 72 / ax.figure.dpi  # in points
    radius = np.concatenate([np.sqrt(area / np.pi), np.full(len(drawn.slots), 3.0)])
    texts = [*drawn.labels, *drawn.counts]
    fonts = np.array([FONT_SIZE] * num_circles + [FONT_SIZE - 1.5] * len(drawn.counts))
    lines = [
        (at[circle], at[num_circles + place])
        for place, joined in enumerate(drawn.joined)
        for circle in joined.tolist()
    ]
    offsets = place_labels(texts, fonts, at, radius, Obstacles.of(at, radius, lines))
    halo = [withStroke(linewidth=2.5, foreground="white", alpha=0.85)]
    for place, (text, offset) in enumerate(zip(texts, offsets, strict=True)):
        ax.annotate(
            text,
            positions[place],
            xytext=offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=fonts[place],
            color=INK,
            path_effects=halo,
            linespacing=1.0,
            parse_math=False,
            zorder=5,
        )


def _title(lifting: Lifting, drawn: ClassGraph) -> str:
    graph, ground = lifting.graph, lifting.ground
    title = (
        f"{ground.num_variables:,} variables in {graph.num_variables:,} classes, "
        f"{ground.num_factors:,} factors in {graph.num_factors:,}"
    )
    if drawn.num_variables_left:
        title += (
            f"\nthe {drawn.num_circles} largest are shown; {drawn.num_variables_left:,} smaller "
            f"ones and {drawn.num_factors_left:,} classes of factors are left out"
        )
    return title
