"""Quadratics of the reals that lattices have, all others integrated out in closed form.

For every joint state of the discrete variables the promoted reals are Gaussian, and by Poisson's
formula the sum over a lattice differs from the integral by a factor of at most 1 ± ε, however the
means lie:

    ε = (1 + 2 Σ_k exp(-2π² k² / λ))^n - 1, with λ ≥ the largest eigenvalue of D J D

for n promoted reals of spacings D and any precision J that they can have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hylift.graph import FactorGroup, by_slots
from hylift.inference.exact.elimination import (
    FloatArray,
    Ids,
    Ids32,
)
from hylift.inference.exact.gaussian import (
    Components,
    GaussianStates,
    find_components,
    forms_of,
    solve_states,
)
from hylift.inference.exact.kernels import lattice as kernels
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.exact.lattices.lattice import Lattice, LatticeError
from hylift.inference.exact.meter import OBSERVE_MORE, SECONDS_PER_MIXED, limit_of
from hylift.inference.terms import Terms, joined
from hylift.numerics.segments import inverse, offsets, strides
from hylift.potentials import ConditionalQuadratic
from hylift.words import counted

DIVERGES = 10 * INFINITE
"""Log-value of an infinite integral: larger than any finite one, yet it adds up."""

TOLERANCE = 1e-11
"""Largest ε of the sum over the lattice."""

RESOLUTION = 0.45
"""Largest spacing in standard deviations of the narrowest Gaussian that a real can have given all
else: densities between nodes are then known to 3e-11 of their height."""

AROUND = 8.0
"""Standard deviations around every mean that a first window has."""

FAR = 40.0
"""Standard deviations beyond which a Gaussian has next to nothing: e^-800."""

NUM_SAMPLES = 8
"""Joint states of the discrete variables whose Gaussians the first windows cover."""


@dataclass(frozen=True, slots=True, eq=False)
class Collapsed:
    """Conditional quadratics of promoted reals, the free reals having been integrated out."""

    real: Ids  # (promoted,): variables
    pure: Terms  # that had no free real
    components: Components  # of the free reals
    gaussian: GaussianStates  # promoted reals being 0
    of_components: Terms  # what each component leaves
    maximise: bool

    @classmethod
    def of(
        cls,
        quadratics: list[FactorGroup],
        num_states: Ids32,
        free: Ids,
        promoted: Ids,
        *,
        maximise: bool,
    ) -> Collapsed:
        """num_states: (variable,), 0 of reals; free: reals, the promoted ones among them."""
        pure, coupled = pure_and_coupled(quadratics, promoted)
        terms = Terms.of(coupled, num_states)
        components = find_components(terms, np.setdiff1d(free, promoted), promoted)
        gaussian = solve_states(components, terms, maximise=maximise)
        constant = np.where(gaussian.failed >= 0, DIVERGES, gaussian.log_total)
        left = forms_of(components, gaussian, num_states, constant)
        return cls(promoted, Terms.of(pure, num_states), components, gaussian, left, maximise)

    @property
    def unit(self) -> FloatArray:
        """(promoted,): the least standard deviation given all else in any state; NaN if nothing
        makes it finite."""
        precision = np.zeros(len(self.real))
        for terms in (self.pure, self.of_components):
            kernels.curvature(*terms.arrays, self.row, precision)
        return np.asarray(1 / np.sqrt(np.where(precision > 0, precision, np.nan)))

    @property
    def eigenvalues(self) -> FloatArray:
        """(promoted,): the sum of bounds on the largest eigenvalues of its terms, in units."""
        unit, found = self.unit, np.zeros(len(self.real))
        for terms in (self.pure, self.of_components):
            kernels.eigenvalues(*terms.arrays, self.row, unit, found)
        return found

    def to_the_power(self, power: float) -> Collapsed:
        """The same with densities to a power."""
        return replace(
            self,
            pure=replace(self.pure, multiplicity=power * self.pure.multiplicity),
            of_components=replace(
                self.of_components, multiplicity=power * self.of_components.multiplicity
            ),
        )

    def resolution(self) -> tuple[float, float]:
        """The spacing, in units, that resolves every state, and its ε."""
        largest = float(self.eigenvalues.max())
        allowed = 2 * np.pi**2 / np.log(4 * len(self.real) / TOLERANCE)
        scale = min(RESOLUTION, float(np.sqrt(allowed / largest)))
        ratio = np.exp(-2 * np.pi**2 * np.arange(1, 9) ** 2 / (scale**2 * largest)).sum()
        return scale, float(np.expm1(len(self.real) * np.log1p(2 * ratio)))

    @property
    def row(self) -> Ids:
        """(variable,): its place among the promoted reals, or -1."""
        return inverse(self.real, len(self.pure.num_states))

    def first_windows(self) -> FloatArray:
        """(promoted, 2): the likely range of each real, from its Gaussians in some joint states."""
        num_states = self.pure.num_states
        states = _samples(num_states)
        groups = [
            group
            for terms in (self.pure, self.of_components)
            for group in _in_states(terms, states, sample=len(num_states))
        ]
        terms = Terms.of(groups, np.append(num_states, np.int32(len(states))))
        components = find_components(terms, self.real)
        found = solve_states(components, terms, maximise=False)
        shape = (len(self.real), len(states))
        mean, std = found.mean.reshape(shape), np.sqrt(found.var.reshape(shape))
        failed = found.failed.reshape(-1, len(states))[components.of_step] >= 0
        least = np.where(failed, np.inf, std).min(axis=1, keepdims=True)
        around = 0.5 * AROUND * (std + least)
        low = np.where(failed, np.inf, mean - around).min(axis=1)
        high = np.where(failed, -np.inf, mean + around).max(axis=1)
        windows = np.empty((len(self.real), 2))
        windows[self.row[components.real]] = np.stack([low, high], axis=1)
        return windows

    def widths(self) -> FloatArray:
        """(promoted,): the length that a real has at most in a cell, however long: √(2π / j).

        Some reals are given a term of their own, of precision j or more in every state: summed over
        the real, that is at most its largest value times its width, whatever the others are. These
        terms form a forest, so that reals can be summed one after the other, leaves first.
        """
        shared = np.zeros((len(self.real), 3))
        owners, reals, least, sizes, beside = [], [], [], [], []
        count = 0
        for terms in (self.pure, self.of_components):
            kernels.shared_parts(*terms.arrays, self.row, shared)
            found = np.zeros(len(terms.slots))
            slot_ptr, _, num_discrete, *rest = terms.arrays
            kernels.least_curvature(slot_ptr, num_discrete, *rest, found)
            some = np.flatnonzero(found > 0)
            owners.append(count + terms.term[some])
            reals.append(self.row[terms.slots[some]])
            least.append(found[some])
            count += len(terms)
            sizes.append(terms.num_reals)
            beside.append(self.row[terms.slots[self.row[terms.slots] >= 0]])
        owner, real, curvature = (np.concatenate(each) for each in (owners, reals, least))
        best = np.maximum(-2 * shared[:, 0], 0.0)  # which is a term of its own for each real
        order = np.argsort(np.negative(curvature), kind="stable")
        ptr = offsets(np.concatenate(sizes))
        kernels.match(order, owner, real, curvature, ptr, np.concatenate(beside), best)
        return np.sqrt(2 * np.pi / np.where(best > 0, best, 1e-300))

    def reach(self, center: FloatArray) -> FloatArray | None:
        """(promoted,): a distance from the center beyond which there is next to nothing in any
        joint state; None if that cannot be proven.

        Let J be a precision below that of all states, s² the diagonal of J⁻¹, and H the largest
        slopes at the center. In each state the mean is at most s_i Σ_j H_j s_j away from it.
        """
        parts = [self.pure, self.of_components]
        unit, slope, flat = self.unit, np.zeros(len(self.real)), []
        for terms in parts:
            size = terms.num_reals
            start = offsets(size * (size + 1) + 1)
            forms = np.zeros(start[-1])
            kernels.floors(
                *terms.arrays, self.row, unit, center, start[:-1], forms, slope
            )  # fmt: skip
            is_real = self.row[terms.slots] >= 0
            none, one = np.zeros(len(terms), dtype=np.int32), np.ones(len(terms))
            below = Terms(
                terms.num_states, offsets(size), terms.slots[is_real], none, start[:-1], one, forms
            )
            flat.append(below.take(np.flatnonzero(size)))
        terms = joined(*flat)
        components = find_components(terms, self.real)
        found = solve_states(components, terms, maximise=False)
        if (found.failed >= 0).any():
            return None
        std, place = np.sqrt(found.var), self.row[components.real]
        pull = np.bincount(components.of_step, slope[place] * std)
        reach = np.empty(len(self.real))
        reach[place] = std * (pull[components.of_step] + FAR)
        return reach

    def num_entries(self, lattice: Lattice, finer: float = 1.0) -> float:
        """Entries of the tables on a lattice, or one so many times finer, and of what free reals
        have at its nodes."""
        parts = [
            lattice.log_entries(terms) + np.log(finer) * terms.num_reals
            for terms in (self.pure, self.of_components)
        ]
        beside = parts[1][self.components.of_step]
        logs = np.concatenate([*parts, beside + np.log(2.0)])
        return float(np.exp(min(np.logaddexp.reduce(logs), 700.0)))

    def seconds(self, lattice: Lattice) -> float:
        """The time that free reals beside a lattice should take."""
        beside = lattice.log_entries(self.of_components)[self.components.of_step]
        return SECONDS_PER_MIXED * float(np.exp(np.minimum(beside, 700.0)).sum())

    def on(self, lattice: Lattice, max_entries: int) -> tuple[Components, GaussianStates]:
        """The free reals at every node and cell beside them."""
        entries = float(np.log(self.num_entries(lattice)))
        if entries > np.log(max_entries):
            raise LatticeError(
                int(self.real[np.argmax(lattice.num_states)]),
                f"lattices of {counted(len(self.real), 'real')}, up to "
                f"{lattice.num_states.max():,} points of {{real}}, need tables of "
                f"2^{entries / np.log(2):.1f} entries. {limit_of(max_entries)}",
                OBSERVE_MORE,
            )
        components, gaussian = self.components, self.gaussian
        num_free, beside = len(components.real), np.diff(components.promoted_ptr)
        owner = np.repeat(np.arange(len(beside)), beside)
        promoted = self.real[components.promoted - num_free]
        every = np.concatenate([components.owner, owner])
        names = np.concatenate([components.discrete, promoted]).astype(np.int32)
        discrete = names[np.argsort(every, kind="stable")]
        ptr = offsets(np.diff(components.discrete_ptr) + beside)
        states = lattice.with_states(self.pure.num_states)[discrete]
        repeats = np.ones(len(beside), dtype=np.int64)
        np.multiply.at(repeats, owner, lattice.num_states[components.promoted - num_free])
        count = components.num_states
        per_state = np.repeat(repeats, count)
        real_ptr = offsets((count * repeats)[components.of_step])
        mean, var = np.empty((2, real_ptr[-1]))
        kernels.expand(
            components.of_step, count, components.promoted_ptr, components.promoted, num_free,
            lattice.ptr, lattice.inside, gaussian.real_ptr, gaussian.response_ptr,
            gaussian.mean, gaussian.var, gaussian.response, real_ptr, mean, var,
        )  # fmt: skip
        spread = replace(
            gaussian,
            state_ptr=offsets(count * repeats),
            log_total=np.repeat(gaussian.log_total, per_state),
            rounding=np.repeat(gaussian.rounding, per_state),
            failed=np.repeat(gaussian.failed, per_state),
            real_ptr=real_ptr,
            mean=mean,
            var=var,
        )
        wider = replace(
            components,
            discrete_ptr=ptr,
            discrete=discrete,
            stride=strides(states, ptr),
            log_num_states=components.log_num_states + np.log(repeats),
        )
        return wider, spread

    def tables(self, lattice: Lattice) -> tuple[Terms, Terms]:
        """Terms of promoted reals alone, and what terms of one real share, with the weights of
        nodes and cells."""
        shared = lattice.shared_tables(self.pure, self.of_components)
        if not self.maximise:
            shared = replace(shared, theta=shared.theta + lattice.log_weights)
        return self.pure, shared


def pure_and_coupled(
    quadratics: list[FactorGroup], promoted: Ids
) -> tuple[list[FactorGroup], list[FactorGroup]]:
    """Quadratics of promoted reals alone, and those with other reals."""
    pure: list[FactorGroup] = []
    coupled: list[FactorGroup] = []
    for whole in quadratics:
        for slots, at in by_slots(np.isin(whole.reals, promoted)):
            alone = len(slots) == whole.reals.shape[1]
            (pure if alone else coupled).append(whole.take(at))
    return pure, coupled


def _samples(num_states: Ids32) -> Ids:
    """(sample, variable): joint states spread over all there are."""
    rng = np.random.default_rng(0)
    last = np.maximum(num_states.astype(np.int64) - 1, 0)
    along = np.linspace(0, 1, NUM_SAMPLES // 2)[:, None]
    drawn = rng.random((NUM_SAMPLES - len(along), len(last)))
    return np.rint(np.concatenate([along * np.ones(len(last)), drawn]) * last).astype(np.int64)


def _in_states(terms: Terms, states: Ids, sample: int) -> Iterator[FactorGroup]:
    """The terms in some joint states (sample, variable), which become states of one variable."""
    local = np.zeros((len(terms), len(states)), dtype=np.int64)
    np.add.at(local, terms.term, (terms.stride * states[:, terms.slots]).T)
    for size in np.unique(terms.num_reals):
        if not size:
            continue
        some = np.flatnonzero(terms.num_reals == size)
        at, times = local[some], terms.multiplicity[some]
        start = terms.base[some][:, None]
        own_A = (start + at * size * size)[..., None] + np.arange(size * size)
        own_b = (start + terms.num_joint[some][:, None] * size * size + at * size)[..., None]
        A = terms.theta[own_A].reshape(*at.shape, size, size) * times[:, None, None, None]
        b = terms.theta[own_b + np.arange(size)] * times[:, None, None]
        first = terms.slot_ptr[some] + terms.num_discrete[some]
        reals = terms.slots[first[:, None] + np.arange(size)]
        scope = np.concatenate([np.full((len(some), 1), sample), reals], axis=1).astype(np.int32)
        yield FactorGroup(ConditionalQuadratic(A, b, np.zeros(at.shape)), scope)
