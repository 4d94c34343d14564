"""Posteriors: marginals, joints, MAP assignments and log Z; export and storage."""

from hylift.posterior.answers import Assignment, History, LogPartition, Result, Solution
from hylift.posterior.comparison import Comparison
from hylift.posterior.distributions import (
    BetaMixture,
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
)
from hylift.posterior.joint import JointDensity
from hylift.posterior.marginals import Marginals, with_observed
from hylift.posterior.mixture import Mixture
from hylift.posterior.posterior import Posterior
from hylift.posterior.summing import Expectation
from hylift.posterior.target import Target
from hylift.posterior.trust import Trust

__all__ = [
    "Assignment",
    "BetaMixture",
    "Categorical",
    "Comparison",
    "Expectation",
    "GaussianMixture",
    "History",
    "JointDensity",
    "LogPartition",
    "Marginals",
    "Mixture",
    "PiecewiseDensity",
    "PointMass",
    "Posterior",
    "Result",
    "Solution",
    "Target",
    "Trust",
    "with_observed",
]
