"""Predicted seconds of particles, from the sizes of a graph: rough, and the same everywhere."""

from __future__ import annotations

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.smc.method import SMC
from hylift.inference.smc.run import PER_SLOT, PER_VALUE, needs_values
from hylift.rewrite.parts import parts_of

LEAST, STEPS = 0.01, 30
"""Seconds of any run; and powers to which particles raise the distribution, as a rule."""
PER_STATE, PER_UPDATE, PER_REAL = 1e-7, 4e-7, 3e-9
"""Seconds for a state of a variable of a particle; in a part with reals; and for each of these."""


def particle_seconds(graph: FactorGraph, method: SMC) -> float:
    """The time of particles: of states that they move, of reals beside, and of functions."""
    part, count = parts_of(graph)
    num_states, has_values = graph.variables.num_states, needs_values(graph)
    reals = np.bincount(part[num_states == 0], minlength=count)[part]
    each = PER_STATE + np.where(reals > 0, PER_UPDATE + PER_REAL * reals, 0.0)
    log_joint = np.bincount(part, np.log(np.maximum(num_states, 1)), count)[part]
    is_enumerated = (log_joint <= np.log(method.particles)) & ~has_values
    sweeps = np.where(is_enumerated, 0.3 * method.sweeps, STEPS + method.sweeps)
    work = (sweeps * np.where(has_values, PER_VALUE, num_states * each)).sum()
    functions = [group for group in graph.groups if group.potential.quadratic() is None]
    slots = sum(group.scope.size for group in functions)
    work += (STEPS + method.sweeps) * PER_SLOT * slots
    return LEAST + method.groups * method.particles * float(work)
