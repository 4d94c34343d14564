"""Messages between factors and variables, ground or lifted."""

from hylift.inference.message.discrete import BP

__all__ = ["BP"]
