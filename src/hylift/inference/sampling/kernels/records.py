"""Records of draws: mixtures of a few Gaussians, and densities on grids.

A grid has narrow panels where densities were seen while warming up.
"""

import numpy as np

from hylift.inference.local.kernels import entry, inner_with_views, part
from hylift.inference.sampling.kernels.reals import conditional, solve_component
from hylift.inference.sampling.state import FACTORISED, INDEFINITE
from hylift.numerics.kernels import inner

COARSE = 3.0
"""Times its own width that a density may find the panel wide in which it begins."""

NARROWEST = 1e-150
"""A narrower density has no square that is a number."""


@inner_with_views
def note_reals(terms, blocks, chain, record, is_warm):
    """Add the contribution of the current draw to the distribution of every real.

    That is more than its value: its Gaussian given the states, or, where a bound matters in these
    states, its truncated Gaussian given all other variables (Rao and Blackwell). Before the chain
    is warm, only reals with bounds are looked at: where their densities lie.
    """
    for c in range(len(blocks.has_bounds)):
        if not (is_warm or blocks.has_bounds[c]):
            continue
        if chain.known[c] == FACTORISED:
            solve_component(terms, blocks, chain, c)
        one_by_one = chain.is_near[c] > 0 or chain.known[c] == INDEFINITE
        if one_by_one:
            chain.is_cut[c] = 1
        for k in range(blocks.component_ptr[c], blocks.component_ptr[c + 1]):
            v = blocks.steps[k]
            r = blocks.variable[v]
            low, high = terms.variable[r].lower, terms.variable[r].upper
            is_bounded = low > -np.inf or high < np.inf
            mean, var = chain.mean[v], chain.var[v]
            if one_by_one:
                curve, slope = conditional(
                    terms, chain.x, chain.curve, chain.linear, chain.coupling, r
                )
                if is_bounded and not is_warm:
                    _note_place(record.mixtures, v, curve, slope, low, high)
                    continue
                if record.grid[v] >= 0:
                    _add_density(record, record.grid[v], 1.0, curve, slope, low, high)
                    continue
                if not curve < 0.0:
                    continue
                mean, var = -0.5 * slope / curve, -0.5 / curve
            if is_bounded or is_warm:
                add_gaussian(record.mixtures, v, 1.0, mean, var)
            if is_warm:
                apart = mean - record.origin[v]
                record.moments[0, v] += apart
                record.moments[1, v] += apart * apart + var


@inner
def _shape(curve, slope, low, high):
    """The place where exp(curve x² + slope x) is largest between bounds, its slope in log space,
    and about how far it reaches from there."""
    if curve < 0.0:
        middle = -0.5 * slope / curve
        origin = min(max(middle, low), high)
        tilt = 2.0 * curve * (origin - middle)
    else:
        # Its largest value is at a bound; of two, compared by the chord between them.
        is_high = low == -np.inf or (high < np.inf and curve * (low + high) + slope > 0.0)
        origin = high if is_high else low
        tilt = 2.0 * curve * origin + slope
    steep = 0.5 * (abs(tilt) + np.sqrt(tilt * tilt - 8.0 * min(curve, 0.0)))
    reach = high - low
    if steep * reach > 1.0:
        reach = 1.0 / steep
    return origin, tilt, max(reach, NARROWEST)


@part
def _note_place(mixtures, v, curve, slope, low, high):
    """Adds Gaussians that are where a density between bounds is, and as wide: at both bounds if
    it may be large there."""
    origin, _, reach = _shape(curve, slope, low, high)
    for bound in (low, high):
        if curve > 0.0 and np.isfinite(bound):
            origin, steep = bound, abs(2.0 * curve * bound + slope)
            reach = high - low
            if steep * reach > 1.0:
                reach = max(1.0 / steep, NARROWEST)
        elif bound == high:
            continue
        add_gaussian(mixtures, v, 1.0, origin, reach * reach)


@inner
def _add_density(record, row, weight, curve, slope, low, high):
    """Adds exp(curve x² + slope x) between the bounds, normalised on the grid itself.

    What is too narrow for the grid, which is rare, goes into its panel as a whole. Distances are
    counted from where the density is largest, so that no digits are lost far from 0.
    """
    origin, tilt, reach = _shape(curve, slope, low, high)
    edges, nodes, room = record.edges, record.nodes, record.room
    num_panels = edges.shape[1] - 1
    panel, end = 0, num_panels
    while end - panel > 1:
        middle = (panel + end) // 2
        if edges[row, middle] <= origin:
            panel = middle
        else:
            end = middle
    record.added[row] += weight
    width = edges[row, panel + 1] - edges[row, panel]
    is_outside = origin < edges[row, 0] or origin > edges[row, num_panels]
    if is_outside or width > COARSE * reach:
        degree = len(room) // num_panels
        for k in range(panel * degree, (panel + 1) * degree):
            record.density[row, k] += weight / width
        record.coarse[row] += weight
        return
    total = 0.0
    for k in range(len(room)):
        apart = nodes[row, k] - origin
        room[k] = np.exp((curve * apart + tilt) * apart)
        total += room[k] * record.node_weight[row, k]
    for k in range(len(room)):
        record.density[row, k] += weight * room[k] / total


@inner
def add_gaussian(mixtures, v, weight, mean, var):
    """Adds a Gaussian to the mixture of a real; where there is no room, like ones are merged."""
    n = mixtures.num_components[v]
    for k in range(n):
        if mixtures.mean[v, k] == mean and mixtures.var[v, k] == var:
            mixtures.weight[v, k] += weight
            return
    if n == mixtures.weight.shape[1]:
        merge_like(mixtures, v, n // 2)
        n = mixtures.num_components[v]
    mixtures.weight[v, n] = weight
    mixtures.mean[v, n] = mean
    mixtures.var[v, n] = var
    mixtures.num_components[v] = n + 1


@inner
def merge_like(mixtures, v, most):
    """Merges the components of a mixture that are most alike until few enough are left.

    Its mean and variance stay as they are. Neighbours in the order of the means are compared.
    """
    weight, mean, var, cost = mixtures.weight, mixtures.mean, mixtures.var, mixtures.cost
    _sort_by_mean(mixtures, v)
    size = mixtures.num_components[v]
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
    mixtures.num_components[v] = size


@inner
def _cost(mixtures, v, k):
    """The change of a mixture when a component is merged with the next one."""
    weight, mean, var = mixtures.weight, mixtures.mean, mixtures.var
    w = weight[v, k] * weight[v, k + 1] / (weight[v, k] + weight[v, k + 1])
    apart = (mean[v, k + 1] - mean[v, k]) ** 2
    apart += (np.sqrt(var[v, k + 1]) - np.sqrt(var[v, k])) ** 2
    return w * apart / min(var[v, k], var[v, k + 1])


@part
def _sort_by_mean(mixtures, v):
    weight, mean, var = mixtures.weight, mixtures.mean, mixtures.var
    for k in range(1, mixtures.num_components[v]):
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


@entry
def gather(mixtures, others, most):
    """Adds other mixtures, and leaves no more than so many components of each."""
    for v in range(len(mixtures.num_components)):
        for k in range(others.num_components[v]):
            add_gaussian(mixtures, v, others.weight[v, k], others.mean[v, k], others.var[v, k])
        if mixtures.num_components[v] > most:
            merge_like(mixtures, v, most)


@entry
def spread_on_grids(terms, blocks, record):
    """Moves the mixtures of those reals onto their grids that have something there."""
    for v in range(len(record.grid)):
        row = record.grid[v]
        if row < 0 or record.added[row] == 0.0:
            continue
        r, mixtures = blocks.variable[v], record.mixtures
        for k in range(mixtures.num_components[v]):
            var = mixtures.var[v, k]
            _add_density(
                record, row, mixtures.weight[v, k], -0.5 / var, mixtures.mean[v, k] / var,
                terms.variable[r].lower, terms.variable[r].upper,
            )  # fmt: skip
        mixtures.num_components[v] = 0


PART = 0.25
"""Share of a panel that a step on the way takes."""

CORE, FAR = 5.0, 1e3
"""Standard deviations up to which panels are narrow, and from which on they grow fastest."""


@entry
def lay_panels(mixtures, steps, low, high, least, edges, room):
    """Fills in edges (grid, panel + 1) from low to high: (grid,).

    A panel is half a standard deviation wide near the Gaussians of the mixture of its real, and
    wider in proportion to how far they are; all are stretched alike to make the number of panels
    what it is. least: (grid,), the narrowest that can be resolved. room: steps on the way.
    """
    num_panels = edges.shape[1] - 1
    for row in range(len(steps)):
        x, n = low[row], 0
        room[0] = x
        while x < high[row] and n < len(room) - 1:
            width = max(_width(mixtures, steps[row], x, least[row]), least[row])
            x = min(x + PART * width, high[row])
            n += 1
            room[n] = x
        room[n] = high[row]
        for panel in range(num_panels + 1):
            at = panel * n / num_panels
            k = min(np.int64(at), n - 1)
            edges[row, panel] = room[k] + (at - k) * (room[k + 1] - room[k])
        edges[row, 0], edges[row, num_panels] = low[row], high[row]


@part
def _width(mixtures, v, x, least):
    """The width of a panel at x."""
    width = np.inf
    for k in range(mixtures.num_components[v]):
        scale = max(np.sqrt(mixtures.var[v, k]), least)
        far = abs(x - mixtures.mean[v, k]) / scale
        grown = 0.5 + max(far - CORE, 0.0) / 3.0 + max(far - FAR, 0.0)
        width = min(width, scale * grown)
    return width
