"""Whether a model's Bethe free energy is bounded below, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, Variables
from hylift.inference.boundedness.bound import GaussianBound, gaussian_bound
from hylift.inference.boundedness.certificate import (
    EXPONENTIAL,
    GAUSSIAN,
    UNIFORM,
    BetheCertificate,
    Densities,
)
from hylift.inference.boundedness.definite import CommonForm, components_of, margins
from hylift.inference.boundedness.lower import uncoupled
from hylift.inference.boundedness.straight import Straight, straight_reals, straight_violation
from hylift.inference.boundedness.terms import Apart, Terms, take_apart
from hylift.inference.boundedness.violations.merge import merge
from hylift.inference.boundedness.violations.possible import Possible
from hylift.inference.boundedness.violations.search import component, find_violation
from hylift.inference.boundedness.violations.violation import Violation
from hylift.potentials import REAL
from hylift.potentials.base import FloatArray

MAX_VIOLATIONS = 5
"""Violations after which no more are looked for."""

MAX_COMPONENTS = 500
"""Components that are looked at one by one."""


def bethe_certificate(graph: FactorGraph) -> BetheCertificate:
    """Whether the Bethe free energy of a graph with its evidence is bounded below.

    It is if there are densities g_i with p / Π g_i bounded. They are sought among Gaussians, and
    uniform densities where there are bounds, so that a quadratic form that every discrete state
    has at least falls off faster than they do. Of a lifted graph it is told for the ground graph
    it stands for, in which all members of a class have the same factors.
    """
    if not isinstance(graph, FactorGraph):
        raise UnsupportedError(
            "a certificate is of a FactorGraph, such as hl.ground(model, evidence) makes, not of "
            f"a value of type '{type(graph).__name__}'"
        )
    apart = take_apart(graph.condition())
    straight = straight_reals(apart.terms, apart.graph.variables)
    search = _Search(apart, _open_reals(apart.graph.variables) & np.isnan(straight.rate))
    form, share, terms = search.run(straight)
    holds: bool | None = True
    if search.violations:
        holds = False
    elif search.undecided:
        holds = None
    if not holds:
        return BetheCertificate(
            holds,
            None,
            None,
            tuple(search.violations),
            tuple(search.undecided),
            tuple(apart.assumptions),
        )
    gaussian = gaussian_bound(terms, form, share, apart.graph.variables)
    log_bound = apart.log_constant + gaussian.log_bound + straight.log_bound
    return BetheCertificate(
        True,
        log_bound + _log_volume(apart.graph.variables) if apart.is_known else None,
        _densities(apart.graph.variables, gaussian, straight),
        (),
        (),
        tuple(apart.assumptions),
    )


def _open_reals(variables: Variables) -> NDArray[np.bool_]:
    """(variable,): whether it is a real that is not bounded on both sides."""
    bounded = np.isfinite(variables.lower) & np.isfinite(variables.upper)
    return (variables.num_states == REAL) & ~bounded


@dataclass(slots=True, eq=False)
class _Search:
    """Looks for a form that holds all open reals, and notes what stands in the way."""

    apart: Apart
    is_open: NDArray[np.bool_]
    violations: list[Violation] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def run(self, straight: Straight) -> tuple[CommonForm, FloatArray, Sequence[Terms]]:
        """The form, the share of its diagonal that it holds, and the terms it is made of."""
        variables = self.apart.graph.variables
        self.undecided += self.apart.undecided
        possible = Possible.of(self.apart.graph)
        for real in straight.failing[:MAX_VIOLATIONS].tolist():
            if not self.apart.unclear[real]:
                self._note(straight_violation(straight, real, variables, possible))
        terms = straight.others
        label = components_of(terms, len(variables))
        form, share = self._held(terms, label)
        if not self.apart.is_ground and self._failing(share, label).size:
            # Couplings among three and more reals weigh less when each factor holds its own.
            looser = [replace(term, lower=uncoupled(term.lower)) for term in terms]
            form_2, share_2 = self._held(looser, label)
            if self._failing(share_2, label).size < self._failing(share, label).size:
                terms, form, share = looser, form_2, share_2
        merged: dict[int, Terms] = {}
        failing = self._failing(share, label)
        for number in failing[:MAX_COMPONENTS].tolist():
            if len(self.violations) >= MAX_VIOLATIONS:
                break
            found = self._look(terms, label, number, form, possible)
            if isinstance(found, Terms):
                merged[number] = found
        if len(failing) > MAX_COMPONENTS and not self.violations:
            name = variables.names[int(np.argmax(label == failing[MAX_COMPONENTS]))]
            self.undecided.append(f"too many reals, such as '{name}', need a look at their states")
        if merged and not self.violations and not self.undecided:
            terms = _with_merged(terms, label, merged)
            form, share = self._held(terms, label)
        return form, share, terms

    def _held(
        self, terms: Sequence[Terms], label: NDArray[np.int64]
    ) -> tuple[CommonForm, FloatArray]:
        form = CommonForm.of(terms, self.apart.graph.variables.multiplicity)
        return form, margins(form, label, self.is_open)

    def _failing(self, share: FloatArray, label: NDArray[np.int64]) -> NDArray[np.int64]:
        """Components that are not held, without those that functions of the user's own are in."""
        unclear = np.unique(label[self.apart.unclear])
        return np.setdiff1d(label[self.is_open & np.isnan(share)], unclear)

    def _look(
        self,
        terms: Sequence[Terms],
        label: NDArray[np.int64],
        number: int,
        form: CommonForm,
        possible: Possible,
    ) -> Terms | None:
        """One component: a violation, or all its states as one factor, or a doubt."""
        found = component(terms, label, number, self.apart.graph.variables)
        violation, doubt = find_violation(found, form, possible)
        if violation is not None:
            self.violations.append(violation)
            return None
        if not self.apart.is_ground:
            name = self.apart.graph.variables.names[int(found.reals[0])]
            self.undecided.append(
                doubt
                or f"the classes alone do not tell whether '{name}' is held: try the ground graph"
            )
            return None
        result = merge(found, possible)
        if isinstance(result, Terms):
            return result
        self._note(doubt if doubt and isinstance(result, str) else result)
        return None

    def _note(self, found: Violation | str) -> None:
        if isinstance(found, Violation):
            self.violations.append(found)
        else:
            self.undecided.append(found)


def _with_merged(
    terms: Sequence[Terms], label: NDArray[np.int64], merged: dict[int, Terms]
) -> list[Terms]:
    """The terms, with those of some components replaced."""
    replaced = np.zeros(int(label.max()) + 1, dtype=np.bool_)
    replaced[list(merged)] = True
    kept = [
        term.take(np.flatnonzero(~replaced[label[term.real[:, 0]]])) if term.num_open else term
        for term in terms
    ]
    return [*(term for term in kept if len(term)), *merged.values()]


def _log_volume(variables: Variables) -> float:
    """-Σ log g of all variables with uniform densities."""
    num_states = variables.num_states
    open_ = _open_reals(variables)
    width = np.where(num_states > 0, num_states, variables.upper - variables.lower)
    return float(variables.multiplicity[~open_] @ np.log(width[~open_]))


def _densities(variables: Variables, gaussian: GaussianBound, straight: Straight) -> Densities:
    kind = np.full(len(variables), UNIFORM, dtype=np.int8)
    kind[~np.isnan(gaussian.var)] = GAUSSIAN
    kind[~np.isnan(straight.rate)] = EXPONENTIAL
    return Densities(variables, kind, gaussian.mean, gaussian.var, straight.rate)
