"""Monotone steps along the natural gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.components.kernels.steps import natural_step
from hylift.errors import UnsupportedError
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.optimisers.base import State, calmer
from hylift.inference.variational.problem import Mixtures

WARM_UP = 5
"""Steps before the Bethe weights may move: components must first find their places."""
SHORTEST = 1e-6
"""A step that fails and can hardly be shortened any more is as calm as one that changes nothing."""


@dataclass(frozen=True, slots=True)
class NaturalGradient:
    """Steps along the natural gradient, as long as the objective falls; else shorter ones.

    Settings that are None depend on the objective: 0.2 and at most 0.5 for Bethe, 0.3 and at most
    1 for Jensen.
    """

    rho: float | None = None
    """Length of the first step; 1 would be the exact update of one variable alone."""
    most: float | None = None

    def __post_init__(self) -> None:
        for name in ("rho", "most"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value <= 1):
                raise UnsupportedError(f"{name} is above 0 and at most 1, not {value!r}")

    @property
    def name(self) -> str:
        return "natural gradient"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        bethe = objective.entropy == "bethe" and q.num_components > 1
        return State.of(objective, q, self.rho or (0.2 if bethe else 0.3))

    def step(self, objective: Objective, state: State) -> State:
        problem, q, at = objective.problem, state.q, state.at
        layout, limits = problem.layout, problem.limits
        bethe = objective.entropy == "bethe" and q.num_components > 1
        new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
        natural_step(
            layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
            problem.multiplicity, q.weights, q.entries, at.of_weights, at.of_entries, state.rho,
            state.step >= WARM_UP or not bethe, new.weights, new.entries,
        )  # fmt: skip
        there = objective.evaluate(new)
        accepted = there.value <= at.value + 1e-12 * np.abs(at.value)
        most = self.most or (0.5 if bethe else 1.0)
        rho = np.where(accepted, np.minimum(1.25 * state.rho, most), 0.5 * state.rho)
        calm = calmer(objective, state, accepted, new, there)
        calm = np.where(~accepted & (rho < SHORTEST), calm + 1, calm)
        return replace(
            state,
            q=_chosen(accepted, new, q),
            at=_better(accepted, there, at),
            step=state.step + 1,
            rho=rho,
            calm=calm,
        )


def _chosen(accepted: np.ndarray, new: Mixtures, old: Mixtures) -> Mixtures:
    if accepted.all():
        return new
    if not accepted.any():
        return old
    return Mixtures(
        np.where(accepted[:, None], new.weights, old.weights),
        np.where(accepted[:, None, None], new.entries, old.entries),
    )


def _better(accepted: np.ndarray, new: Evaluation, old: Evaluation) -> Evaluation:
    if accepted.all():
        return new
    if not accepted.any():
        return old
    return Evaluation(
        np.where(accepted, new.value, old.value),
        np.where(accepted[:, None], new.of_weights, old.of_weights),
        np.where(accepted[:, None, None], new.of_entries, old.of_entries),
    )
