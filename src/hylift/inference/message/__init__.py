"""Messages between factors and variables, ground or lifted."""

from hylift.inference.message.discrete import BP
from hylift.inference.message.gaussian import GaBP

__all__ = ["BP", "GaBP"]
