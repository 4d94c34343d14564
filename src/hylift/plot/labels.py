"""Labels beside the nodes of a picture, where they cover least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (point, 2)

LETTER = 0.58
"""Mean width of a letter, in font sizes."""

LINE = 1.15
"""Height of a line of text, in font sizes."""

ANGLES = np.deg2rad([-90, 90, 0, 180, -45, -135, 45, 135])
"""Places of a label about its node, the preferred ones first."""

TEXT, NODE, EDGE = 12.0, 12.0, 1.0
"""How bad it is to cover a point of another label, of a node, or of an edge."""


@dataclass(frozen=True, slots=True, eq=False)
class Obstacles:
    """What labels should not cover, as weighted points."""

    points: Points
    weight: NDArray[np.float64]  # (point,)

    @classmethod
    def of(
        cls, nodes: Points, radius: NDArray[np.float64], lines: Sequence[tuple[Points, Points]]
    ) -> Obstacles:
        """Nodes with their rims, and points along lines."""
        turn = np.linspace(0, 2 * np.pi, 8, endpoint=False)
        rim = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        on_nodes = (nodes[:, None] + radius[:, None, None] * rim).reshape(-1, 2)
        share = np.linspace(0.05, 0.95, 24)[:, None]
        on_lines = [start + share * (end - start) for start, end in lines]
        points = np.concatenate([nodes, on_nodes, *on_lines])
        num_on_nodes = len(nodes) + len(on_nodes)
        weight = np.full(len(points), EDGE)
        weight[:num_on_nodes] = NODE
        return cls(points, weight)

    def covered(self, centre: Points, half: Points) -> float:
        """The weight of what lies in a box."""
        inside = (np.abs(self.points - centre) < half).all(axis=1)
        return float(self.weight[inside].sum())

    def with_box(self, centre: Points, half: Points) -> Obstacles:
        """One more label: a grid of points over its box."""
        across = np.linspace(-1, 1, 9)
        grid = np.stack(np.meshgrid(across, across[::2]), axis=-1).reshape(-1, 2)
        return Obstacles(
            np.concatenate([self.points, centre + grid * half]),
            np.concatenate([self.weight, np.full(len(grid), TEXT)]),
        )


def place_labels(
    texts: Sequence[str],
    font_sizes: NDArray[np.float64],
    nodes: Points,
    radius: NDArray[np.float64],
    obstacles: Obstacles,
) -> list[tuple[float, float]]:
    """Per text the step from its node to the text's centre; all lengths in points."""
    steps = []
    for text, font, node, size in zip(texts, font_sizes.tolist(), nodes, radius, strict=True):
        lines = text.split("\n")
        half = np.array([LETTER * max(map(len, lines)), LINE * len(lines)]) * font / 2
        best, least = np.zeros(2), np.inf
        for rank, angle in enumerate(ANGLES if text else ()):
            step = _beside(angle, half, float(size) + 2)
            cost = obstacles.covered(node + step, half) + 0.1 * rank
            if cost < least:
                best, least = step, cost
        if text:
            obstacles = obstacles.with_box(node + best, half)
        steps.append((float(best[0]), float(best[1])))
    return steps


def _beside(angle: float, half: Points, gap: float) -> Points:
    """The centre of a box that touches a disc of radius `gap` from outside, in a direction."""
    direction = np.array([np.cos(angle), np.sin(angle)])
    if abs(direction[0]) > 1e-9 and abs(direction[1]) > 1e-9:  # its corner touches
        return direction * gap + np.sign(direction) * half
    return direction * gap + np.round(direction) * half
