"""Far ends for reals that have a bound on one side only, with a bound on what lies beyond them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from hylift.graph import FactorGraph, Variables, interval
from hylift.inference.exact.elimination import Flags, FloatArray, Ids
from hylift.inference.exact.one_pass import PassResult
from hylift.rewrite.kinds import Kinds

FIRST_SDS = 9.0
"""Standard deviations from a mean, or from the bound, to the first far end."""

LEAST_WEIGHT = 1e-100
"""Probability of a state below which its Gaussian does not decide where the far end is."""


def is_one_sided(variables: Variables) -> Flags:
    """(variable,): whether it is a real with a bound on one side only."""
    return np.isfinite(variables.lower) ^ np.isfinite(variables.upper)


@dataclass(frozen=True, slots=True, eq=False)
class FarEnds:
    """Ends for some one-sided reals, far out in the tails of their Gaussians without bounds.

    Bounds only take away from the integral beyond an end. So of the integral within all bounds, a
    share of at most exp(log_beyond - log Z) lies beyond these ends.
    """

    real: Ids
    end: FloatArray  # (real,)
    log_beyond: float
    """Log of the integral beyond any of the ends, without the bounds of these reals."""
    outcome: PassResult
    """Of the pass in which these reals are free."""
    sds: float

    @classmethod
    def of(cls, kinds: Kinds, outcome: PassResult, real: Ids, sds: float = FIRST_SDS) -> FarEnds:
        """outcome: of a pass in which these reals are free."""
        variables, gaussian = kinds.graph.variables, outcome.reals.gaussian
        owner, weight, at = outcome.real_states(np.isin(outcome.reals.components.real, real))
        mean, std = gaussian.mean[at], np.sqrt(gaussian.var[at])
        if (promoted := outcome.reals.promoted) is not None:
            # Each node of a lattice is a narrow Gaussian, each cell one at its farther end.
            lattice = promoted.lattice
            on = np.isin(lattice.real, real)
            some = np.repeat(on, lattice.num_states)
            away = np.abs(lattice.low) > np.abs(lattice.high)
            place = np.where(away, lattice.low, lattice.high)[some]
            owner = np.concatenate([owner, np.repeat(lattice.real, lattice.num_states)[some]])
            weight = np.concatenate([weight, outcome.on_lattice[some]])
            narrow = np.repeat(lattice.spacing, lattice.num_states)[some]
            mean, std = np.concatenate([mean, place]), np.concatenate([std, narrow])
        sign = np.where(np.isfinite(variables.lower), 1.0, -1.0)
        bound = np.where(sign > 0, variables.lower, variables.upper)
        mean = sign[owner] * mean
        reach = np.maximum(mean, (sign * bound)[owner]) + sds * std
        farthest = np.full(len(variables), -np.inf)
        likely = weight > LEAST_WEIGHT
        np.maximum.at(farthest, owner[likely], reach[likely])
        # Lengths are powers of 2, so that many reals share an interval.
        length = 2.0 ** np.ceil(np.log2(farthest[real] - (sign * bound)[real]))
        end = (sign * bound)[real] + length
        farthest[real] = end
        with np.errstate(divide="ignore"):
            beyond = np.log(weight) + log_ndtr((mean - farthest[owner]) / std)
        log_beyond = outcome.log_total + float(np.logaddexp.reduce(beyond))
        return cls(real, sign[real] * end, log_beyond, outcome, sds)

    def farther(self, kinds: Kinds, times: float) -> FarEnds:
        """Ends beyond which lies less by such a factor, and some."""
        sds = 1.0 + float(np.sqrt(self.sds**2 + 2 * np.log(times)))
        return FarEnds.of(kinds, self.outcome, self.real, sds)

    def closed(self, kinds: Kinds) -> Kinds:
        """The same factors over variables that end there."""
        variables = kinds.graph.variables
        lower, upper = variables.lower[self.real], variables.upper[self.real]
        ends = np.stack([np.where(np.isfinite(lower), lower, self.end),
                         np.where(np.isfinite(upper), upper, self.end)], axis=1)  # fmt: skip
        distinct, which = np.unique(ends, axis=0, return_inverse=True)
        domain_id = variables.domain_id.copy()
        domain_id[self.real] = len(variables.domains) + which.reshape(-1)
        domains = (*variables.domains, *(interval(low, high) for low, high in distinct.tolist()))
        closed = replace(variables, domains=domains, domain_id=domain_id)
        graph = kinds.graph
        graph = FactorGraph.unchecked(closed, graph.groups, graph.evidence, graph.log_constant)
        return replace(kinds, graph=graph)

    def share_beyond(self, log_total: float) -> float:
        """A bound on the integral beyond the ends, in integrals up to them."""
        return float(np.exp(min(self.log_beyond - log_total, 600.0)))
