"""What Gaussians make of bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]

LEAK = 1e-3
"""Mass of a Gaussian beyond the bounds, from which on they matter."""


def mass_beyond(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """The mass that Gaussians have beyond bounds; all arguments broadcast."""
    return np.asarray(ndtr((lower - mean) / sd) + ndtr((mean - upper) / sd))
