"""Mixtures of products, fitted to a graph by minimising a free energy."""

from hylift.inference.variational.methods import BVI, NPVI, MeanField
from hylift.inference.variational.optimisers import Adam, NaturalGradient, NaturalNewton

__all__ = ["BVI", "NPVI", "Adam", "MeanField", "NaturalGradient", "NaturalNewton"]
