"""Marginals from the records of chains: mixtures, and densities on grids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import too_narrow
from hylift.graph import Variables
from hylift.inference.held import WIDEST, Held, State, checked, prefixed
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.kernels.records import gather, lay_panels, spread_on_grids
from hylift.inference.sampling.state import GaussianSums, RealBlocks, Record
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.numerics.segments import inverse
from hylift.posterior import GaussianMixture, PiecewiseDensity
from hylift.posterior.marginals import Batches, categoricals
from hylift.posterior.mixing import batch_error

FloatArray = NDArray[np.float64]

ROOM = 1 << 25
"""Numbers that all mixtures, or all grids, of all chains may take."""

MOST_COMPONENTS = 32
"""Of the mixture of a real."""

MOST_PANELS, LEAST_PANELS = 64, 4
"""Of the grid of a real that bounds cut off."""

BATCHES, LEAST_BATCHES = 16, 4
"""Of the draws of a chain, by whose spread errors are judged."""

MOST_PLACES = 8
"""Of densities of a real, seen while warming up, around which its grid is laid."""


def room_to_warm_up(
    values: FloatArray, num_scores: int, blocks: RealBlocks, num_chains: int
) -> Record:
    """A record that keeps the last values only, and where reals with bounds were; values: (stored
    draw, variable)."""
    size, none = len(blocks.variable), np.zeros((0, 0))
    places = 0
    if blocks.has_bounds.any():
        places = int(np.clip(ROOM // (2 * 3 * num_chains * size), 1, MOST_PLACES))
    return Record(
        values,
        np.zeros(num_scores),
        GaussianSums.empty(size, 2 * places),
        np.full(size, -1, dtype=np.int64),
        none,
        none,
        none,
        none,
        np.zeros(0),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0),
        np.zeros((2, 0)),
        none,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The records of all chains, and the grids that they share."""

    variables: Variables
    terms: LocalTerms
    blocks: RealBlocks
    edges: FloatArray  # (grid, panel + 1)
    grid_step: NDArray[np.int64]  # (grid,): its real
    records: list[Record]
    num_components: int

    @classmethod
    def room(
        cls,
        variables: Variables,
        terms: LocalTerms,
        blocks: RealBlocks,
        is_cut: NDArray[np.uint8],
        warm: list[Record],
        values: FloatArray,
        num_marks: int = 0,
    ) -> Recorded:
        """Empty records; is_cut: (component of reals,). warm: those of warming up. values: (chain,
        stored draw, variable). num_marks: most batches of draws."""
        num_chains, size = len(values), len(blocks.variable)
        grid_step = _cut_steps(terms, blocks, is_cut)
        least = DEGREE * (num_chains + 2) * max(len(grid_step), 1)
        num_panels = int(np.clip(ROOM // least, LEAST_PANELS, MOST_PANELS))
        at = blocks.variable[grid_step]
        places = warm[0].mixtures
        most = places.weight.shape[1] // 2
        for record in warm:
            others = GaussianSums.empty(size, 0) if record is warm[0] else record.mixtures
            gather(places, others, most)
        edges = lay_edges(places, grid_step, variables.lower[at], variables.upper[at], num_panels)
        return cls.on_grids(variables, terms, blocks, edges, grid_step, values, num_marks)

    @classmethod
    def on_grids(
        cls,
        variables: Variables,
        terms: LocalTerms,
        blocks: RealBlocks,
        edges: FloatArray,
        grid_step: NDArray[np.int64],
        values: FloatArray,
        num_marks: int = 0,
    ) -> Recorded:
        """Empty records, of so many chains as there are values."""
        num_chains, size = len(values), len(blocks.variable)
        least = 2 * 3 * (num_chains + 1) * max(size, 1)
        num_components = int(np.clip(ROOM // least, 1, MOST_COMPONENTS))
        nodes, node_weight = gauss_legendre_nodes(edges, DEGREE)
        grid = inverse(grid_step, size)
        origin = values[0, 0, blocks.variable]
        width = terms.num_scores + 2 * size
        num_marks = min(num_marks, ROOM // max(num_chains * width, 1))
        records = [
            Record(
                values[chain],
                np.zeros(terms.num_scores),
                GaussianSums.empty(size, 2 * num_components),
                grid,
                edges,
                nodes,
                node_weight,
                np.zeros(nodes.shape),
                np.zeros(len(grid_step)),
                np.zeros(len(grid_step)),
                np.zeros(nodes.shape[1]),
                origin,
                np.zeros((2, size)),
                np.zeros((num_marks, width)),
            )
            for chain in range(num_chains)
        ]
        return cls(variables, terms, blocks, edges, grid_step, records, num_components)

    def arrays(self) -> State:
        """The sums of all chains, and the grids that they are on."""
        found: State = {"edges": self.edges, "grids": Held(self.grid_step, 0)}
        for number, record in enumerate(self.records):
            found = {**found, **prefixed(f"record {number}", record.arrays())}
        return found

    @staticmethod
    def stored_grids(arrays: Arrays, num_steps: int) -> tuple[FloatArray, NDArray[np.int64]]:
        """The edges of the grids that were stored, and their reals, of so many."""
        steps = Held(np.zeros(0, dtype=np.int64), 0, num_steps - 1, free_axis=0)
        grids = checked({"grids": steps}, arrays)["grids"]
        rows = np.zeros((len(grids), 0))
        edges = checked({"edges": Held(rows, -WIDEST, WIDEST, free_axis=1)}, arrays)["edges"]
        is_wrong = (np.diff(edges) <= 0).any() or not 2 <= edges.shape[1] <= MOST_PANELS + 1
        if is_wrong or len(np.unique(grids)) < len(grids):
            raise ValueError("the grids of some reals are none")
        return edges, grids

    def batches(self) -> Batches:
        """Distributions of all variables, with the ids of those they are about.

        The records of all chains are added to that of the first.
        """
        whole = self.records[0]
        gather(whole.mixtures, GaussianSums.empty(len(whole.grid), 0), self.num_components)
        for other in self.records[1:]:
            whole.probs[:] += other.probs
            whole.density[:] += other.density
            whole.added[:] += other.added
            whole.coarse[:] += other.coarse
            gather(whole.mixtures, other.mixtures, self.num_components)
        spread_on_grids(self.terms, self.blocks, whole)
        discrete = categoricals(self.variables, self.terms.variable["scores"], whole.probs)
        return [*discrete, *self._cut(whole), *self._mixtures(whole)]

    def errors(self, num_batches: int, length: int) -> tuple[FloatArray, FloatArray]:
        """(variable,): standard errors of probabilities and means, and of deviations relative to
        them, by so many batches of draws of each chain; NaN where they are unknown.

        These are of the marginals, which are averages of distributions given other variables: they
        vary less than draws.
        """
        record, steps = self.terms.variable, self.blocks.variable
        error, std_error = np.full((2, len(record)), np.nan)
        if num_batches < LEAST_BATCHES or num_batches > len(self.records[0].marks):
            return error, std_error
        sums = np.stack([one.marks[:num_batches] for one in self.records])
        means = np.diff(sums, axis=1, prepend=0.0) / length
        probs, first, second = np.split(means, np.cumsum([self.terms.num_scores, len(steps)]), 2)
        discrete = np.flatnonzero(record["num_states"])
        error[discrete] = np.maximum.reduceat(batch_error(probs), record["scores"][discrete])
        std_error[discrete] = 0.0
        mean = first.mean(axis=(0, 1))
        squares = second - 2.0 * mean * first + mean**2
        var = squares.mean(axis=(0, 1))
        free = (self.blocks.has_bounds == 0)[self.blocks.component] & (var > 0.0)
        error[steps[free]] = batch_error(first[..., free])
        std_error[steps[free]] = 0.5 * batch_error(squares[..., free]) / var[free]
        return error, std_error

    @property
    def coarse_share(self) -> FloatArray:
        """(grid,): how much of each density is narrower than its panels, once all are added."""
        whole = self.records[0]
        return whole.coarse / np.maximum(whole.added, 1.0)

    def _cut(self, whole: Record) -> Batches:
        some = np.flatnonzero(whole.added > 0.0)
        if not len(some):
            return []
        panels = whole.density[some].reshape(len(some), -1, DEGREE)
        density = positive_density(self.edges[some], panels)
        return [(self.blocks.variable[self.grid_step[some]], density)]

    def _mixtures(self, whole: Record) -> Batches:
        on_grid = np.zeros(len(whole.grid), dtype=bool)
        on_grid[self.grid_step[whole.added > 0.0]] = True
        return mixtures_of(whole.mixtures, self.blocks.variable, ~on_grid)


def mixtures_of(
    mixtures: GaussianSums, variable: NDArray[np.int64], is_chosen: NDArray[np.bool_] | None = None
) -> Batches:
    """Distributions of reals, or of the chosen ones, by their numbers of components; variable:
    (real,), its id."""
    found: Batches = []
    chosen = np.ones(len(variable), dtype=bool) if is_chosen is None else is_chosen
    for count in np.unique(mixtures.num_components[chosen]):
        some = np.flatnonzero(chosen & (mixtures.num_components == count))
        weights = mixtures.weight[some, :count]
        mixture = GaussianMixture(
            weights / weights.sum(axis=1, keepdims=True),
            mixtures.mean[some, :count],
            mixtures.var[some, :count],
        )
        found.append((variable[some], mixture))
    return found


def _cut_steps(
    terms: LocalTerms, blocks: RealBlocks, is_cut: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Reals with a bound, but for those in components to which bounds do not matter, and will not
    because there are no states to change that."""
    record = terms.variable[blocks.variable]
    has_bound = np.isfinite(record["lower"]) | np.isfinite(record["upper"])
    return np.flatnonzero(has_bound & ((is_cut | blocks.has_states)[blocks.component] > 0))


DEGREE = 4
"""Nodes of a panel."""

REACH = 40.0
"""Standard deviations beyond a density at which a grid without a bound ends."""

APART = 64.0
"""Numbers of its size that lie within the narrowest panel that is aimed at."""

LEAST_NUMBERS = 2.0**12
"""Numbers that there must be between two bounds."""

MOST_STEPS = 1 << 12
"""On the way from one end of a grid to the other."""

LEAST_VALUE = 1e-300
"""Of a density, against its largest."""

LEAST_SHARE = 1e-12
"""Of the mean of a density in a panel, below which it does not fall there."""


def check_bounds(variables: Variables) -> None:
    """Refuses reals whose bounds have too few numbers between them."""
    lower, upper = variables.lower, variables.upper
    is_closed = (variables.num_states == 0) & np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        largest = np.where(is_closed, np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        wrong = is_closed & (upper - lower < LEAST_NUMBERS * np.spacing(largest))
    if wrong.any():
        name = variables.names[int(np.argmax(wrong))]
        raise too_narrow(name)


def lay_edges(
    mixtures: GaussianSums,
    steps: NDArray[np.int64],
    lower: FloatArray,
    upper: FloatArray,
    num_panels: int,
) -> FloatArray:
    """(grid, panel + 1): between the bounds, or well beyond what was seen where there is none.

    mixtures: where densities were seen, and how wide they were, of the real of each grid.
    """
    mean, var = mixtures.mean[steps], mixtures.var[steps]
    is_there = np.arange(mean.shape[1]) < mixtures.num_components[steps][:, None]
    reach = REACH * np.sqrt(var)
    lowest = np.where(is_there, mean - reach, np.inf).min(axis=1, initial=np.inf)
    highest = np.where(is_there, mean + reach, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(np.isfinite(lower), lower, lowest)
    high = np.where(np.isfinite(upper), upper, highest)
    least = APART * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    # Where a bound is far from 0, a density may be narrower than numbers can resolve.
    low = np.where(np.isfinite(lower), low, np.minimum(low, high - REACH * least))
    high = np.where(np.isfinite(upper), high, np.maximum(high, low + REACH * least))
    edges = np.empty((len(steps), num_panels + 1))
    lay_panels(mixtures, steps, low, high, least, edges, np.empty(MOST_STEPS))
    return edges


def positive_density(edges: FloatArray, values: FloatArray) -> PiecewiseDensity:
    """The density that is proportional to values (grid, panel, node) at the nodes.

    A cubic that dips below 0 between its nodes is flattened, as Zhang and Shu do it: its integral
    over the panel stays.
    """
    peak = values.max(axis=(1, 2), keepdims=True)
    values = np.maximum(values, LEAST_VALUE * peak)
    density = PiecewiseDensity.from_gauss_legendre(edges, values)
    weights = legendre.leggauss(values.shape[2])[1] / 2.0
    share = np.clip(0.5 * values.min(axis=2) / (values @ weights), LEAST_SHARE, None)
    middle, least = density.coefficients[..., 0], _least(density.coefficients)
    wanted = share * middle
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = np.where(least < wanted, (middle - wanted) / (middle - least), 1.0)
    coefficients = density.coefficients.copy()
    coefficients[..., 1:] *= flat[..., None]
    return PiecewiseDensity(density.edges, coefficients)


def _least(coefficients: FloatArray) -> FloatArray:
    """(grid, panel): the least value of each cubic: at an end, or where it is level."""
    c0, c1, c2, c3 = np.moveaxis(coefficients, -1, 0)
    # Its derivative is a t² + b t + c.
    a, b, c = 7.5 * c3, 3.0 * c2, c1 - 1.5 * c3
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -0.5 * (b + np.copysign(np.sqrt(b * b - 4.0 * a * c), b))
        level = np.stack([root / a, c / root, -np.ones_like(c0), np.ones_like(c0)])
    level = np.where(np.abs(level) <= 1.0, level, 1.0)  # NaN where it is nowhere level
    values = c0 + level * (c1 - 1.5 * c3) + 0.5 * c2 * (3.0 * level**2 - 1.0) + 2.5 * c3 * level**3
    return np.asarray(values.min(axis=0))
