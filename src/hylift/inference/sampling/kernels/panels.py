"""Panels of grids, narrow where densities are."""

import numpy as np
from numba import njit

from hylift.inference.sampling.kernels.inner import inner

PART = 0.25
"""Share of a panel that a step on the way takes."""

CORE, FAR = 5.0, 1e3
"""Standard deviations up to which panels are narrow, and from which on they grow fastest."""


@njit(cache=True, nogil=True, _nrt=False)
def lay_panels(mixtures, steps, low, high, least, edges, room):
    """Fills in edges (grid, panel + 1) from low to high: (grid,).

    A panel is half a standard deviation wide near the Gaussians of the mixture of its real, and
    wider in proportion to how far they are; all are stretched alike to make the number of panels
    what it is. least: (grid,), the narrowest that can be told apart. room: steps on the way.
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


@inner
def _width(mixtures, v, x, least):
    """How wide a panel is to be."""
    width = np.inf
    for k in range(mixtures.count[v]):
        scale = max(np.sqrt(mixtures.var[v, k]), least)
        far = abs(x - mixtures.mean[v, k]) / scale
        grown = 0.5 + max(far - CORE, 0.0) / 3.0 + max(far - FAR, 0.0)
        width = min(width, scale * grown)
    return width
