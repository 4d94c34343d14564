"""The mass of Gaussians beyond bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hylift.errors import UnsupportedError

FloatArray = NDArray[np.float64]

LEAK = 1e-3
"""Mass of a Gaussian beyond the bounds from which on they matter."""


def too_narrow(name: str) -> UnsupportedError:
    """The error for a real whose bounds or density are too narrow for floating point."""
    return UnsupportedError(
        f"'{name}' varies by less than numbers of its size can tell apart: give it another origin "
        "or unit"
    )


def mass_beyond(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """The mass of Gaussians beyond bounds; all arguments broadcast."""
    return np.asarray(ndtr((lower - mean) / sd) + ndtr((mean - upper) / sd))
