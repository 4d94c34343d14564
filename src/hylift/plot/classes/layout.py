"""Where the nodes of a small graph are drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

Positions = NDArray[np.float64]  # (node, 2)

STEPS = 300
PUSHES = 50
LEAST = 0.5
"""Distance of any two nodes, in lengths of an edge, where there is room."""

GAP = np.array([2.2, 1.6])
"""Space between components, across and down, in lengths of an edge: room for a label."""

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def layout(num_nodes: int, edges: NDArray[np.int64], aspect: float = 1.5) -> Positions:
    """Positions of nodes, an edge (edge, 2) about one unit long; the same graph, the same picture.

    Distances in the picture follow those along edges (stress majorisation, Gansner et al. 2004).
    Components stand side by side, in a frame that is `aspect` times as wide as high.
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
    """With nodes that nearly stand on each other pushed away from each other."""
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
    """Classical scaling, with a nudge that sets nodes apart which it puts in one place."""
    count = len(distance)
    centre = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance**2 @ centre)
    axes = vectors[:, [-1, -2]]
    axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), [0, 1]])
    angle = GOLDEN_ANGLE * np.arange(count)
    nudge = 0.02 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return axes * np.sqrt(np.maximum(values[[-1, -2]], 0)) + nudge


def _lying(positions: Positions) -> Positions:
    """Turned so that it is widest from left to right."""
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
