"""Labels beside nodes, placed so that they cover as little as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.plot.style import INK, LETTER, LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]  # (point, 2)
FloatArray = NDArray[np.float64]

LINE_HEIGHT = 1.15
"""Height of a line of text, in font sizes."""

ANGLES = np.deg2rad([-90, 90, 0, 180, -45, -135, 45, 135, -68, -112, 68, 112, -22, 22, 158, -158])
"""Places of a label about its node, the preferred ones first."""

GAPS = (2.0, 6.0, 11.0)
"""Distances of a label from its node, in points."""

TEXT, NODE, NEAR, EDGE, BEYOND = 12.0, 100.0, 15.0, 1.0, 60.0
"""Costs of covering another label (for each tenth of it) or a node, of being nearer to another node
than to one's own, of covering a point of an edge, and of extending beyond the frame."""

ROUNDS = 3

FAR = 14.0
"""Points from a label to its node from which on a line leads from one to the other."""


def write_labels(
    ax: Axes,
    nodes: Points,
    texts: Sequence[str],
    font_sizes: FloatArray,
    obstacles: Obstacles,
    *,
    gaps: Sequence[float] = GAPS,
    halo: float = 2.0,
    has_leaders: bool = False,
) -> None:
    """Write a text beside each node (node, 2), with a white halo and perhaps a line to it."""
    from matplotlib.patheffects import withStroke

    leader = {"arrowstyle": "-", "color": LINE, "linewidth": 0.6}
    steps = place_labels(texts, font_sizes, obstacles, gaps)
    for node, text, font, step in zip(nodes, texts, font_sizes, steps.tolist(), strict=True):
        is_far = has_leaders and np.hypot(*step) > FAR + LETTER * font * len(text) / 2
        ax.annotate(
            text, node, xytext=step, textcoords="offset points", ha="center", va="center",
            fontsize=font, color=INK, parse_math=False, linespacing=1.0, zorder=5,
            path_effects=[withStroke(linewidth=halo, foreground="white", alpha=0.85)],
            arrowprops=leader if is_far else None,
        )  # fmt: skip


def in_points(ax: Axes, pixels: Any) -> Points:
    """Pixels of a figure in points, the unit of fonts."""
    return np.asarray(pixels) * 72.0 / ax.figure.dpi


@dataclass(frozen=True, slots=True, eq=False)
class Obstacles:
    """Discs, and points along lines, that labels should not cover; all lengths in points."""

    nodes: Points
    radius: FloatArray  # (node,)
    on_lines: Points
    frame: Points | None = None  # (2, 2): the lower left and the upper right corner

    @classmethod
    def of(
        cls,
        nodes: Points,
        radius: FloatArray,
        lines: Sequence[tuple[Points, Points]],
        frame: Points | None = None,
    ) -> Obstacles:
        share = np.linspace(0.05, 0.95, 24)[:, None]
        on_lines = [start + share * (end - start) for start, end in lines]
        return cls(nodes, radius, np.concatenate([np.zeros((0, 2)), *on_lines]), frame)

    def covered(self, own: int, steps: Points, half: Points) -> FloatArray:
        """(step,): how bad a box of this size is at such steps from its own node."""
        centre = self.nodes[own] + steps
        outside = np.maximum(np.abs(self.nodes - centre[:, None]) - half, 0)
        gap = np.hypot(outside[..., 0], outside[..., 1]) - self.radius  # (step, node)
        is_near = (gap <= gap[:, [own]]) & (np.arange(len(self.nodes)) != own)
        inside = (np.abs(self.on_lines - centre[:, None]) < half).all(axis=2)
        beyond = np.zeros(len(centre), dtype=bool)
        if self.frame is not None:
            low, high = self.frame
            beyond = ((centre - half < low) | (centre + half > high)).any(axis=1)
        return np.asarray(
            NODE * np.count_nonzero(gap < 0, axis=1)
            + NEAR * np.count_nonzero(is_near, axis=1)
            + EDGE * np.count_nonzero(inside, axis=1)
            + BEYOND * beyond
        )


def place_labels(
    texts: Sequence[str],
    font_sizes: FloatArray,
    obstacles: Obstacles,
    gaps: Sequence[float] = GAPS,
) -> Points:
    """(node, 2): the step from each node to the centre of its text.

    gaps: allowed distances of a label from its node, in points.
    """
    nodes = obstacles.nodes
    half = np.array([_half(text) for text in texts]).reshape(-1, 2) * font_sizes[:, None]
    steps = np.zeros((len(texts), 2))
    written = np.array([bool(text) for text in texts], dtype=bool)
    choices, costs = {}, {}
    for place in np.flatnonzero(written).tolist():
        choices[place] = _choices(half[place], float(obstacles.radius[place]), gaps)
        rank = 0.1 * np.arange(len(choices[place]))
        costs[place] = obstacles.covered(place, choices[place], half[place]) + rank
    is_placed = np.zeros(len(texts), dtype=bool)
    for _ in range(ROUNDS):
        before = steps.copy()
        for place, steps_of_label in choices.items():
            is_placed[place] = False
            others = (nodes + steps)[is_placed], half[is_placed]
            shared = _shared(nodes[place] + steps_of_label, half[place], *others)
            steps[place] = steps_of_label[np.argmin(costs[place] + TEXT * shared)]
            is_placed[place] = True
        if (steps == before).all():
            break
    return steps


def _half(text: str) -> tuple[float, float]:
    """Half the width and height of a text, in font sizes."""
    lines = text.split("\n")
    return LETTER * max(map(len, lines)) / 2, LINE_HEIGHT * len(lines) / 2


def _choices(half: Points, radius: float, gaps: Sequence[float]) -> Points:
    """(choice, 2): steps from a node to a label beside it, the preferred ones first."""
    return np.array([_beside(angle, half, radius + gap) for gap in gaps for angle in ANGLES])


def _beside(angle: float, half: Points, gap: float) -> Points:
    """The centre of a box that touches a disc of radius `gap` from outside, in a direction."""
    direction = np.array([np.cos(angle), np.sin(angle)])
    # The point of the box that is nearest to the disc: its corner, or one on a side of it.
    away = np.clip(2 * direction, -1, 1)
    return direction * gap + away * half


def _shared(centre: Points, half: Points, others: Points, other_half: Points) -> FloatArray:
    """(box,): how much of other boxes is covered, in tenths of the smaller one of the two."""
    room = np.minimum(half, other_half)
    overlap = np.minimum(half + other_half - np.abs(centre[:, None] - others), 2 * room)
    area = np.maximum(overlap, 0).prod(axis=2)
    return np.asarray((10 * area / (4 * room.prod(axis=1))).sum(axis=1))
