"""Where particles come from: a Gaussian per real, with the moments of its belief, or so wide that
it reaches all that has probability."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from hylift.inference.message.links import FloatArray
from hylift.inference.message.particle.factors import Factors, Places

REACH = 6.5
"""How far out the outermost of particles lie, in standard deviations of the proposals: particles
are drawn from wider Gaussians, so that their weights fall off to both sides. Sums over strata are
then nearly exact."""
NOTHING = 1e-10
"""Weight of a particle below which it need not be reached."""
BEYOND, MARGIN = 1.1, 1.3
"""How much further out than a Gaussian's something must lie to be reached, and with what margin."""
FASTEST = 2.0
"""Most by which a standard deviation grows or shrinks in a step."""
LOG_ROOT = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """Gaussians of the distances of reals from their centres.

    Entries of discrete variables are not used.
    """

    centre: FloatArray  # (variable,)
    lower: FloatArray  # (variable,): distance of the lower bound from the centre
    upper: FloatArray  # (variable,)
    mean: FloatArray  # (variable,)
    sd: FloatArray  # (variable,)
    wider: float
    """Standard deviations of what particles are drawn from, to those of the proposals."""

    def gaps(self, num_particles: int) -> FloatArray:
        """(variable,): how far particles are apart around the mean."""
        return np.asarray(np.sqrt(2 * np.pi) * self.wider * self.sd / num_particles)

    @classmethod
    def of(
        cls, factors: Factors, centre: FloatArray, sd: FloatArray, num_particles: int
    ) -> Proposals:
        """Proposals around centres."""
        variables = factors.graph.variables
        return cls(
            centre,
            variables.lower - centre,
            variables.upper - centre,
            np.zeros(len(centre)),
            sd,
            max(1.0, REACH / float(special.ndtri(1.0 - 0.5 / num_particles))),
        )

    def adapted(
        self, places: Places, particles: Particles, probs: FloatArray, damping: float
    ) -> tuple[Proposals, float]:
        """Proposals with the moments of the beliefs, and the largest change of one, in standard
        deviations.

        probs: (point,), the beliefs.
        """
        whose, count, x = places.variable, len(self.mean), particles.point
        mean = np.bincount(whose, probs * x, count)
        # A particle stands for what lies around it: one alone is no point.
        around = (x - mean[whose]) ** 2 + _gaps(x, places) ** 2 / 12
        sd = np.sqrt(np.bincount(whose, probs * around, count))
        # Of a Gaussian nothing is left beyond; but another mode may lie further out, and shall not
        # stand at the very end.
        farthest = np.zeros(count)
        np.maximum.at(farthest, whose, np.where(probs > NOTHING, np.abs(x - mean[whose]), 0.0))
        needed = farthest / REACH
        sd = np.where(needed > BEYOND * sd, MARGIN * needed, sd)
        sd = np.clip(sd, self.sd / FASTEST, self.sd * FASTEST)
        found = replace(
            self,
            mean=damping * self.mean + (1.0 - damping) * mean,
            sd=self.sd**damping * sd ** (1.0 - damping),
        )
        moved = np.abs(found.mean - self.mean) / np.minimum(found.sd, self.sd)
        grown = np.abs(np.log(found.sd / self.sd))
        return found, float(np.maximum(moved, grown)[np.diff(places.first) > 0].max(initial=0.0))


def _gaps(x: FloatArray, places: Places) -> FloatArray:
    """(point,): mean distance of each particle from its neighbours among those of its variable."""
    first, last = places.first[places.variable], places.first[places.variable + 1] - 1
    place = np.arange(len(x))
    before, after = np.maximum(place - 1, first), np.minimum(place + 1, last)
    return np.asarray((x[after] - x[before]) / np.maximum(after - before, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """The points of all variables; of reals their distances from the centres."""

    point: FloatArray  # (point,)
    log_base: FloatArray  # (point,): weights with which sums over points stand for integrals

    @classmethod
    def drawn(
        cls, proposals: Proposals, factors: Factors, places: Places, states: FloatArray, at: float
    ) -> Particles:
        """One particle from each of so many equally probable strata, at the same place in all.

        The same for all variables: sums run over all combinations of particles, so that nothing is
        lost, and look-alikes stay alike. states: (point,), of discrete variables; at: from 0 to 1.
        """
        mean, sd = proposals.mean, proposals.wider * proposals.sd
        whose = places.variable
        real = factors.is_real[whose]
        of, count = whose[real], np.diff(places.first)[whose[real]]
        stratum = np.flatnonzero(real) - places.first[of]
        low = special.ndtr((proposals.lower - mean) / sd)
        share = special.ndtr((proposals.upper - mean) / sd) - low
        z = special.ndtri(low[of] + share[of] * (stratum + at) / count)
        point, log_base = states.copy(), np.zeros(len(states))
        point[real] = np.clip(mean[of] + sd[of] * z, proposals.lower[of], proposals.upper[of])
        z = (point[real] - mean[of]) / sd[of]
        log_base[real] = 0.5 * z**2 + LOG_ROOT + np.log(sd * share)[of] - np.log(count)
        return cls(point, log_base)
