"""The relational Gaussian model: Table 2 (accuracy) and Figure 3 (free energy against time)."""

from experiments.rgm.experiment import run

__all__ = ["run"]
