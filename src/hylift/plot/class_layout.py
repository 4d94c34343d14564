"""Positions of the circles and squares of a class graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from hylift.plot.class_graph import ClassGraph

Positions = NDArray[np.float64]  # (node, 2)

STEPS = 300
PUSHES = 50
LEAST = 0.5
"""Distance of any two nodes, in lengths of an edge, where there is room."""

GAP = np.array([2.2, 1.6])
"""Space between components, across and down, in lengths of an edge: room for a label."""

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))

REACH = 0.55
"""Distance of a square from the only circle it touches, in lengths of an edge."""

CLEARANCE = 0.3
"""Distance of a square from others that suffices, in lengths of an edge."""

SHARES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68])
"""Places of a square on the line between its two circles, the best first."""


def place_nodes(drawn: ClassGraph) -> Positions:
    """(node, 2): circles and then squares, joined ones about one unit apart."""
    joined = drawn.joined
    edges = [
        (circle, drawn.num_circles + place)
        for place, circles in enumerate(joined)
        for circle in circles.tolist()
        if len(circles) > 1
    ]
    joins = [len(circles) > 1 for circles in joined]
    is_laid_out = np.array([True] * drawn.num_circles + joins, dtype=bool)
    index = np.cumsum(is_laid_out) - 1
    positions = np.zeros((len(index), 2))
    positions[is_laid_out] = layout(
        int(is_laid_out.sum()), index[np.array(edges, dtype=np.int64).reshape(-1, 2)]
    )
    _straighten(positions, joined, drawn.num_circles)
    _place_satellites(positions, joined, drawn.num_circles, edges)
    return positions


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
    """The middle of the widest free angle; of similar ones, the uppermost."""
    if not angles:
        return np.pi / 2
    turn = np.sort(np.mod(angles, 2 * np.pi))
    gaps = np.diff(np.append(turn, turn[0] + 2 * np.pi))
    middle = turn + gaps / 2
    return float(middle[np.argmax(np.where(gaps > 0.9 * gaps.max(), np.sin(middle), -2))])


def layout(num_nodes: int, edges: NDArray[np.int64], aspect: float = 1.5) -> Positions:
    """Positions of nodes, an edge (edge, 2) about one unit long; the same graph, the same picture.

    Distances in the picture follow those along edges (stress majorisation, Gansner et al. 2004).
    Components are placed side by side, in a frame that is `aspect` times as wide as high.
    """
    if not num_nodes:
        return np.zeros((0, 2))
    one = np.ones(len(edges))
    adjacency = coo_array((one, (edges[:, 0], edges[:, 1])), shape=(num_nodes, num_nodes)).tocsr()
    num_components, component = connected_components(adjacency, directed=False)
    members = [np.flatnonzero(component == place) for place in range(num_components)]
    members.sort(key=len, reverse=True)
    parts = []
    for nodes in members:
        inner = adjacency[nodes][:, nodes]
        parts.append(_spread(shortest_path(inner, directed=False, unweighted=True)))
    positions = np.zeros((num_nodes, 2))
    for nodes, placed in zip(members, _side_by_side(parts, aspect), strict=True):
        positions[nodes] = placed
    return positions


def _spread(distance: NDArray[np.float64]) -> Positions:
    """Positions of connected nodes, as far from each other as paths between them are long."""
    count = len(distance)
    if count < 3:
        return np.stack([np.arange(count, dtype=np.float64), np.zeros(count)], axis=1)
    positions = _start(distance)
    weight = 1 / (distance + np.eye(count)) ** 2
    np.fill_diagonal(weight, 0)
    solve = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(STEPS):
        apart = positions[:, None] - positions[None]
        length = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-9)
        pull = weight * distance / length
        positions = solve @ ((pull[..., None] * apart).sum(axis=1))
    return _lying(_apart(positions))


def _apart(positions: Positions) -> Positions:
    """Positions with nearly coinciding nodes pushed apart."""
    for _ in range(PUSHES):
        step = positions[:, None] - positions[None]
        length = np.hypot(step[..., 0], step[..., 1])
        lack = np.maximum(LEAST - length, 0)
        np.fill_diagonal(lack, 0)
        if not lack.any():
            break
        push = 0.5 * lack / np.maximum(length, 1e-9)
        positions = positions + (push[..., None] * step).sum(axis=1)
    return positions


def _start(distance: NDArray[np.float64]) -> Positions:
    """Classical multidimensional scaling, with a small offset that separates equal positions."""
    count = len(distance)
    centre = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance**2 @ centre)
    axes = vectors[:, [-1, -2]]
    axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), [0, 1]])
    angle = GOLDEN_ANGLE * np.arange(count)
    nudge = 0.02 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return axes * np.sqrt(np.maximum(values[[-1, -2]], 0)) + nudge


def _lying(positions: Positions) -> Positions:
    """Positions rotated so that the graph is widest from left to right."""
    positions = positions - positions.mean(axis=0)
    _, vectors = np.linalg.eigh(positions.T @ positions)
    turned = positions @ vectors[:, ::-1]
    return turned * np.where(turned[np.argmax(np.abs(turned), axis=0), [0, 1]] < 0, -1, 1)


def _side_by_side(parts: list[Positions], aspect: float) -> list[Positions]:
    """Parts in rows, none overlapping another."""
    sizes = [np.ptp(part, axis=0) + GAP for part in parts]
    area = sum(float(width * height) for width, height in sizes)
    widest = max((float(width) for width, _ in sizes), default=0.0)
    limit = max(np.sqrt(area * aspect), widest) + 1e-9
    placed = []
    x = y = row_height = 0.0
    for part, (width, height) in zip(parts, sizes, strict=True):
        if x and x + width > limit:
            x, y, row_height = 0.0, y - row_height, 0.0
        corner = np.array([x - part[:, 0].min(), y - part[:, 1].max()])
        placed.append(part + corner)
        x, row_height = x + float(width), max(row_height, float(height))
    return placed
