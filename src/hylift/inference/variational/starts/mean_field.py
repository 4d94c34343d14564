"""The best single product, by coordinate ascent or in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.components import Gaussians
from hylift.inference.control import Control
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.variational.kernels.coordinate import (
    free_energies,
    has_neighbours_of_one_class,
    slots_of_variables,
    sweep,
)
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.posterior import Result
from hylift.proper.gaussian import GaussianForm
from hylift.rewrite.parts import parts_of

MOST_SWEEPS = 60
FIRST_SOLVE = 10
"""Sweeps after which all means are moved together; then after twice as many, and so on."""
MOST_SOLVES = 1000
"""Steps of conjugate gradients in such a move."""
SETTLED = 1e-16
"""Square of what is left of the slope, in units of what it was, when means are settled."""
STILL = 1e-7
"""Largest change in a sweep, of a mean in standard deviations or of a probability, at the end."""


def always() -> bool:
    """For those who have time."""
    return True


def neutral(problem: Problem) -> Mixtures:
    """One uninformative product: uniform states, the middle of each interval."""
    return Mixtures(np.ones((1, 1)), problem.layout.neutral()[None, :, None])


def is_closed_form(problem: Problem) -> bool:
    """Whether every variable's best distribution, given the others, is known in closed form."""
    return not problem.functions and not len(problem.betas)


def gaussian_product(problem: Problem, form: GaussianForm) -> Mixtures:
    """The best product for a Gaussian: its means, and the variances given all others."""
    limits = problem.limits
    entries = np.empty(problem.layout.num_entries)
    entries[0::2] = np.clip(form.means, problem.layout.lower, problem.layout.upper)
    entries[1::2] = np.clip(form.var, limits.least, limits.most)
    return Mixtures(np.ones((1, 1)), entries[None, :, None])


@dataclass(frozen=True, slots=True, eq=False)
class Sweeper:
    """Moves the variables of a product, one after the other, to their best given all others."""

    problem: Problem
    start: NDArray[np.int64]  # (variable + 1,): where its slots begin
    edge: NDArray[np.int64]  # (place,): a slot
    term_of: NDArray[np.int32]  # (slot,)
    grad_ptr: NDArray[np.int64]  # (slot + 1,): entries of the slots before

    @classmethod
    def of(cls, problem: Problem) -> Sweeper:
        terms, first = problem.terms, problem.layout.first
        start, edge, term_of = slots_of_variables(terms.slot_ptr, terms.slots, len(problem.layout))
        grad_ptr = np.concatenate([[0], np.cumsum(np.diff(first)[terms.slots])])
        return cls(problem, start, edge, term_of, grad_ptr)

    @property
    def may_overshoot(self) -> bool:
        """Whether members of a class are neighbours, and so move at once."""
        terms = self.problem.terms
        return bool(has_neighbours_of_one_class(terms.slot_ptr, terms.slots))

    def sweep(
        self, entries: FloatArray, hard: float, damping: float = 1.0, *, only_reals: bool = False
    ) -> float:
        """Changes entries (1, entry, 1), and returns the largest change: of a mean in standard
        deviations, or of a probability."""
        problem, terms = self.problem, self.problem.terms
        layout, limits = problem.layout, problem.limits
        return float(
            sweep(
                self.start, self.edge, self.term_of, terms.slot_ptr, terms.slots,
                terms.num_discrete, terms.base, terms.multiplicity, terms.theta, hard,
                layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
                problem.multiplicity, self.grad_ptr, damping, only_reals, entries,
            )
        )  # fmt: skip


def ranked(sweeper: Sweeper, products: list[FloatArray], hard: float) -> list[FloatArray]:
    """(entry,) each: the products, put together anew so that the first has the best of all in every
    part of the graph that nothing connects to the rest, the second the second best, and so on.

    Of those with the same states in a part, only the best counts there; the others come last.
    """
    problem = sweeper.problem
    terms, layout = problem.terms, problem.layout
    part, count = parts_of(problem.graph)
    values = np.stack(
        [
            free_energies(
                terms.slot_ptr, terms.slots, terms.num_discrete, terms.base, terms.multiplicity,
                terms.theta, hard, layout.family, layout.first, problem.multiplicity,
                sweeper.grad_ptr, part, count, np.ascontiguousarray(product)[None, :, None],
            )
            for product in products
        ]
    )  # fmt: skip
    together = np.stack(products)
    order = np.argsort(values, axis=0, kind="stable")  # (rank, part)
    code = np.take_along_axis(_state_codes(problem, together, part, count), order, axis=0)
    is_seen = np.zeros(order.shape, dtype=bool)
    for rank in range(1, len(order)):
        is_seen[rank] = (code[:rank] == code[rank]).any(axis=0)
    order = np.take_along_axis(order, np.argsort(is_seen, axis=0, kind="stable"), axis=0)
    of_entry = np.repeat(part, np.diff(layout.first))
    return [together[rank[of_entry], np.arange(together.shape[1])] for rank in order]


def _state_codes(
    problem: Problem, products: FloatArray, part: NDArray[np.int32], count: int
) -> FloatArray:
    """(product, part): numbers that differ where the most probable states do."""
    layout = problem.layout
    discrete = layout.discrete
    weight = np.random.default_rng(0).random(layout.num_entries)
    codes = np.zeros((len(products), count))
    for number, product in enumerate(products):
        top = np.maximum.reduceat(product, layout.first[:-1])
        is_top = product == np.repeat(top, np.diff(layout.first))
        sums = np.add.reduceat(np.where(is_top, weight, 0.0), layout.first[:-1])
        codes[number] = np.bincount(part[discrete], sums[discrete], minlength=count)
    return codes


def settled_means(
    objective: Objective, q: Mixtures, go_on: Callable[[], bool] = always
) -> Mixtures:
    """A product of Gaussians with all means at their best together, given everything else.

    The free energy is quadratic in them: conjugate gradients, with differences of its gradient in
    place of a matrix.
    """
    layout, multiplicity = objective.problem.layout, objective.problem.multiplicity
    reals = np.flatnonzero(layout.has(Gaussians))
    at = layout.first[reals]
    if len(at) < 2:
        return q
    scale = q.entries[0, at + 1, 0] / multiplicity[reals]
    first = objective.evaluate(q)
    slope = first.of_entries[0, at, 0]

    def moved(change: FloatArray) -> Mixtures:
        entries = q.entries.copy()
        entries[0, at, 0] += change
        return Mixtures(q.weights, entries)

    total = np.zeros(len(at))
    left = -slope
    direction = scale * left
    size = begin = float((left * direction).sum())
    for _ in range(min(MOST_SOLVES, 2 * len(at))):
        image = objective.evaluate(moved(direction)).of_entries[0, at, 0] - slope
        curvature = float((direction * image).sum())
        if not curvature > 0 or not go_on():
            break
        total += size / curvature * direction
        left -= size / curvature * image
        preconditioned = scale * left
        new = float((left * preconditioned).sum())
        if new <= SETTLED * begin:
            break
        direction = preconditioned + new / size * direction
        size = new
    found = moved(total)
    lower, upper = layout.lower[reals], layout.upper[reals]
    found.entries[0, at, 0] = np.clip(found.entries[0, at, 0], lower, upper)
    return found if objective.evaluate(found).value[0] <= first.value[0] else q


@dataclass(slots=True, eq=False)
class _Ascent:
    """A product on its way, sweep by sweep."""

    objective: Objective
    sweeper: Sweeper
    weights: FloatArray  # (1, 1)
    entries: FloatArray  # (1, entry, 1)
    hard: float
    most_sweeps: int
    go_on: Callable[[], bool]
    is_evaluated: bool
    """Whether to compute the free energy after each sweep."""
    reached: float = np.inf
    """The free energy, where it is computed."""
    damping: float = 1.0
    number: int = 0
    """Sweeps so far."""
    next_solve: int = FIRST_SOLVE
    at_rest: bool = False

    @property
    def q(self) -> Mixtures:
        return Mixtures(self.weights, self.entries)

    def value(self) -> float:
        return float(self.objective.evaluate(self.q).value[0])

    def step(self) -> StepInfo:
        """Sweep over all variables; a sweep that overshoots is undone."""
        counts = self._sweep()
        result: Result | None = "converged" if self.at_rest else None
        if result is None and self.number >= self.most_sweeps:
            result = "max_steps"
        share = self.number / self.most_sweeps
        return StepInfo(self.reached if counts else None, "sweeping", share, result)

    def _sweep(self) -> bool:
        if self.number == self.next_solve:
            # Chains of reals pass news on by one link a sweep: all means are moved together.
            self.entries = settled_means(self.objective, self.q, self.go_on).entries
            self.next_solve *= 2
        self.number += 1
        may_overshoot = self.sweeper.may_overshoot
        before = self.entries.copy() if may_overshoot else self.entries
        change = self.sweeper.sweep(self.entries, self.hard, self.damping)
        value = self.value() if self.is_evaluated else np.inf
        if may_overshoot and not value <= self.reached + 1e-9 * max(1.0, abs(self.reached)):
            self.entries, self.damping = before, self.damping / 2
            self.at_rest = self.damping < 1e-3
            return False
        self.reached, self.at_rest = value, change < STILL
        return True

    def arrays(self) -> Arrays:
        return {
            "entries": self.entries,
            "reached": np.array([self.reached, self.damping]),
            "place": np.array([self.number, self.next_solve, self.at_rest]),
        }

    def restore(self, arrays: Arrays) -> None:
        self.entries = arrays["entries"].copy()
        self.reached, self.damping = arrays["reached"].tolist()
        self.number, self.next_solve, at_rest = arrays["place"].tolist()
        self.at_rest = bool(at_rest)


def coordinate_ascent(
    problem: Problem,
    q: Mixtures,
    hard: float,
    *,
    most_sweeps: int = MOST_SWEEPS,
    go_on: Callable[[], bool] = always,
    control: Control | None = None,
) -> tuple[Mixtures, float, bool]:
    """The product after sweeps over all variables, its free energy, and whether it is at rest.

    go_on: asked after each sweep. control: records the sweeps, where they are steps of the method.
    Where members of a class are neighbours they all move at once, which may overshoot: then the
    sweep is undone, and the next ones go half the way.
    """
    objective, sweeper = Objective(problem, "bethe", "search", hard), Sweeper.of(problem)
    is_evaluated = sweeper.may_overshoot or control is not None
    ascent = _Ascent(
        objective, sweeper, q.weights, q.entries.copy(), hard, most_sweeps, go_on, is_evaluated
    )
    if is_evaluated:
        ascent.reached = ascent.value()
    if control is not None:
        run_steps(ascent, control)
    else:
        while ascent.step().result is None and go_on():
            pass
    return ascent.q, ascent.reached if is_evaluated else ascent.value(), ascent.at_rest
