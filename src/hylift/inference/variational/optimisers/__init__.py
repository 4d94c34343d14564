"""Ways down a free energy."""

from hylift.inference.variational.optimisers.adam import Adam
from hylift.inference.variational.optimisers.base import Optimiser, State
from hylift.inference.variational.optimisers.natural import NaturalGradient
from hylift.inference.variational.optimisers.newton import NaturalNewton

__all__ = ["Adam", "NaturalGradient", "NaturalNewton", "Optimiser", "State"]
