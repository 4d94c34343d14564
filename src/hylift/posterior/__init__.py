"""Answers: marginals, MAP assignments and log Z, to ask, export and store."""

from hylift.posterior.answers import Assignment, LogPartition, Solution
from hylift.posterior.distributions import (
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
)
from hylift.posterior.marginals import Marginals, with_observed
from hylift.posterior.posterior import Posterior

__all__ = [
    "Assignment",
    "Categorical",
    "GaussianMixture",
    "LogPartition",
    "Marginals",
    "PiecewiseDensity",
    "PointMass",
    "Posterior",
    "Solution",
    "with_observed",
]
