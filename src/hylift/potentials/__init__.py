"""Three kinds of potential: tables, conditional quadratics, and any function."""

from hylift.potentials.base import ANY_STATES, REAL, Potential
from hylift.potentials.function import Function
from hylift.potentials.quadratic import ConditionalQuadratic
from hylift.potentials.table import Table

__all__ = [
    "ANY_STATES",
    "REAL",
    "ConditionalQuadratic",
    "Function",
    "Potential",
    "Table",
]
