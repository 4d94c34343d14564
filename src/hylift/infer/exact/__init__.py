"""Exact inference: the yardstick of every other method."""

from hylift.infer.exact.solver import Exact

__all__ = ["Exact"]
