"""Single products: the best by coordinate ascent or in closed form, from many starts at once.

A product is a mixture of one component, entries (start, entry, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.components import Gaussians
from hylift.inference.control import Control, always
from hylift.inference.held import Held, State, checked, count
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.variational.kernels import sweep
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.numerics.segments import slices
from hylift.posterior import Result
from hylift.proper.gaussian import GaussianForm

MOST_SWEEPS = 60
FIRST_SOLVE = 10
"""Sweeps after which all means are moved together; then after twice as many, and so on."""
MOST_SOLVES = 1000
"""Steps of conjugate gradients in such a move."""
SETTLED = 1e-16
"""Square of what is left of the slope when means are settled, in units of what it was; or, where
that was less, of moves by a standard deviation."""
STILL = 1e-7
"""Largest change in a sweep, of a mean in standard deviations or of a probability, at the end."""

LEAST_VERTICES, MOST_VERTICES = 4, 64
VERTEX_WORK = 1_000_000
"""Slots that are gone over for vertices beyond the least: a tenth of a second."""
PIECE = 20_000_000
"""Numbers of terms that are gone over between two looks at the clock: some tenths of a second."""
NUMBERS_OF_SLOT = 1024
"""Numbers of large tables that take as long as a slot."""
REAL_SWEEPS, VERTEX_SWEEPS = 2, 3
FEW_SWEEPS = 5
"""Sweeps after which single products are compared."""


def gaussian_product(problem: FitProblem, form: GaussianForm) -> Mixtures:
    """The best product for a Gaussian: its means, and the variances given all others."""
    limits, layout = problem.limits, problem.layout
    entries = np.empty((1, 2 * len(form.means), 1))
    entries[0, 0::2, 0] = np.clip(form.means, layout.lower, layout.upper)
    entries[0, 1::2, 0] = np.clip(form.var, limits.least, limits.most)
    return problem.products(entries)


@dataclass(frozen=True, slots=True, eq=False)
class Ascent:
    """Coordinate ascent: moves the variables of products, one after the other, to their best given
    all others. Made once for a problem without Betas, whose functions it does not see."""

    objective: Objective
    """The free energy of single products."""
    is_left: NDArray[np.bool_]  # (variable,): stays where it is, because it is in functions only
    may_overshoot: bool
    """True if members of a class are neighbours, and so move at once."""
    work: FloatArray  # (variable,): numbers of terms that are gone over when it moves

    @classmethod
    def of(cls, problem: FitProblem, hard: float) -> Ascent:
        """hard: the energy of what is impossible."""
        return cls.on(Objective(problem.with_betas(), "bethe", "search", hard))

    @classmethod
    def on(cls, objective: Objective) -> Ascent:
        terms, num_variables = objective.problem.terms, len(objective.problem.multiplicity)
        ptr, slot = terms.incidence
        variable, term = terms.slots[slot], terms.term[slot]
        twice = (variable[1:] == variable[:-1]) & (term[1:] == term[:-1])
        is_left = np.zeros(num_variables, dtype=bool)
        for group in objective.problem.functions:
            is_left[group.scope] = True
        is_left &= np.diff(ptr) == 0
        numbers = terms.num_joint * np.diff(terms.slot_ptr).astype(np.float64)
        work = np.bincount(variable, numbers[term], num_variables).astype(np.float64)
        return cls(objective, is_left, bool(twice.any()), work)

    @property
    def chunk(self) -> int:
        """Products that are followed together, between two looks at the clock."""
        slots = len(self.objective.problem.terms.slots)
        work = max(1 + slots, int(self.work.sum()) // NUMBERS_OF_SLOT)
        return max(1, VERTEX_WORK // ((REAL_SWEEPS + VERTEX_SWEEPS) * work))

    @property
    def num_vertices(self) -> int:
        """The number that is worth computing: many where they are cheap."""
        return int(np.clip(self.chunk, LEAST_VERTICES, MOST_VERTICES))

    def sweep(
        self,
        entries: FloatArray,
        damping: FloatArray,
        go_on: Callable[[], bool] = always,
        *,
        only_reals: bool = False,
    ) -> FloatArray:
        """Change entries (start, entry, 1), and return the largest change (start,): of a mean in
        standard deviations, or of a probability; infinite where there was no time to go on."""
        problem, slots = self.objective.problem, self.objective.problem.slots
        terms, layout, limits = problem.terms, problem.layout, problem.limits
        order = layout.reals if only_reals else np.arange(len(problem.multiplicity))
        order = order[~self.is_left[order]]
        widest, largest = int(np.diff(layout.first).max(initial=1)), np.zeros(len(entries))
        gradient = np.empty((len(entries), widest * slots.most, 1))
        piece = np.cumsum(len(entries) * self.work[order]) // PIECE
        ends = np.append(np.flatnonzero(np.diff(piece, prepend=-1.0)), len(order))
        for begin, end in pairwise(ends.tolist()):
            if begin and not go_on():
                return np.full(len(entries), np.inf)
            change = np.empty(len(entries))
            sweep(
                order[begin:end], *terms.incidence, terms.term, terms.slot_ptr, terms.slots,
                terms.num_discrete, terms.base, terms.multiplicity, terms.theta,
                self.objective.hard, layout.family, layout.first, layout.lower, layout.upper,
                limits.least, limits.most, problem.multiplicity, slots.source, damping,
                *slots.scratch(), gradient, np.empty(widest), entries, change,
            )  # fmt: skip
            largest = np.maximum(largest, change)
        return largest

    def follow(
        self,
        q: Mixtures,
        *,
        most_sweeps: int = MOST_SWEEPS,
        go_on: Callable[[], bool] = always,
        control: Control | None = None,
    ) -> Followed:
        """The products after sweeps over all variables.

        go_on: asked after each sweep. control: records the sweeps, where they are steps of the
        method. Where members of a class are neighbours they all move at once, which may overshoot:
        then the sweep is undone, and the next ones go half the way.
        """
        is_evaluated = self.may_overshoot or control is not None
        if control is not None:
            go_on = control.should_continue
        start = Followed.of(self, q, most_sweeps, go_on, is_evaluated=is_evaluated)
        if control is not None:
            run_steps(start, control)
        else:
            while start.step().result is None and go_on():
                pass
        return start

    def vertices(
        self, rng: np.random.Generator, count: int, go_on: Callable[[], bool] = always
    ) -> FloatArray:
        """(vertex, entry, 1): products to which few sweeps lead from random states.

        At least one, and fewer than `count` if there is no time to go on.
        """
        layout = self.objective.problem.layout
        discrete, neutral = layout.discrete, layout.neutral()
        neutral[layout.entries_of(discrete)] = 0.02
        found: list[FloatArray] = []
        for begin in range(0, count, self.chunk):
            if begin and not go_on():
                break
            size = min(self.chunk, count - begin)
            entries = np.repeat(neutral[None, :, None], size, axis=0)
            state = rng.random((size, len(discrete))) * layout.size[discrete]
            at = layout.first[discrete] + state.astype(np.int64)
            entries[np.arange(size)[:, None], at, 0] = 0.98
            # Reals come first, or the states would follow them instead of being random.
            for number in range(REAL_SWEEPS + VERTEX_SWEEPS):
                self.sweep(entries, np.ones(size), go_on, only_reals=number < REAL_SWEEPS)
            found.append(entries)
        return np.concatenate(found)

    def ranked_products(
        self,
        product: Mixtures,
        rng: np.random.Generator,
        count: int,
        go_on: Callable[[], bool] = always,
    ) -> Mixtures:
        """A product and so many others from random states, after a few sweeps each; put together
        anew, so that the first has the best of all in every part of the graph that nothing connects
        to the rest, the second the second best, and so on.

        Of those with the same states in a part, only the best counts there; the others come last.
        """
        starts = np.concatenate([product.entries, self.vertices(rng, count, go_on)])
        for some in slices(len(starts), self.chunk):
            if not go_on():
                break
            q = self.objective.problem.products(starts[some])
            starts[some] = self.follow(q, most_sweeps=FEW_SWEEPS, go_on=go_on).entries
        problem, q = self.objective.problem, self.objective.problem.products(starts)
        values = np.concatenate(
            [self.objective.evaluate(some).by_part for some in self.objective.portions(q)]
        )
        order = np.argsort(values, axis=0, kind="stable")  # (rank, part)
        code = _state_codes(problem, starts[:, :, 0], problem.part, problem.num_parts)
        code = np.take_along_axis(code, order, axis=0)
        is_seen = np.zeros(order.shape, dtype=bool)
        for rank in range(1, len(order)):
            is_seen[rank] = (code[:rank] == code[rank]).any(axis=0)
        order = np.take_along_axis(order, np.argsort(is_seen, axis=0, kind="stable"), axis=0)
        return Mixtures(q.weights, starts[order[:, problem.entry_part], np.arange(starts.shape[1])])


def _state_codes(
    problem: FitProblem, products: FloatArray, part: NDArray[np.int32], num_parts: int
) -> FloatArray:
    """(product, part): numbers that differ where the most probable states do."""
    layout = problem.layout
    discrete, first = layout.discrete, layout.first
    weight = np.random.default_rng(0).random(layout.num_entries)
    top = np.maximum.reduceat(products, first[:-1], axis=1)
    is_top = products == np.repeat(top, np.diff(first), axis=1)
    sums = np.add.reduceat(np.where(is_top, weight, 0.0), first[:-1], axis=1)[:, discrete]
    return np.stack([np.bincount(part[discrete], one, minlength=num_parts) for one in sums])


@dataclass(slots=True, eq=False)
class Followed:
    """Products on their way, sweep by sweep."""

    ascent: Ascent
    entries: FloatArray  # (start, entry, 1)
    most_sweeps: int
    go_on: Callable[[], bool]
    is_evaluated: bool
    """If set, the free energy is computed after each sweep."""
    reached: FloatArray  # (start,): the free energy, where it is computed
    damping: FloatArray  # (start,): 0 for those at rest
    number: int = 0
    """Sweeps so far."""
    next_solve: int = FIRST_SOLVE

    @classmethod
    def of(
        cls,
        ascent: Ascent,
        q: Mixtures,
        most_sweeps: int,
        go_on: Callable[[], bool],
        *,
        is_evaluated: bool,
    ) -> Followed:
        size = len(q.weights)
        start = cls(
            ascent, q.entries.copy(), most_sweeps, go_on, is_evaluated,
            np.full(size, np.inf), np.ones(size),
        )  # fmt: skip
        if is_evaluated:
            start.reached = start._values()
        return start

    @property
    def q(self) -> Mixtures:
        return self.ascent.objective.problem.products(self.entries)

    @property
    def value(self) -> FloatArray:
        """(start,)"""
        return self.reached if self.is_evaluated else self._values()

    @property
    def at_rest(self) -> NDArray[np.bool_]:
        """(start,)"""
        return self.damping == 0.0

    def _values(self) -> FloatArray:
        return self.ascent.objective.evaluate(self.q).value

    def step(self) -> StepInfo:
        """Sweep over all variables; sweeps that overshoot are undone."""
        counts = self._sweep()
        result: Result | None = "converged" if not self.damping.any() else None
        if result is None and self.number >= self.most_sweeps:
            result = "max_steps"
        objective = float(self.reached.min()) if counts else None
        return StepInfo(objective, "sweeping", self.number / self.most_sweeps, result)

    def _sweep(self) -> bool:
        if self.number == self.next_solve:
            # Chains of reals pass news on by one link a sweep: all means are moved together.
            self.entries = settled_means(self.ascent.objective, self.q, self.go_on).entries
            self.next_solve *= 2
        self.number += 1
        before = self.entries.copy() if self.ascent.may_overshoot else self.entries
        change = self.ascent.sweep(self.entries, self.damping, self.go_on)
        value = self._values() if self.is_evaluated else self.reached
        damping = np.where(change < STILL, 0.0, self.damping)
        if self.ascent.may_overshoot:
            highest = self.reached + 1e-9 * np.maximum(1.0, np.abs(self.reached))
            undone = ~(value <= highest) & (self.damping > 0)
            self.entries[undone] = before[undone]
            value = np.where(undone, self.reached, value)
            half = np.where(self.damping < 2e-3, 0.0, self.damping / 2)
            damping = np.where(undone, half, damping)
            self.reached, self.damping = value, damping
            return not undone.all()
        self.reached, self.damping = value, damping
        return True

    def arrays(self) -> State:
        return {
            "entries": self.entries,
            "reached": self.reached,
            "damping": Held(self.damping, 0.0, 1.0),
            "number": count(self.number, self.most_sweeps),
            "next solve": count(self.next_solve),
        }

    def restore(self, arrays: Arrays) -> None:
        own = checked(self.arrays(), arrays)
        for entries in own["entries"]:
            self.ascent.objective.problem.layout.check(entries, entries.shape[1])
        self.entries, self.reached, self.damping = (
            own[name] for name in ("entries", "reached", "damping")
        )
        self.number, self.next_solve = int(own["number"]), int(own["next solve"])


def settled_means(
    objective: Objective, q: Mixtures, go_on: Callable[[], bool] = always
) -> Mixtures:
    """Products of Gaussians with all means at their best together, given everything else.

    The free energy is quadratic in them: conjugate gradients, with differences of its gradient in
    place of a matrix.
    """
    layout, multiplicity = objective.problem.layout, objective.problem.multiplicity
    reals = np.flatnonzero(layout.has(Gaussians))
    at = layout.first[reals]
    if len(at) < 2:
        return q
    scale = q.entries[:, at + 1, 0] / multiplicity[reals]
    first = objective.evaluate(q)
    slope = first.of_entries[:, at, 0]

    def moved(change: FloatArray) -> Mixtures:
        entries = q.entries.copy()
        entries[:, at, 0] += change
        return Mixtures(q.weights, entries)

    total, left = np.zeros(slope.shape), -slope
    direction = scale * left
    size = begin = (left * direction).sum(axis=1)
    for _ in range(min(MOST_SOLVES, 2 * len(at))):
        image = objective.evaluate(moved(direction)).of_entries[:, at, 0] - slope
        curvature = (direction * image).sum(axis=1)
        # A start that is done has a direction of zero, which bends nothing.
        bends = curvature > 0
        if not bends.any() or not go_on():
            break
        step = np.divide(size, curvature, out=np.zeros_like(size), where=bends)[:, None]
        total += step * direction
        left -= step * image
        preconditioned = scale * left
        new = (left * preconditioned).sum(axis=1)
        bends &= new > SETTLED * np.maximum(begin, 1.0)
        turn = np.divide(new, size, out=np.zeros_like(size), where=bends)[:, None]
        direction = np.where(bends[:, None], preconditioned + turn * direction, 0.0)
        size = new
        if not bends.any():
            break
    found = moved(total)
    lower, upper = layout.lower[reals], layout.upper[reals]
    found.entries[:, at, 0] = np.clip(found.entries[:, at, 0], lower, upper)
    is_better = objective.evaluate(found).value <= first.value
    return Mixtures(q.weights, np.where(is_better[:, None, None], found.entries, q.entries))
