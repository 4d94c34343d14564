"""A graph made ready for variational inference: the terms of its free energy, laid out flat."""

from hylift.inference.variational.problem.problem import (
    FloatArray,
    Mixtures,
    Problem,
    beliefs_of,
)
from hylift.inference.variational.problem.scopes import Scopes

__all__ = ["FloatArray", "Mixtures", "Problem", "Scopes", "beliefs_of"]
