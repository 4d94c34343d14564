"""Far ends for reals that have a bound on one side only, with a bound on what lies beyond them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, Variables, interval
from hylift.inference.exact.elimination import Flags, FloatArray, Ids
from hylift.inference.exact.kernels.rows import LOST
from hylift.inference.exact.nodes.axes import Axes
from hylift.inference.exact.one_pass import PassResult
from hylift.numerics.kernels.special import IMPROBABLE
from hylift.rewrite.kinds import Kinds

FIRST_SDS = 9.0
"""Standard deviations from a mean, or from the bound, to the first far end."""

LEAST_WEIGHT = 1e-100
"""Probability of a state below which its Gaussian does not decide where the first end is."""

PATIENCE = 5
"""Slopes, each four times the last, that are tried although they prove less."""


def is_one_sided(variables: Variables) -> Flags:
    """(variable,): whether it is a real with a bound on one side only."""
    return np.isfinite(variables.lower) ^ np.isfinite(variables.upper)


LogTilted = Callable[[int, float, float], float]
"""Log of the integral of the density times exp(slope (x - at)), given a real x, slope and at,
without bounds; inf if it is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class FarEnds:
    """Ends for some one-sided reals, far out in the tails of their Gaussians without bounds.

    Bounds only take away from the integral beyond an end. So of the integral within all bounds, a
    share of at most exp(log_beyond - log Z) lies beyond these ends.
    """

    real: Ids
    sign: FloatArray  # (real,): of the side that has no bound
    bound: FloatArray  # (real,)
    length: FloatArray  # (real,): from the bound to the end
    log_beyond: float
    """Log of the integral beyond any of the ends, without the bounds of these reals."""
    kinds: Kinds
    axes: Axes
    """Of the pass in which these reals are free."""

    @classmethod
    def of(cls, kinds: Kinds, outcome: PassResult, real: Ids) -> FarEnds:
        """outcome: of a pass with these kinds, in which these reals are free."""
        variables, gaussian = kinds.graph.variables, outcome.reals.gaussian
        owner, weight, at = outcome.real_states(np.isin(outcome.reals.components.real, real))
        mean, std = gaussian.mean[at], np.sqrt(gaussian.var[at])
        sign = np.where(np.isfinite(variables.lower), 1.0, -1.0)
        least = IMPROBABLE
        if (promoted := outcome.reals.promoted) is not None:
            # Each node of a lattice is a narrow Gaussian, each cell one at its farther end.
            lattice, least = promoted.lattice, LOST
            some = np.repeat(np.isin(lattice.real, real), lattice.num_states)
            on = np.repeat(lattice.real, lattice.num_states)[some]
            place = np.where(sign[on] > 0, lattice.high[some], lattice.low[some])
            owner = np.concatenate([owner, on])
            weight = np.concatenate([weight, outcome.on_lattice[some]])
            narrow = np.repeat(lattice.spacing, lattice.num_states)[some]
            mean, std = np.concatenate([mean, place]), np.concatenate([std, narrow])
        bound = np.where(sign > 0, variables.lower, variables.upper)
        mean = sign[owner] * mean
        reach = np.maximum(mean, (sign * bound)[owner]) + FIRST_SDS * std
        farthest = np.full(len(variables), -np.inf)
        likely = weight > LEAST_WEIGHT
        np.maximum.at(farthest, owner[likely], reach[likely])
        length = _power_of_two(farthest[real] - (sign * bound)[real])
        farthest[real] = (sign * bound)[real] + length
        # What sums leave out, as less than this share of a row, may be here or anywhere.
        assert outcome.marginals is not None
        floor = least + np.log(max(len(outcome.marginals), 1))
        beyond = np.maximum(np.log(np.maximum(weight, 1e-300)), floor)
        beyond += log_ndtr((mean - farthest[owner]) / std)
        log_beyond = outcome.log_total + float(np.logaddexp.reduce(np.append(beyond, -1e9)))
        axes = outcome.reals.bare_axes
        return cls(real, sign[real], bound[real], length, log_beyond, kinds, axes)

    def farther(self, log_tilted: LogTilted, log_total: float, share: float) -> FarEnds:
        """Ends beyond which lies at most a share of exp(log_total).

        By Chernoff's bound: the integral beyond an end at a distance l from the bound is at most
        exp(-θ l) times that of the density tilted by θ, for any θ > 0.
        """
        log_share = log_total + np.log(share / len(self.real))
        length, log_beyond = self.length.copy(), np.empty(len(self.real))
        for place, real in enumerate(self.real.tolist()):
            needed, best, tilted = np.inf, 1.0, np.inf
            for slope, times in ((1.0 / length[place], 4.0), (0.25 / length[place], 0.25)):
                worse = 0
                while worse < PATIENCE:
                    found = log_tilted(real, self.sign[place] * slope, self.bound[place])
                    least, worse = max((found - log_share) / slope, 0.0), worse + 1
                    if least < needed:
                        needed, best, tilted, worse = least, slope, found, 0
                    slope *= times
            if not needed < np.inf:
                name = self.kinds.graph.variables.names[real]
                raise UnsupportedError(
                    f"exact inference cannot bound what lies far from the one bound of '{name}'. "
                    "Give it an interval."
                )
            length[place] = max(length[place], _power_of_two(needed))
            log_beyond[place] = tilted - best * length[place]
        return replace(self, length=length, log_beyond=float(np.logaddexp.reduce(log_beyond)))

    def closed(self, kinds: Kinds) -> Kinds:
        """The same factors over variables that end there."""
        variables = kinds.graph.variables
        lower, upper = variables.lower[self.real], variables.upper[self.real]
        end = self.bound + self.sign * self.length
        ends = np.stack([np.where(np.isfinite(lower), lower, end),
                         np.where(np.isfinite(upper), upper, end)], axis=1)  # fmt: skip
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


def _power_of_two(length: Any) -> Any:
    """The next power of 2, so that many reals share an interval."""
    return 2.0 ** np.ceil(np.log2(np.maximum(length, 1e-300)))
