"""Exact inference: the yardstick of every other method."""

from hylift.inference.exact.solver import Exact

__all__ = ["Exact"]
