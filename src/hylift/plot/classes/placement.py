"""Where the circles and squares of a class graph stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.plot.classes.class_graph import ClassGraph
from hylift.plot.classes.layout import Positions, layout

REACH = 0.55
"""How far a square that touches one circle only stands from it, in lengths of an edge."""

CLEARANCE = 0.3
"""How much room a square has, in lengths of an edge, that no better place is looked for."""

SHARES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68])
"""Where on the line between two circles their square may stand, the best place first."""


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
    """The middle of the largest angle that is free; upwards, among angles of about one size."""
    if not angles:
        return np.pi / 2
    turn = np.sort(np.mod(angles, 2 * np.pi))
    gaps = np.diff(np.append(turn, turn[0] + 2 * np.pi))
    middle = turn + gaps / 2
    return float(middle[np.argmax(np.where(gaps > 0.9 * gaps.max(), np.sin(middle), -2))])
