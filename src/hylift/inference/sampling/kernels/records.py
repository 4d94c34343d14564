"""What is kept of draws: mixtures of a few Gaussians, and densities on grids."""

import numpy as np
from numba import njit

from hylift.inference.sampling.kernels.arrays import INDEFINITE
from hylift.inference.sampling.kernels.block import conditional, solve_component
from hylift.inference.sampling.kernels.inner import inner, part


@part
def note_reals(terms, reals, chain, record):
    """Adds what the draw at hand tells of the distribution of every real.

    That is more than its value: its Gaussian given the states, or, where bounds matter, its
    truncated Gaussian given all other variables (Rao and Blackwell).
    """
    for c in range(len(reals.has_bounds)):
        one_by_one = record.is_cut[c] or chain.known[c] == INDEFINITE
        if not one_by_one:
            solve_component(reals, chain, c)
        for k in range(reals.component_ptr[c], reals.component_ptr[c + 1]):
            v = reals.steps[k]
            if not one_by_one:
                add_gaussian(record.mixtures, v, 1.0, chain.mean[v], chain.var[v])
                continue
            curve, slope = conditional(terms, reals, chain, v)
            if record.grid[v] >= 0:
                _add_density(record, record.grid[v], curve, slope)
            elif curve < 0.0:
                add_gaussian(record.mixtures, v, 1.0, -0.5 * slope / curve, -0.5 / curve)


@inner
def _add_density(record, row, curve, slope):
    """Adds exp(curve x² + slope x), normalised on the grid itself."""
    nodes, room = record.nodes, record.room
    top = -np.inf
    for k in range(len(room)):
        room[k] = (curve * nodes[row, k] + slope) * nodes[row, k]
        top = max(top, room[k])
    total = 0.0
    for k in range(len(room)):
        room[k] = np.exp(room[k] - top)
        total += room[k] * record.node_weight[row, k]
    for k in range(len(room)):
        record.density[row, k] += room[k] / total


@inner
def add_gaussian(mixtures, v, weight, mean, var):
    """Adds a Gaussian to the mixture of a real; where there is no room, like ones are merged."""
    n = mixtures.count[v]
    for k in range(n):
        if mixtures.mean[v, k] == mean and mixtures.var[v, k] == var:
            mixtures.weight[v, k] += weight
            return
    if n == mixtures.weight.shape[1]:
        merge_like(mixtures, v, n // 2)
        n = mixtures.count[v]
    mixtures.weight[v, n] = weight
    mixtures.mean[v, n] = mean
    mixtures.var[v, n] = var
    mixtures.count[v] = n + 1


@inner
def merge_like(mixtures, v, most):
    """Merges the components of a mixture that are most alike until few enough are left.

    Its mean and variance stay as they are. Neighbours in the order of the means are compared.
    """
    weight, mean, var, cost = mixtures.weight, mixtures.mean, mixtures.var, mixtures.cost
    _sort_by_mean(mixtures, v)
    size = mixtures.count[v]
    for k in range(size - 1):
        cost[k] = _cost(mixtures, v, k)
    while size > most:
        best = 0
        for k in range(1, size - 1):
            if cost[k] < cost[best]:
                best = k
        total = weight[v, best] + weight[v, best + 1]
        share = weight[v, best + 1] / total
        apart = mean[v, best + 1] - mean[v, best]
        var[v, best] += share * (var[v, best + 1] - var[v, best])
        var[v, best] += share * (1.0 - share) * apart * apart
        mean[v, best] += share * apart
        weight[v, best] = total
        size -= 1
        for k in range(best + 1, size):
            weight[v, k] = weight[v, k + 1]
            mean[v, k] = mean[v, k + 1]
            var[v, k] = var[v, k + 1]
            cost[k] = cost[k + 1]
        for k in range(max(best - 1, 0), min(best + 1, size - 1)):
            cost[k] = _cost(mixtures, v, k)
    mixtures.count[v] = size


@inner
def _cost(mixtures, v, k):
    """How much a mixture changes when a component is merged with the next one."""
    weight, mean, var = mixtures.weight, mixtures.mean, mixtures.var
    w = weight[v, k] * weight[v, k + 1] / (weight[v, k] + weight[v, k + 1])
    apart = (mean[v, k + 1] - mean[v, k]) ** 2
    apart += (np.sqrt(var[v, k + 1]) - np.sqrt(var[v, k])) ** 2
    return w * apart / min(var[v, k], var[v, k + 1])


@inner
def _sort_by_mean(mixtures, v):
    weight, mean, var = mixtures.weight, mixtures.mean, mixtures.var
    for k in range(1, mixtures.count[v]):
        w, m, s = weight[v, k], mean[v, k], var[v, k]
        at = k
        while at > 0 and mean[v, at - 1] > m:
            weight[v, at] = weight[v, at - 1]
            mean[v, at] = mean[v, at - 1]
            var[v, at] = var[v, at - 1]
            at -= 1
        weight[v, at] = w
        mean[v, at] = m
        var[v, at] = s


@njit(cache=True, nogil=True)
def gather(mixtures, others, most):
    """Adds other mixtures, and leaves no more than so many components of each."""
    for v in range(len(mixtures.count)):
        for k in range(others.count[v]):
            add_gaussian(mixtures, v, others.weight[v, k], others.mean[v, k], others.var[v, k])
        if mixtures.count[v] > most:
            merge_like(mixtures, v, most)
