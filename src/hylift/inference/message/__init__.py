"""Messages between factors and variables, ground or lifted."""

from hylift.inference.message.discrete import BP
from hylift.inference.message.gaussian import GaBP
from hylift.inference.message.particle import EPBP

__all__ = ["BP", "EPBP", "GaBP"]
