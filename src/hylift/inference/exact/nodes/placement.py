"""Nodes placed where the probability is, for reals whose functions leave no bell to go by.

A window is moved and narrowed on few nodes until it holds all but a negligible share, then nodes
are added until the answer stays the same. Along x = centre + unit · sinh(u), steps in u are equal
near the centre and grow with the distance beyond: variances and scales look like bells. Where they
do, nodes are gathered in the middle of the window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import legendre

from hylift.errors import UnsupportedError
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, scope_edges
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.numerics.sparse import connected
from hylift.rewrite.kinds import Kinds

FIRST_UNIT = 1e-4
"""First unit, in widths of the interval, or absolute where it has none."""
FIRST_REACH = 1e12
"""First distance from the centre to an end without bound, in units."""
FARTHEST = 1e30
"""Size of a number beyond which no probability is sought."""
SETTLED = 0.7
"""Share of its width that a window keeps once it has settled."""
BEND = 0.2
"""Of scales of bells, with which the fewest nodes are as good as more without."""
BELL = 0.5
"""Share of the depth of a window to which the density of a bell falls at both ends."""
LOWEST = 1e8
"""Logarithm of the largest ratio of densities that is told apart."""
QUARTILES = 4.0
"""Largest unit of a real without bounds, in distances between its quartiles: windows of heavy tails
are much wider."""
CLOSER = 0.1
"""The same in distances between nodes, where one of them has both quartiles."""
NARROW = 1e-6
"""Least share of a window on either side of the middle of its probability."""
FEW_ABOVE = 5
"""Nodes above the floor that show where a density crosses it."""
SLACK = 3.0
"""Log-density above the floor that is tolerated at the edge of a window."""
MOST_ROUNDS = 60
FEWEST = 8
"""Nodes of a real at the least."""
DENSITY_PANELS, DENSITY_DEGREE, DENSITY_NODES = 24, 16, 4
"""Panels of densities in x at the least, nodes of each, and nodes for each that was computed."""
LOCAL = 8
"""Nodes of a local interpolation."""
DEEPEST = 600.0
"""Logarithm of the largest ratio of densities that is interpolated as a logarithm."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """x = centre + unit · sinh(u), or x = u where the unit is 0, with
    u = middle + half (t + bend t³) / (1 + bend): a bend gathers points in the middle."""

    centre: FloatArray  # (real,)
    unit: FloatArray  # (real,)
    middle: FloatArray  # (real,)
    half: FloatArray  # (real,)
    bend: FloatArray  # (real,)

    @classmethod
    def linear(cls, count: int) -> Scale:
        return cls.along(np.zeros(count), np.zeros(count))

    @classmethod
    def along(cls, centre: FloatArray, unit: FloatArray) -> Scale:
        """With t = u."""
        return cls(centre, unit, np.zeros(len(unit)), np.ones(len(unit)), np.zeros(len(unit)))

    def take(self, rows: Ids) -> Scale:
        parts = (self.centre, self.unit, self.middle, self.half, self.bend)
        return Scale(*(part[rows] for part in parts))

    def _u(self, t: FloatArray) -> FloatArray:
        bend = self.bend[:, None]
        return self.middle[:, None] + self.half[:, None] * (t + bend * t**3) / (1.0 + bend)

    def value(self, t: FloatArray) -> FloatArray:
        """(real, point): x at t (real, point)."""
        u, unit = self._u(t), self.unit[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(unit > 0, self.centre[:, None] + unit * np.sinh(u), u)

    def slope(self, t: FloatArray) -> FloatArray:
        """(real, point): dx/dt."""
        unit, bend = self.unit[:, None], self.bend[:, None]
        inner = self.half[:, None] * (1.0 + 3.0 * bend * t**2) / (1.0 + bend)
        with np.errstate(over="ignore", invalid="ignore"):
            return inner * np.where(unit > 0, unit * np.cosh(self._u(t)), 1.0)

    def place(self, x: FloatArray) -> FloatArray:
        """(real, point): t of x (real, point)."""
        unit, bend = self.unit[:, None], self.bend[:, None]
        away = (x - self.centre[:, None]) / np.where(unit > 0, unit, 1.0)
        s = (np.where(unit > 0, np.arcsinh(away), x) - self.middle[:, None]) / self.half[:, None]
        # t + bend t³ = (1 + bend) s has the root k sinh(θ) with k² = 4 / (3 bend).
        k = 2.0 / np.sqrt(3.0 * np.where(bend > 0, bend, 1.0))
        return np.where(bend > 0, k * np.sinh(np.arcsinh(3.0 * (1.0 + bend) * s / k) / 3.0), s)


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Densities of some reals at nodes of their windows."""

    u: FloatArray  # (real, node)
    log_density: FloatArray  # (real, node), in u; -inf where it underflows
    outline: FloatArray  # (real, node): the same, or the like without underflow

    def peaks(self, low: FloatArray, high: FloatArray, cut: float) -> tuple[FloatArray, FloatArray]:
        """(real,): first and last end of the gaps between nodes in which there may be a peak above
        exp(-cut) of the largest density seen.

        Where densities rise before a gap and fall after it, a peak in it lies below both straight
        lines, if logarithms are concave there.
        """
        top = self.outline.max(axis=1, keepdims=True)
        heights = np.maximum(self.outline, top - LOWEST)
        # Beyond the window, the first and last slopes go on.
        u = np.concatenate([low[:, None], self.u, high[:, None]], axis=1)
        step = np.diff(self.u, axis=1)
        slope = np.diff(heights, axis=1) / step
        ends = [heights[:, 0] - slope[:, 0] * (self.u[:, 0] - low),
                heights[:, -1] + slope[:, -1] * (high - self.u[:, -1])]  # fmt: skip
        heights = np.concatenate([ends[0][:, None], heights, ends[1][:, None]], axis=1)
        slope = np.concatenate([slope[:, :1], slope[:, :1], slope, slope[:, -1:], slope[:, -1:]], 1)
        # Of the gap from u[k] to u[k + 1]: slopes before and after it.
        before, after, gap = slope[:, :-2], slope[:, 2:], np.diff(u, axis=1)
        rises = (before > 0) & (after < 0)
        steep = np.where(rises, before - after, 1.0)
        along = np.clip((np.diff(heights, axis=1) - after * gap) / steep, 0.0, gap)
        height = np.where(rises, heights[:, :-1] + before * along, -np.inf)
        found = height >= top - cut
        first = np.where(found, u[:, :-1], np.inf).min(axis=1)
        return first, np.where(found, u[:, 1:], -np.inf).max(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Parts of the domains of some reals that hold almost all of the probability."""

    real: Ids  # (real,)
    lower: FloatArray  # (real,): of its domain
    upper: FloatArray
    scale: Scale
    low: FloatArray  # (real,): in u
    high: FloatArray
    beyond: float = 0.0
    """Estimated probability outside of the windows, of all together."""
    is_bell: Flags | None = None
    """(real,): whether its density is small at both ends of the window."""

    @classmethod
    def first(cls, kinds: Kinds, real: Ids) -> Windows:
        """The whole domains, or of endless ones all that numbers may reasonably be."""
        variables = kinds.graph.variables
        lower, upper = variables.lower[real], variables.upper[real]
        closed = np.isfinite(lower) & np.isfinite(upper)
        with np.errstate(invalid="ignore"):
            unit = FIRST_UNIT * np.where(closed, upper - lower, 1.0)
        scale = Scale.along(_anchor(lower, upper, np.zeros(len(real))), unit)
        reach = np.arcsinh(FIRST_REACH)
        return cls(
            real, lower, upper, scale,
            np.where(np.isfinite(lower), _placed(scale, lower), -reach),
            np.where(np.isfinite(upper), _placed(scale, upper), reach),
        )  # fmt: skip

    def inner(self) -> Scale:
        """The scale that runs through the windows from -1 to 1."""
        bend = np.zeros(len(self.real))
        if self.is_bell is not None:
            bend[self.is_bell] = BEND
        middle, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        return Scale(self.scale.centre, self.scale.unit, middle, half, bend)

    def around(self, kinds: Kinds, scan: Scan, cut: float) -> tuple[Windows, bool]:
        """The windows around what lies above exp(-cut) of the peak, or may do so between nodes,
        and whether they have settled."""
        u, log_density = scan.u, scan.log_density
        top = log_density.max(axis=1)
        floor, width = top - cut, self.high - self.low
        least, most = self._ends()
        few = (log_density >= floor[:, None]).sum(axis=1) < FEW_ABOVE
        low, at_low = _crossing(u, log_density, self.low, floor, few)
        high, at_high = _crossing(-u[:, ::-1], log_density[:, ::-1], -self.high, floor, few)
        short_low = (self.low > least) & (at_low > floor + SLACK)
        short_high = (self.high < most) & (at_high > floor + SLACK)
        # A density that still rises steeply at its edge may do so for long.
        low = np.where(short_low & few, self.low - width - 2.0, np.maximum(low, self.low - width))
        high = np.where(
            short_high & few, self.high + width + 2.0, np.minimum(-high, self.high + width)
        )
        first, last = scan.peaks(self.low, self.high, cut)
        low = np.maximum(np.minimum(low, first), least)
        high = np.minimum(np.maximum(high, last), most)
        short = short_low | short_high
        self._check_falling(kinds, short, np.stack([low, high], axis=1))
        settled = bool((~short & (high - low >= SETTLED * width)).all())
        found = replace(self, low=low, high=high)._rescaled(u, log_density)
        is_open = ~(np.isfinite(self.lower) | np.isfinite(self.upper))
        is_narrower = is_open & (found.scale.unit < SETTLED * self.scale.unit)
        return found, settled and not is_narrower.any()

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The ends of the domains in u."""
        has_lower, has_upper = np.isfinite(self.lower), np.isfinite(self.upper)
        least = np.where(has_lower, _placed(self.scale, self.lower), -np.inf)
        most = np.where(has_upper, _placed(self.scale, self.upper), np.inf)
        return least, most

    def _check_falling(self, kinds: Kinds, short: Flags, ends: FloatArray) -> None:
        endless = short & (np.abs(self.scale.value(ends)).max(axis=1) > FARTHEST)
        if endless.any():
            name = kinds.graph.variables.names[int(self.real[np.argmax(endless)])]
            raise UnsupportedError(
                f"exact inference cannot integrate over '{name}': its density does not fall off "
                "where it has no bound. Give it an interval or a prior."
            )

    def outside(self, u: FloatArray, log_density: FloatArray) -> float:
        """Probability beyond ends that are not ends of the domain, if densities fall on as
        between their last two nodes."""
        least, most = self._ends()
        total = 0.0
        peak = log_density.max(axis=1)
        mass = np.trapezoid(np.exp(log_density - peak[:, None]), u, axis=1)
        for inside, (outer, inner) in (
            (self.low > least, (0, 1)),
            (self.high < most, (-1, -2)),
        ):
            with np.errstate(invalid="ignore", divide="ignore"):
                fall = (log_density[:, inner] - log_density[:, outer]) / np.abs(
                    u[:, inner] - u[:, outer]
                )
                tail = np.exp(log_density[:, outer] - peak) / np.maximum(fall, 1e-300)
            tail = np.where(np.isneginf(log_density[:, outer]), 0.0, tail)
            total += float((tail / mass)[inside].sum())
        return total

    def _rescaled(self, u: FloatArray, log_density: FloatArray) -> Windows:
        """The same windows along a scale that fits them."""
        ends = self.scale.value(np.stack([self.low, self.high], axis=1))
        least, most = self._ends()
        low = np.where(self.low <= least, self.lower, ends[:, 0])
        high = np.where(self.high >= most, self.upper, ends[:, 1])
        mass = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        mass *= np.gradient(u, axis=1)
        below = np.cumsum(mass, axis=1) / mass.sum(axis=1, keepdims=True)
        rows, x = np.arange(len(u)), self.scale.value(u)
        middle = x[rows, np.argmax(below >= 0.5, axis=1)]
        first, last = (np.argmax(below >= share, axis=1) for share in (0.25, 0.75))
        around = np.maximum(first - 1, 0), np.minimum(last + 1, u.shape[1] - 1)
        spread = x[rows, around[1]] - x[rows, around[0]]
        spread *= np.where(first == last, CLOSER, QUARTILES)
        middle = np.clip(middle, low + NARROW * (high - low), high - NARROW * (high - low))
        centre = _anchor(self.lower, self.upper, middle)
        unit = np.where(
            np.isfinite(self.lower),
            (low - centre) + 0.1 * (middle - low),
            np.where(
                np.isfinite(self.upper),
                (centre - high) + 0.1 * (high - middle),
                np.minimum(0.25 * (high - low), spread),
            ),
        )
        scale = Scale.along(centre, unit)
        return replace(self, scale=scale, low=_placed(scale, low), high=_placed(scale, high))


def _crossing(
    u: FloatArray, log_density: FloatArray, edge: FloatArray, floor: FloatArray, few: Flags
) -> tuple[FloatArray, FloatArray]:
    """(real,): where log-densities first rise above a floor, straight between nodes u (real, node)
    and before the first, or the node before, where there are few above; and their values at the
    edge of the window."""
    rows = np.arange(len(u))
    above = np.argmax(log_density >= floor[:, None], axis=1)
    before, after = np.maximum(above - 1, 0), np.maximum(above, 1)
    lower, upper = (np.maximum(log_density[rows, at], floor - 1e6) for at in (before, after))
    slope = np.maximum((upper - lower) / (u[rows, after] - u[rows, before]), 1e-300)
    crossing = u[rows, before] + (floor - lower) / slope
    at_edge = log_density[:, 0] - slope * (u[:, 0] - edge)
    at_edge = np.where(above > 0, np.minimum(at_edge, log_density[:, 0]), at_edge)
    return np.where(few, np.where(above > 0, u[rows, before], edge), crossing), at_edge


def _anchor(lower: FloatArray, upper: FloatArray, middle: FloatArray) -> FloatArray:
    """(real,): centres of scales: bounds, where there are any."""
    return np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, middle))


def _placed(scale: Scale, x: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return scale.place(x[:, None])[:, 0]


def most_coupled(kinds: Kinds, reals: Ids) -> int:
    """The largest number of these reals in one connected part of the graph."""
    groups = (*kinds.tables, *kinds.quadratics, *kinds.functions)
    num_variables = kinds.graph.num_variables
    part = connected(num_variables, scope_edges([g.scope for g in groups], num_variables))
    return int(np.bincount(part[reals]).max(initial=1))


def nodes_within(joint: int, num_coupled: int, most: int) -> int:
    """Nodes of each of so many coupled reals that make so many joint ones."""
    return int(np.clip(joint ** (1 / num_coupled), FEWEST, most))


def find_windows(
    kinds: Kinds,
    reals: Ids,
    tolerance: float,
    scan: Callable[[Windows], Scan | None],
) -> Windows | None:
    """Windows that hold almost all of the probability of some reals; None if a scan is None."""
    windows, cut = Windows.first(kinds, reals), float(-np.log(tolerance))
    found, done, settled = scan(windows), 0, False
    while found is not None and not (settled and done) and done < MOST_ROUNDS:
        others, settled = windows.around(kinds, found, cut)
        if not (settled and done):
            windows, done = others, done + 1
            found = scan(windows)
    if found is None:
        return None
    log_density = found.log_density
    low = log_density.max(axis=1) - BELL * cut
    is_bell = (log_density[:, 0] < low) & (log_density[:, -1] < low)
    return replace(windows, beyond=windows.outside(found.u, log_density), is_bell=is_bell)


def density_panels(
    scale: Scale, edges: FloatArray, log_density: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Edges (real, panel + 1) and values (real, panel, node) in x of densities in u.

    edges: (real, panel + 1), in u; log_density: (real, panel, node). Logarithms are interpolated:
    those of bells are almost parabolas.
    """
    num_reals, num_panels, degree = log_density.shape
    finer = max(-(-DENSITY_PANELS // num_panels), DENSITY_NODES * degree // DENSITY_DEGREE)
    share = np.arange(finer) / finer
    starts = edges[:, :-1, None] + np.diff(edges)[:, :, None] * share
    in_t = np.concatenate([starts.reshape(num_reals, -1), edges[:, -1:]], axis=1)
    in_x = scale.value(in_t)
    nodes, _ = gauss_legendre_nodes(in_x, DENSITY_DEGREE)
    at = scale.place(nodes).reshape(num_reals, num_panels, -1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None]
    t = np.clip((at - middle) / (0.5 * np.diff(edges)[:, :, None]), -1.0, 1.0)
    own, weights = legendre.leggauss(degree)
    basis = legendre.legvander(own, degree - 1) * (np.arange(degree) + 0.5) * weights[:, None]
    powers = legendre.legvander(t, degree - 1)
    log_density = log_density - log_density.max(axis=(1, 2), keepdims=True)
    series = np.maximum(log_density, -DEEPEST) @ basis  # (real, panel, degree)
    values = np.exp(np.einsum("rpnd,rpd->rpn", powers, series))
    cut_off = log_density.min(axis=2) < -DEEPEST
    if cut_off.any():  # and so has kinks, which must not be felt from afar
        near = _interpolated(np.maximum(log_density[cut_off], -DEEPEST), own, t[cut_off])
        values[cut_off] = np.exp(near)
    values = values.reshape(nodes.shape)
    values /= scale.slope(scale.place(nodes))
    return in_x, values.reshape(num_reals, -1, DENSITY_DEGREE)


def _interpolated(heights: FloatArray, nodes: FloatArray, t: FloatArray) -> FloatArray:
    """(panel, point): the polynomials through the heights (panel, node) at the `LOCAL` nodes around
    each point t (panel, point)."""
    size = min(LOCAL, len(nodes))
    start = np.clip(np.searchsorted(nodes, t) - size // 2, 0, len(nodes) - size)
    at = start[..., None] + np.arange(size)
    own, total = nodes[at], np.zeros(t.shape)
    for place in range(size):
        others = np.arange(size) != place
        factors = (t[..., None] - own[..., others]) / (own[..., [place]] - own[..., others])
        total += np.take_along_axis(heights, at[..., place], axis=1) * factors.prod(axis=-1)
    return total
