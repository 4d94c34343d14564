"""Panels on which nothing that a quadratic factor can do falls between the nodes.

As a function of one real, with all else fixed, a sum of quadratics is a bell, or it rises towards
an end of the interval. Panels of a few standard deviations of the narrowest possible bell catch
the one; panels that shrink towards both ends catch the other, however steep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.inference.exact.parts import Parts
from hylift.potentials import ConditionalQuadratic

FEWEST_PANELS = 2
MAX_PANELS = 8192

PANEL_SDS = 8.0
"""Widest panel, in standard deviations of the narrowest bell that a real can have."""

PANEL_DECAY = 20.0
"""Widest panel at an end of the interval, in lengths over which the density can fall e-fold."""


def resolving_edges(parts: Parts, gridded: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(gridded, panel + 1): edges of panels that resolve every quadratic factor."""
    reals = np.flatnonzero(gridded)
    lower, width = parts.lower[reals], (parts.upper - parts.lower)[reals]
    precision, slope = _steepest(parts)
    precision, slope = precision[reals], slope[reals]
    needed = width * np.sqrt(precision) / PANEL_SDS
    if needed.max(initial=0.0) > MAX_PANELS:
        worst = int(np.argmax(needed))
        raise IntractableError(
            f"'{parts.real_name(int(reals[worst]))}' may be held to within "
            f"{1 / np.sqrt(precision[worst]):.2g} on an interval of width {width[worst]:.3g}: "
            "numerical integration would need too many nodes. Narrow its interval, or leave it "
            "unbounded."
        )
    count = max(FEWEST_PANELS, int(np.ceil(needed.max(initial=0.0))))
    decay = (width / count * slope).max(initial=0.0) / PANEL_DECAY
    levels = int(np.ceil(np.log2(max(decay, 1.0))))
    inner = np.linspace(0.0, 1.0, count + 1)
    towards = inner[1] * 0.5 ** np.arange(levels, 0, -1)
    unit = np.concatenate([[0.0], towards, inner[1:-1], 1.0 - towards[::-1], [1.0]])
    return lower[:, None] + width[:, None] * unit


def halved(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(gridded, 2 panel + 1): every panel cut in two."""
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    finer = np.empty((len(edges), edges.shape[1] + middle.shape[1]))
    finer[:, ::2], finer[:, 1::2] = edges, middle
    return finer


def _steepest(parts: Parts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(real,): bounds on its precision, and on the slope in it anywhere in the box, given all else.

    Each sums over its factors the largest in any state. A neighbour without bounds counts as
    fixed at 0: integrated out, it can only make the density wider.
    """
    precision, slope = np.zeros(len(parts.real)), np.zeros(len(parts.real))
    reach = np.maximum(np.abs(parts.lower), np.abs(parts.upper))
    reach = np.where(np.isfinite(reach), reach, 0.0)
    for f in parts.quadratics:
        assert isinstance(f.potential, ConditionalQuadratic)
        num_rows = f.potential.num_rows
        A = f.potential.A.reshape(num_rows, -1, *f.potential.A.shape[-2:])
        b = f.potential.b.reshape(num_rows, -1, f.potential.num_reals)
        for slot in range(f.real.shape[1]):
            bell = np.maximum(-2 * A[..., slot, slot], 0.0).max(axis=1)
            np.add.at(precision, f.real[:, slot], bell[f.row] * f.multiplicity)
            steep = np.abs(b[..., slot]).max(axis=1)[f.row]
            for other in range(f.real.shape[1]):
                pull = 2 * np.abs(A[..., slot, other]).max(axis=1)[f.row]
                steep = steep + pull * reach[f.real[:, other]]
            np.add.at(slope, f.real[:, slot], steep * f.multiplicity)
    return precision, slope
