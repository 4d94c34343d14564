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
from hylift.graph import Variables
from hylift.inference.exact.elimination import FloatArray, Ids, Ids32
from hylift.inference.exact.kernels import lattice as kernels
from hylift.inference.terms import Terms
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.numerics.segments import counts_up, offsets, ranges
from hylift.posterior import PiecewiseDensity
from hylift.posterior.marginals import Batches
from hylift.words import Wording

NUM_CELLS = 10
"""Cells on each side of a window, at first. The nearest has `FIRST_CELL` points of the lattice,
each further one at least `GROWTH` times as many."""
FIRST_CELL = 4
GROWTH = 4.0
PIECES = 8
"""Pieces into which a cell is split that is too large to bound what is in it."""
MOST_CELLS = 1000
"""On each side of a window."""

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


class LatticeError(IntractableError):
    """A refusal for the sake of a real, which the message has as {real}."""

    def __init__(self, real: int, message: str, remedy: Wording | None = None) -> None:
        super().__init__(message, remedy)
        self.real = real

    def named(self, variables: Variables) -> IntractableError:
        """The same with the name of the real."""
        name = f"'{variables.names[self.real]}'"
        return IntractableError(self.args[0].replace("{real}", name), self.remedy)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells beside windows, as many on the left of a real as on the right, the nearest first."""

    ptr: Ids  # (promoted + 1,)
    sizes: FloatArray  # (cell, 2): points of the lattice in it, on the left and on the right

    @classmethod
    def none(cls, num_reals: int) -> Cells:
        return cls(np.zeros(num_reals + 1, dtype=np.int64), np.zeros((0, 2)))

    @classmethod
    def reaching(cls, reach: FloatArray) -> Cells:
        """Cells of each real that together have so many points, ever more in each."""
        growth = np.maximum(GROWTH, (reach / FIRST_CELL) ** (1 / (NUM_CELLS - 1)))
        sizes = np.ceil(FIRST_CELL * growth[:, None] ** np.arange(NUM_CELLS)).reshape(-1, 1)
        return cls(np.arange(len(reach) + 1) * NUM_CELLS, np.repeat(sizes, 2, axis=1))

    @classmethod
    def equal(cls, number: Ids, points: FloatArray) -> Cells:
        """So many cells of as many points on each side of a real, which cover so many points."""
        each = np.ceil(0.5 * points / np.maximum(number, 1))
        return cls(offsets(number), np.repeat(np.repeat(each, number)[:, None], 2, axis=1))

    @property
    def before(self) -> FloatArray:
        """(cell, 2): points between the window and the cell."""
        total = np.concatenate([np.zeros((1, 2)), np.cumsum(self.sizes, axis=0)])
        return np.asarray(total[:-1] - np.repeat(total[self.ptr[:-1]], np.diff(self.ptr), axis=0))

    def refined(self, excess: FloatArray, num_nodes: Ids) -> tuple[Cells, FloatArray]:
        """Cells that are not too large, and (promoted, 2) points by which windows are widened.

        Cells with an excess (cell, 2) become part of the window where that is at most doubled;
        elsewhere they are split. What is far away may no longer matter then.
        """
        count = np.diff(self.ptr)
        owner = np.repeat(np.arange(len(count)), count)
        end = self.before + self.sizes
        needed = excess > 0.25 / max(excess.size, 1)
        room = np.maximum(num_nodes, FIRST_CELL)[owner][:, None]
        added = np.zeros((len(count), 2))
        np.maximum.at(added, owner, np.where(needed & (end <= room), end, 0.0))
        gone = end <= added[owner]
        pieces = np.where(gone, 0, np.where(needed, np.minimum(self.sizes, PIECES), 1))
        pieces = pieces.astype(np.int64)
        sides = [self._split(pieces[:, side], side, owner, len(count)) for side in (0, 1)]
        return Cells._of_sides(*sides), added

    def _split(self, pieces: Ids, side: int, owner: Ids, num_reals: int) -> tuple[Ids, FloatArray]:
        """Numbers of cells of each real on one side, and their sizes, with each in so many pieces;
        the last one has what is left over."""
        size = np.repeat(self.sizes[:, side], pieces)
        number = np.repeat(pieces, pieces)
        place, each = counts_up(pieces), np.ceil(size / np.maximum(number, 1))
        left = np.clip(size - place * each, 1.0, each)
        return np.bincount(owner, pieces, num_reals).astype(np.int64), left

    @classmethod
    def _of_sides(cls, left: tuple[Ids, FloatArray], right: tuple[Ids, FloatArray]) -> Cells:
        """As many cells on both sides: farther ones, of one point, make up for missing ones."""
        count = np.maximum(left[0], right[0])
        ptr, sizes = offsets(count), np.ones((int(count.sum()), 2))
        for side, (number, size) in enumerate((left, right)):
            sizes[ranges(ptr[:-1], number), side] = size
        return cls(ptr, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Promoted reals with their states: first the nodes of a window, then the cells beside it."""

    real: Ids  # (promoted,): variables
    row: Ids  # (variable,): its place in `real`, or -1
    spacing: FloatArray  # (promoted,)
    num_nodes: Ids  # (promoted,)
    first: FloatArray  # (promoted,): the first node
    beside: Cells
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
        cells: Cells | None = None,
        widths: FloatArray | None = None,
    ) -> Lattice:
        """Nodes that cover windows (promoted, 2), none where a window ends before it begins, and
        cells beside them.

        widths: (promoted,), the length that a real has at most in a cell
        """
        beside = cells or Cells.none(len(real))
        begin = np.floor(windows[:, 0] / spacing)
        count = np.maximum(np.ceil(windows[:, 1] / spacing) - begin + 1, 0)
        if not count.max(initial=0) <= MOST_NODES:
            raise LatticeError(
                int(real[np.argmax(count)]),
                f"{{real}} would need a lattice of {count.max():.3g} nodes, {MOST_NODES:,} are the "
                "limit: some of its factors are too precise for its range. Larger variances, or "
                "leaving out readings far from all others, would help.",
            )
        num_nodes, num_cells = count.astype(np.int64), np.diff(beside.ptr)
        ptr = offsets(num_nodes + 2 * num_cells)
        nodes = ranges(ptr[:-1], num_nodes)
        low, high = np.empty((2, ptr[-1]))
        low[nodes] = np.repeat(begin, num_nodes) + counts_up(num_nodes)
        high[nodes] = low[nodes]
        near, far = beside.before + 1, beside.before + beside.sizes
        for side, (base, sign) in enumerate(((begin, -1.0), (begin + num_nodes - 1, 1.0))):
            at = ranges(ptr[:-1] + num_nodes + side * num_cells, num_cells)
            ends = np.repeat(base, num_cells) + sign * np.stack([near[:, side], far[:, side]])
            low[at], high[at] = ends.min(axis=0), ends.max(axis=0)
        unit = np.repeat(spacing, np.diff(ptr))
        return cls(
            real, row, spacing, num_nodes, spacing * begin, beside, ptr, unit * low, unit * high,
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
        """(cell, 2): states of the cells on the left, and on the right."""
        count = np.diff(self.beside.ptr)
        left = ranges(self.ptr[:-1] + self.num_nodes, count)
        return np.stack([left, left + np.repeat(count, count)], axis=1)

    @property
    def log_weights(self) -> FloatArray:
        """(state,): log of the length that it stands for: the spacing, or that of a cell."""
        unit, width = (np.repeat(each, self.num_states) for each in (self.spacing, self.widths))
        return np.log(np.minimum(self.high - self.low, width) + unit)

    def refined(self, excess: FloatArray) -> tuple[FloatArray, Cells]:
        """(promoted, 2): windows that are wider where cells may not be negligible, and cells that
        are smaller where they are too large; excess: (state,)."""
        cells, added = self.beside.refined(excess[self.cells], self.num_nodes)
        if np.diff(cells.ptr).max() > MOST_CELLS:
            raise self.unbounded(excess)
        ends = np.stack([self.first, self.last], axis=1)
        return ends + added * self.spacing[:, None] * np.array([-1.0, 1.0]), cells

    def unbounded(self, excess: FloatArray) -> LatticeError:
        """The refusal where an excess (state,) does not become less."""
        worst = int(np.searchsorted(self.ptr, np.argmax(excess), side="right")) - 1
        return LatticeError(
            int(self.real[worst]),
            "what lies beyond the window of {real} cannot be bounded: factors of large numbers "
            "cancel each other there. Larger variances, or leaving out readings far from all "
            "others, would help.",
        )

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

    def ends(self, probs: FloatArray, share: float) -> FloatArray:
        """(promoted, 2): ends of the states with more than a share of the largest probability."""
        owner = np.repeat(np.arange(len(self.real)), self.num_states)
        some = probs > share * np.maximum.reduceat(probs, self.ptr[:-1])[owner]
        low, high = np.full((2, len(self.real)), np.inf)
        np.minimum.at(low, owner[some], self.low[some])
        np.minimum.at(high, owner[some], -self.high[some])
        return np.stack([low, -high], axis=1)

    def is_narrower(self, windows: FloatArray) -> bool:
        """True if windows (promoted, 2) are much narrower for some real that has only cells."""
        width = np.maximum.reduceat(self.high, self.ptr[:-1])
        width -= np.minimum.reduceat(self.low, self.ptr[:-1])
        return bool(((np.ptp(windows, axis=1) < 0.5 * width) & (self.num_nodes == 0)).any())

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
        b[self.cells[:, 0]] = np.repeat(shared[:, 1], np.diff(self.beside.ptr))
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

    def densities(self, probs: FloatArray) -> Batches:
        """Reals with as many panels each, and their densities; probs: (state,).

        A density has no frequencies that its nodes do not resolve: between them it is their sum
        times cardinal sines.
        """
        found: Batches = []
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


@lru_cache
def _between() -> FloatArray:
    """(node near a panel, point of the panel): shares of the nodes in the density at a point."""
    points = gauss_legendre_nodes(np.array([0.0, PANEL]), DEGREE)[0]
    away = np.arange(-NEAR, PANEL + NEAR + 1)[:, None] - points
    return np.asarray(np.sinc(away) * np.exp(-0.5 * (away / TAPER) ** 2))
