"""Pictures of lifted graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.graph import FactorGraph
from hylift.lifting import Lifting
from hylift.lifting.explanation.predicates import Predicates
from hylift.plot.labels import Obstacles, place_labels
from hylift.plot.layout import Positions, layout

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

MAX_SQUARES = 120
"""Factor classes that are drawn."""

MAX_ALIKE = 3
"""Factor classes of the same variables that are drawn one by one."""

MAX_LABEL = 28
"""Letters of a label."""

FONT_SIZE = 8.0

REACH = 0.55
"""How far a square that touches one class only stands from it, in lengths of an edge."""

CLEARANCE = 0.3
"""How much room a square has, in lengths of an edge, that no better place is looked for."""

SHARES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68])
"""Where on the line between two circles their square may stand, the best place first."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassGraph:
    """The part of a lifted graph that is drawn: circles for variables, squares for factors."""

    variables: NDArray[np.int64]  # (circle,): class
    size: NDArray[np.float64]  # (circle,): ground variables
    color: NDArray[np.int64]  # (circle,): index into `predicates`
    labels: tuple[str, ...]  # (circle,)
    predicates: tuple[str, ...]
    slots: tuple[NDArray[np.int64], ...]  # (square,): circle in each slot
    counts: tuple[str, ...]  # (square,): how many ground factors, or classes of them
    num_variables_left: int
    num_factors_left: int


def plot_classes(
    lifting: Lifting,
    ax: Axes | None = None,
    max_classes: int = 40,
    *,
    path: str | Path | None = None,
) -> Axes:
    """The lifted graph: a circle per class of variables, a square per class of factors.

    A circle's area grows with the logarithm of the class, its colour is that of the predicate. A
    double line joins a factor to a class that stands in two of its slots. With more than
    `max_classes` classes only the largest are drawn, and the factors among them. With `path` the
    figure is written there.
    """
    from matplotlib.figure import Figure

    if max_classes < 1:
        raise UnsupportedError(f"a picture shows at least 1 class, not max_classes={max_classes}")
    drawn = _class_graph(lifting.graph, max_classes)
    positions, width, height = _positions(drawn)
    if ax is None:
        figure = Figure(figsize=(width, height))
        ax = figure.add_axes((0.01, 0.5 / height, 0.98, 1 - 0.95 / height))
    _draw(ax, drawn, positions)
    ax.set_title(_title(lifting, drawn), fontsize=10, loc="left")
    if path is not None:
        kind = Path(path).suffix.lstrip(".") or "png"
        whole: Any = ax.get_figure(root=True)
        write_whole(path, lambda stream: whole.savefig(stream, format=kind, dpi=150))
    return ax


def _class_graph(graph: FactorGraph, max_classes: int) -> ClassGraph:
    multiplicity = graph.variables.multiplicity
    shown = np.sort(np.argsort(-multiplicity, kind="stable")[:max_classes])
    circle = np.full(graph.num_variables, -1, dtype=np.int64)
    circle[shown] = np.arange(len(shown))
    slots, count = [], []
    for group in graph.groups:
        inside = np.flatnonzero((circle[group.scope] >= 0).all(axis=1))
        largest = inside[np.argsort(-group.multiplicity[inside], kind="stable")[:MAX_SQUARES]]
        slots += list(circle[group.scope[largest]])
        count += group.multiplicity[largest].tolist()
    squares = _squares(slots, count)
    predicates = Predicates.of(graph.variables.names)
    num_classes = np.bincount(predicates.of_variable, minlength=len(predicates.names))
    color = predicates.of_variable[shown].astype(np.int64)
    present, color = np.unique(color, return_inverse=True)
    names = tuple(predicates.names[place] for place in present.tolist())
    atoms = graph.variables.names.render(shown).to_pylist()
    alone = num_classes[present[color]] == 1
    labels = tuple(
        _label(names[c] if lonely and size > 1 else atom, size)
        for atom, c, lonely, size in zip(
            atoms, color.tolist(), alone.tolist(), multiplicity[shown].tolist(), strict=True
        )
    )
    return ClassGraph(
        shown,
        multiplicity[shown],
        color,
        labels,
        names,
        tuple(np.array(scope) for scope, _, _ in squares),
        tuple(text for _, text, _ in squares),
        graph.num_variables - len(shown),
        graph.num_factors - sum(num_classes for _, _, num_classes in squares),
    )


def _squares(
    slots: list[NDArray[np.int64]], multiplicity: list[float]
) -> list[tuple[tuple[int, ...], str, int]]:
    """What is drawn as a square: its circles, its label, and how many factor classes it is.

    Many classes of factors over the same circles, which differ in parameters, are one square.
    """
    alike: dict[tuple[int, ...], list[float]] = {}
    largest = np.sort(np.argsort(-np.array(multiplicity), kind="stable")[:MAX_SQUARES])
    for place in largest.tolist():
        scope = tuple(sorted(slots[place].tolist()))
        alike.setdefault(scope, []).append(multiplicity[place])
    found = []
    for scope, sizes in alike.items():
        if len(sizes) > MAX_ALIKE:
            found.append((scope, f"{len(sizes)} classes", len(sizes)))
        else:
            found += [(scope, f"×{size:,.0f}" if size > 1 else "", 1) for size in sizes]
    return found


def _label(name: str, size: float) -> str:
    short = name if len(name) <= MAX_LABEL else name[: MAX_LABEL - 1] + "…"
    return f"{short}\n×{size:,.0f}" if size > 1 else short


def _positions(drawn: ClassGraph) -> tuple[Positions, float, float]:
    """Where circles and then squares stand, and how large a figure suits them (inches)."""
    num_circles = len(drawn.variables)
    joined = [np.unique(slots) for slots in drawn.slots]
    edges = [
        (circle, num_circles + place)
        for place, circles in enumerate(joined)
        for circle in circles.tolist()
        if len(circles) > 1
    ]
    nodes = np.unique([node for edge in edges for node in edge] + [*range(num_circles)])
    index = np.zeros(num_circles + len(joined), dtype=np.int64)
    index[nodes] = np.arange(len(nodes))
    positions = np.zeros((len(index), 2))
    positions[nodes] = layout(len(nodes), index[np.array(edges, dtype=np.int64).reshape(-1, 2)])
    _straighten(positions, joined, num_circles)
    _place_satellites(positions, joined, num_circles, edges)
    wide, high = np.ptp(positions, axis=0) if len(positions) else (0.0, 0.0)
    return positions, float(np.clip(0.8 * wide + 2.6, 5, 16)), float(np.clip(0.8 * high + 2, 3, 12))


def _straighten(positions: Positions, joined: list[NDArray[np.int64]], num_circles: int) -> None:
    """Puts a square that alone joins two circles on the line between them, near its middle."""
    pairs = [tuple(circles.tolist()) for circles in joined]
    movable = [len(pair) == 2 and pairs.count(pair) == 1 for pair in pairs]
    settled = np.array(
        [True] * num_circles
        + [len(pair) > 1 and not free for pair, free in zip(pairs, movable, strict=True)]
    )
    for place in np.flatnonzero(movable).tolist():
        start, end = positions[joined[place]]
        choices = start + SHARES[:, None] * (end - start)
        room = np.hypot(*(positions[settled][:, None] - choices).T).min(axis=1)
        best = int(np.argmax(np.minimum(room, CLEARANCE)))
        positions[num_circles + place] = choices[best]
        settled[num_circles + place] = True


def _place_satellites(
    positions: Positions,
    joined: list[NDArray[np.int64]],
    num_circles: int,
    edges: list[tuple[int, int]],
) -> None:
    """Puts squares that touch one circle beside it, where its edges leave most room."""
    directions: list[list[float]] = [[] for _ in range(num_circles)]
    for circle, square in edges:
        x, y = positions[square] - positions[circle]
        directions[circle].append(float(np.arctan2(y, x)))
    for place, circles in enumerate(joined):
        if len(circles) > 1:
            continue
        circle = int(circles[0])
        angle = _widest_gap(directions[circle])
        directions[circle].append(angle)
        step = REACH * np.array([np.cos(angle), np.sin(angle)])
        positions[num_circles + place] = positions[circle] + step


def _widest_gap(angles: list[float]) -> float:
    """The middle of the largest angle that is free."""
    if not angles:
        return np.pi / 2
    turn = np.sort(np.mod(angles, 2 * np.pi))
    gaps = np.diff(np.append(turn, turn[0] + 2 * np.pi))
    widest = int(np.argmax(gaps > gaps.max() - 1e-9))
    return float(turn[widest] + gaps[widest] / 2)


def _draw(ax: Axes, drawn: ClassGraph, positions: Positions) -> None:
    from matplotlib.lines import Line2D

    num_circles = len(drawn.variables)
    circles, squares = positions[:num_circles], positions[num_circles:]
    area = 90 + 130 * np.log10(np.maximum(drawn.size, 1))
    colors = [COLORS[place % len(COLORS)] for place in drawn.color.tolist()]
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
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(len(handles), 6),
        fontsize=FONT_SIZE,
        frameon=False,
    )


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
    """A line; a double one where the class stands in several slots, with their number from 3."""
    x, y = zip(start, end, strict=True)
    ax.plot(x, y, color=LINE, linewidth=1 if times == 1 else 3.6, zorder=1)
    if times > 1:
        ax.plot(x, y, color="white", linewidth=1.6, zorder=2)
    if times > 2:
        middle = (start + end) / 2
        ax.annotate(f"{times} slots", middle, fontsize=FONT_SIZE - 1, color=INK, ha="center")


def _write_labels(
    ax: Axes, drawn: ClassGraph, positions: Positions, area: NDArray[np.float64]
) -> None:
    """Labels of circles, and the sizes of factor classes, where they cover least."""
    from matplotlib.patheffects import withStroke

    num_circles = len(drawn.variables)
    figure: Any = ax.get_figure(root=True)
    at = ax.transData.transform(positions) * 72 / figure.dpi  # in points
    radius = np.concatenate([np.sqrt(area / np.pi), np.full(len(drawn.slots), 3.0)])
    texts = [*drawn.labels, *drawn.counts]
    fonts = np.array([FONT_SIZE] * num_circles + [FONT_SIZE - 1.5] * len(drawn.counts))
    lines = [
        (at[circle], at[num_circles + place])
        for place, slots in enumerate(drawn.slots)
        for circle in np.unique(slots).tolist()
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
            f"\nthe {len(drawn.variables)} largest are shown; {drawn.num_variables_left:,} smaller "
            f"ones and {drawn.num_factors_left:,} classes of factors are left out"
        )
    return title
