"""A relational Kalman model of all wells, which goes further than the paper does.

The wells of a cluster share a trend and a season, so that each tells something about the others.
How much that is worth is measured on ten years to which no parameter was fitted.
"""

from experiments.groundwater.experiment import run

__all__ = ["run"]
