"""Expectation propagation with a joint Gaussian over the reals."""

from hylift.inference.expectation.method import EP

__all__ = ["EP"]
