"""Reals integrated out (or maximised over) exactly, in every state of their discrete neighbours.

Reals that no factor couples are in different components, independent given the discrete variables.
In each joint state of its discrete neighbours a component is one Gaussian, factorised as LDLᵀ on
the structure of an elimination.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.inference.exact.elimination import (
    Elimination,
    FloatArray,
    Ids,
    Ids32,
    eliminate_reals,
    scope_edges,
)
from hylift.inference.exact.kernels import gaussian as kernels
from hylift.inference.exact.parts import RealFactors


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Connected components of the reals, and their discrete neighbours."""

    elimination: Elimination  # of the reals
    of_step: Ids32  # (step,): the component of each real
    ptr: Ids  # (component + 1,)
    steps: Ids  # the steps of each component, increasing
    discrete_ptr: Ids  # (component + 1,)
    discrete: Ids32  # discrete variables of each component, increasing
    log_num_states: FloatArray  # (component,): of their joint states

    @property
    def num_components(self) -> int:
        return len(self.log_num_states)

    @property
    def num_states(self) -> Ids:
        """(component,): number of joint states; ask `log_num_states` first whether they fit."""
        return np.rint(np.exp(self.log_num_states)).astype(np.int64)

    def joint_states(self, state: Ids32, num_states: Ids32) -> Ids:
        """(component,): index of the joint state that the discrete variables' states make."""
        arity = np.diff(self.discrete_ptr)
        joint = np.zeros(self.num_components, dtype=np.int64)
        for place in range(int(arity.max(initial=0))):
            some = np.flatnonzero(arity > place)
            discrete = self.discrete[self.discrete_ptr[some] + place]
            joint[some] = joint[some] * num_states[discrete] + state[discrete]
        return joint

    def log_work(self) -> FloatArray:
        """(component,): log of the numbers that its Gaussians take up in all states together."""
        degree = np.diff(self.elimination.ptr) + 2.0
        per_state = np.bincount(self.of_step, weights=degree, minlength=self.num_components)
        return self.log_num_states + np.log(np.maximum(per_state, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianStates:
    """The Gaussian of every component in every joint state of its discrete variables."""

    state_ptr: Ids  # (component + 1,)
    log_total: FloatArray  # per component and state: log-integral, or log-maximum
    rounding: FloatArray  # per component and state: rough error of its volume
    failed: Ids  # per component and state: a step that is not definite, or -1
    real_ptr: Ids  # (step + 1,)
    mean: FloatArray  # per step and state
    var: FloatArray  # per step and state


def find_components(
    num_reals: int, log_states: FloatArray, factors: list[RealFactors]
) -> Components:
    """Components of the reals under the factors; log_states: (discrete variable,)."""
    elimination = eliminate_reals(num_reals, scope_edges([f.real for f in factors], num_reals))
    roots, which = np.unique(_roots(elimination.parent), return_inverse=True)
    of_step = which.astype(np.int32)
    num_discrete = len(log_states)
    codes = [np.zeros(0, dtype=np.int64)]
    for f in factors:
        if len(f.real):
            component = of_step[elimination.step[f.real[:, 0]]].astype(np.int64)
            codes.append(np.unique(component[:, None] * num_discrete + f.discrete))
    code = np.unique(np.concatenate(codes))
    owner, discrete = np.divmod(code, max(num_discrete, 1))
    counts = np.bincount(owner, minlength=len(roots))
    return Components(
        elimination,
        of_step,
        np.concatenate([[0], np.cumsum(np.bincount(of_step, minlength=len(roots)))]),
        np.argsort(of_step, kind="stable"),
        np.concatenate([[0], np.cumsum(counts)]),
        discrete.astype(np.int32),
        np.bincount(owner, weights=log_states[discrete], minlength=len(roots)).astype(np.float64),
    )


def solve_states(
    components: Components, num_states: Ids32, factors: list[RealFactors], *, maximise: bool
) -> GaussianStates:
    """Integrates (or maximises) every component in every state; num_states: (discrete,)."""
    elimination = components.elimination
    count = components.num_states
    state_ptr = np.concatenate([[0], np.cumsum(count)])
    per_step = count[components.of_step]
    real_ptr = np.concatenate([[0], np.cumsum(per_step)])
    edge_ptr = np.concatenate([[0], np.cumsum(per_step * np.diff(elimination.ptr))])
    diagonal = np.zeros(real_ptr[-1])
    linear = np.zeros(real_ptr[-1])
    edges = np.zeros(edge_ptr[-1])
    for f in factors:
        kernels.assemble(
            *_coefficients(f), f.discrete, elimination.step[f.real], f.row, f.multiplicity,
            elimination.ptr, elimination.later, components.of_step,
            components.discrete_ptr, components.discrete, num_states, count,
            real_ptr, edge_ptr, diagonal, linear, edges,
        )  # fmt: skip
    log_total, rounding = np.zeros(state_ptr[-1]), np.zeros(state_ptr[-1])
    failed = np.full(state_ptr[-1], -1, dtype=np.int64)
    mean, var = np.zeros(real_ptr[-1]), np.zeros(real_ptr[-1])
    kernels.solve(
        elimination.ptr, elimination.later, components.ptr, components.steps, count, state_ptr,
        real_ptr, edge_ptr, diagonal, linear, edges, maximise,
        log_total, rounding, failed, mean, var,
    )  # fmt: skip
    lost = np.zeros(state_ptr[-1])
    for f in factors:
        kernels.add_values(
            *_coefficients(f), f.discrete, elimination.step[f.real], f.row, f.multiplicity,
            components.of_step, components.discrete_ptr, components.discrete, num_states, count,
            state_ptr, real_ptr, mean, failed, log_total, lost,
        )  # fmt: skip
    # Overflows that cancel to NaN.
    log_total[np.isnan(log_total)] = np.inf
    return GaussianStates(state_ptr, log_total, rounding, failed, real_ptr, mean, var)


def _coefficients(factors: RealFactors) -> tuple[FloatArray, FloatArray]:
    """A and b; copies, so that kernels meet one kind of array and are compiled once."""
    return np.array(factors.form.A), np.array(factors.form.b)


def _roots(parent: Ids32) -> Ids32:
    """(step,): the last step of the tree each step is in."""
    root = np.where(parent >= 0, parent, np.arange(len(parent), dtype=np.int32))
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return root
        root = above
