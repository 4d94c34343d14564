"""Distributions of single variables, one or a whole batch in the same class."""

from hylift.posterior.distributions.base import BatchedDistribution
from hylift.posterior.distributions.beta_mixture import BetaMixture
from hylift.posterior.distributions.categorical import Categorical
from hylift.posterior.distributions.gaussian_mixture import GaussianMixture
from hylift.posterior.distributions.piecewise import PiecewiseDensity
from hylift.posterior.distributions.point_mass import PointMass
from hylift.posterior.distributions.reals import RealDistribution

__all__ = [
    "BatchedDistribution",
    "BetaMixture",
    "Categorical",
    "GaussianMixture",
    "PiecewiseDensity",
    "PointMass",
    "RealDistribution",
]
