"""Gaussian belief propagation between reals."""

from hylift.inference.message.gaussian.method import GaBP

__all__ = ["GaBP"]
