"""Reals on lattices: sums in place of integrals.

A promoted real takes the values h k of a window as its states. What lies beyond the window is
bounded by the same elimination: *cells* beside it, ever wider, are states too, in which each factor
has the largest value that it takes anywhere in the cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import FloatArray, Ids, Ids32
from hylift.inference.exact.kernels import lattice as kernels
from hylift.inference.terms import Terms
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.numerics.segments import counts_up, offsets, ranges
from hylift.posterior import PiecewiseDensity
from hylift.posterior.distributions import BatchedDistribution

NUM_CELLS = 10
"""Cells on each side of a window. The first has `FIRST_CELL` points of the lattice, each further
one at least `GROWTH` times as many."""
FIRST_CELL = 4
GROWTH = 4.0

PANEL = 8
"""Spacings in a panel of a density, which is a polynomial of degree `DEGREE` - 1 there."""
DEGREE = 16
NEAR = 64
"""Nodes on each side of a panel that its density depends on."""
TAPER = 10.0
"""Spacings in a standard deviation of the bell by which cardinal sines are multiplied."""

NO_DENSITY = 1e-19
"""Probability of a node, relative to the largest, that is left out at the ends of a density."""

LEAST_DECLINE = 0.5
"""Least change of a log-density from node to node that is expected beyond a window."""

BEYOND, BEYOND_MOMENT = 1e-12, 1e-9
"""Probability that may lie beyond the windows, and its share of the variance of a real."""

MOST_NODES = 2_000_000
"""Largest number of nodes of one real."""


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Promoted reals with their states: first the nodes of a window, then the cells beside it."""

    real: Ids  # (promoted,): variables
    row: Ids  # (variable,): its place in `real`, or -1
    spacing: FloatArray  # (promoted,)
    num_nodes: Ids  # (promoted,)
    first: FloatArray  # (promoted,): the first node
    sizes: FloatArray  # (promoted, cell): points of the lattice in cells, on either side
    ptr: Ids  # (promoted + 1,): states
    low: FloatArray  # (state,): ends of a cell, the same at a node
    high: FloatArray
    widths: FloatArray  # (promoted,): the length that it has at most in a cell

    @classmethod
    def of(
        cls,
        real: Ids,
        row: Ids,
        spacing: FloatArray,
        windows: FloatArray,
        reach: FloatArray | None = None,
        widths: FloatArray | None = None,
    ) -> Lattice:
        """Nodes that cover windows (promoted, 2), and cells that reach so far beyond them.

        widths: (promoted,), the length that a real has at most in a cell
        """
        begin = np.floor(windows[:, 0] / spacing)
        count = np.ceil(windows[:, 1] / spacing) - begin + 1
        if not count.max(initial=0) <= MOST_NODES:
            raise IntractableError(
                f"a real would need a lattice of {count.max():.3g} nodes, {MOST_NODES:,} are the "
                "limit: what it depends on is too precise for its range."
            )
        num_nodes = count.astype(np.int64)
        sizes = np.zeros((len(real), 0)) if reach is None else _cell_sizes(reach / spacing)
        number = sizes.shape[1]
        before = np.cumsum(sizes, axis=1) - sizes + 1.0  # the nearest point, from the last node
        ptr = offsets(num_nodes + 2 * number)
        nodes = ranges(ptr[:-1], num_nodes)
        low, high = np.empty((2, ptr[-1]))
        low[nodes] = np.repeat(begin, num_nodes) + counts_up(num_nodes)
        high[nodes] = low[nodes]
        cells = (ptr[:-1] + num_nodes)[:, None] + np.arange(number)
        start, stop = begin[:, None], (begin + num_nodes - 1)[:, None]
        low[cells], high[cells] = start - before - sizes + 1, start - before
        low[cells + number], high[cells + number] = stop + before, stop + before + sizes - 1
        unit = np.repeat(spacing, np.diff(ptr))
        return cls(
            real, row, spacing, num_nodes, spacing * begin, sizes, ptr, unit * low, unit * high,
            spacing if widths is None else widths,
        )  # fmt: skip

    @property
    def num_states(self) -> Ids:
        """(promoted,): nodes and cells."""
        return np.diff(self.ptr)

    @property
    def last(self) -> FloatArray:
        """(promoted,): the last node."""
        return np.asarray(self.first + self.spacing * (self.num_nodes - 1))

    @property
    def cells(self) -> Ids:
        """(promoted, cell): states of the cells, those on the left first."""
        return (self.ptr[:-1] + self.num_nodes)[:, None] + np.arange(2 * self.sizes.shape[1])

    @property
    def log_weights(self) -> FloatArray:
        """(state,): log of the length that it stands for: the spacing, or that of a cell."""
        unit, width = (np.repeat(each, self.num_states) for each in (self.spacing, self.widths))
        return np.log(np.minimum(self.high - self.low, width) + unit)

    def widened(self, excess: FloatArray) -> FloatArray:
        """(promoted, 2): windows with the cells that may not be negligible; excess: (state,).

        At most twice as wide: what is far away may no longer matter then.
        """
        number = self.sizes.shape[1]
        needed = excess[self.cells] > 0.25 / self.cells.size
        side = needed.reshape(len(self.real), 2, number)
        farthest = np.where(side.any(axis=2), number - np.argmax(side[:, :, ::-1], axis=2), 0)
        points = np.concatenate([np.zeros((len(self.real), 1)), np.cumsum(self.sizes, axis=1)], 1)
        added = np.minimum(np.take_along_axis(points, farthest, axis=1), self.num_nodes[:, None])
        ends = np.stack([self.first, self.last], axis=1)
        return np.asarray(ends + added * self.spacing[:, None] * np.array([-1.0, 1.0]))

    def trimmed(self, probs: FloatArray, share: float) -> FloatArray:
        """(promoted, 2): windows of the nodes with more than a share of the largest probability.

        Where the end of a window is among them, its logarithm goes on as a parabola.
        """
        found, inward = [], np.minimum(np.arange(3), self.num_nodes[:, None] - 1)
        for side, end in zip((-1, 1), self.occupied(probs, share), strict=True):
            edge = self.ptr[:-1] + (0 if side < 0 else self.num_nodes - 1)
            log_probs = np.log(np.maximum(probs, 1e-300))
            largest = np.maximum.reduceat(log_probs, self.ptr[:-1])
            last, inner, next_inner = log_probs[edge[:, None] - side * inward].T
            decline = np.maximum(inner - last, LEAST_DECLINE)
            bend = np.maximum(2 * inner - last - next_inner, 0.0)
            height = np.maximum(last - largest - np.log(share), 0.0)
            more = 2 * height / (decline + np.sqrt(decline**2 + 2 * bend * height))
            found.append(end + side * np.clip(0.5 + more, 1.5, np.maximum(self.num_nodes, 2)))
        return self.first[:, None] + self.spacing[:, None] * np.stack(found, axis=1)

    def occupied(self, probs: FloatArray, share: float) -> tuple[Ids, Ids]:
        """(promoted,): the first and the last node with more than a share of the largest
        probability."""
        owner = np.repeat(np.arange(len(self.real)), self.num_nodes)
        place = counts_up(self.num_nodes)
        values = probs[ranges(self.ptr[:-1], self.num_nodes)]
        largest = np.maximum.reduceat(values, offsets(self.num_nodes)[:-1])
        some = np.flatnonzero(values > share * largest[owner])
        first, last = self.num_nodes.copy(), np.zeros_like(self.num_nodes)
        np.minimum.at(first, owner[some], place[some])
        np.maximum.at(last, owner[some], place[some])
        return first, last

    @property
    def inside(self) -> FloatArray:
        """(state,): its node, of a cell the nearest one."""
        return np.clip(self.low, *(np.repeat(e, self.num_states) for e in (self.first, self.last)))

    def values(self, terms: Terms) -> Terms:
        """Quadratics of promoted reals as tables over their states, cells being the last nodes."""
        num_states, inside = self.with_states(terms.num_states), self.inside
        arity = np.diff(terms.slot_ptr)
        start = offsets(np.rint(np.exp(self.log_entries(terms))).astype(np.int64))
        table = np.empty(start[-1])
        kernels.tabulate(
            *terms.arrays, num_states, *self.points(num_states), inside, inside, start, table
        )
        one = np.ones(len(terms))
        return Terms(
            num_states, terms.slot_ptr, terms.slots, arity.astype(np.int32), start[:-1], one, table
        )

    def points(self, num_states: Ids32) -> tuple[Ids, Ids]:
        """(variable,): the first of its points, and how many of its states are no cells.

        num_states: (variable,)
        """
        first, num_nodes = np.zeros(len(num_states), dtype=np.int64), num_states.astype(np.int64)
        first[self.real], num_nodes[self.real] = self.ptr[:-1], self.num_nodes
        return first, num_nodes

    def excess(self, probs: FloatArray) -> FloatArray:
        """(state,): bounds on the probability of cells, and on what they add to second moments in
        variances, in units of what may be neglected.

        probs: (state,)
        """
        start, nodes = self.ptr[:-1], self.inside
        weight = probs / np.repeat(np.add.reduceat(probs, start), self.num_states)
        mean = np.repeat(np.add.reduceat(weight * nodes, start), self.num_states)
        var = np.repeat(np.add.reduceat(weight * (nodes - mean) ** 2, start), self.num_states)
        far = np.maximum(np.abs(self.low - mean), np.abs(self.high - mean))
        least = np.repeat(self.spacing, self.num_states) ** 2
        moment = probs * far**2 / (BEYOND_MOMENT * np.maximum(var, least))
        score = np.maximum(probs / BEYOND, moment)
        return np.where(self.low == self.high, 0.0, score)

    def log_entries(self, terms: Terms) -> FloatArray:
        """(term,): log of the entries of its table."""
        is_real = self.row[terms.slots] >= 0
        log_states = np.log(self.num_states)[self.row[terms.slots[is_real]]]
        sizes = np.bincount(terms.term[is_real], log_states, minlength=len(terms))
        return np.asarray(sizes + np.log(terms.num_joint))

    def shared_tables(self, *parts: Terms) -> Terms:
        """The parts a x² + b x that all states of terms of one real share."""
        shared = np.zeros((len(self.real), 3))
        for terms in parts:
            kernels.shared_parts(*terms.arrays, self.row, shared)
        a, _, b = np.repeat(shared, self.num_states, axis=0).T
        on_left = self.cells[:, : self.sizes.shape[1]]
        b[on_left] = shared[:, 1:2]
        ends = np.maximum((a * self.low + b) * self.low, (a * self.high + b) * self.high)
        top = -0.5 * b / np.where(a < 0, a, -1.0)
        inside = (a < 0) & (self.low < top) & (top < self.high)
        each = np.ones(len(self.real), dtype=np.int32)
        return Terms(
            self.with_states(parts[0].num_states),
            offsets(each),
            self.real.astype(np.int32),
            each,
            self.ptr[:-1],
            each.astype(np.float64),
            np.where(inside, np.maximum(ends, 0.5 * b * top), ends),
        )

    def densities(self, probs: FloatArray) -> list[tuple[Ids, BatchedDistribution]]:
        """Reals with as many panels each, and their densities; probs: (state,).

        A density has no frequencies that its nodes do not resolve: between them it is their sum
        times cardinal sines.
        """
        found: list[tuple[Ids, BatchedDistribution]] = []
        first, last = self.occupied(probs, NO_DENSITY)
        num_panels = np.maximum(-(-(last - first) // PANEL), 1)
        for number in np.unique(num_panels):
            some = np.flatnonzero(num_panels == number)
            count = (last - first + 1)[some]
            values = np.zeros((len(some), number * PANEL + 1 + 2 * NEAR))
            values[np.repeat(np.arange(len(some)), count), NEAR + counts_up(count)] = probs[
                ranges(self.ptr[some] + first[some], count)
            ]
            near = np.lib.stride_tricks.sliding_window_view(values, PANEL + 1 + 2 * NEAR, axis=1)
            density = np.maximum(near[:, ::PANEL] @ _between(), 0.0)
            edges = first[some][:, None] + np.arange(number + 1.0) * PANEL
            edges = self.first[some][:, None] + self.spacing[some][:, None] * edges
            found.append((self.real[some], PiecewiseDensity.from_gauss_legendre(edges, density)))
        return found

    def with_states(self, num_states: Ids32) -> Ids32:
        """(variable,): numbers of states, with those of promoted reals."""
        found = num_states.copy()
        found[self.real] = self.num_states
        return found


def _cell_sizes(reach: FloatArray) -> FloatArray:
    """(promoted, cell): points of the lattice in cells that together reach so many spacings."""
    growth = np.maximum(GROWTH, (reach / FIRST_CELL) ** (1 / (NUM_CELLS - 1)))
    return np.ceil(FIRST_CELL * growth[:, None] ** np.arange(NUM_CELLS))


@lru_cache
def _between() -> FloatArray:
    """(node near a panel, point of the panel): shares of the nodes in the density at a point."""
    points = gauss_legendre_nodes(np.array([0.0, PANEL]), DEGREE)[0]
    away = np.arange(-NEAR, PANEL + NEAR + 1)[:, None] - points
    return np.asarray(np.sinc(away) * np.exp(-0.5 * (away / TAPER) ** 2))
