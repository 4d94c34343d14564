"""Markov chain Monte Carlo."""

from hylift.inference.sampling.gibbs import Gibbs

__all__ = ["Gibbs"]
