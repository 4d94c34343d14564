"""Mixtures of products: what variational inference answers with."""

from hylift.posterior.mixture.expectation import Expectation
from hylift.posterior.mixture.layout import Layout
from hylift.posterior.mixture.mixture import Mixture

__all__ = ["Expectation", "Layout", "Mixture"]
