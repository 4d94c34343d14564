"""Figure 2 of the paper: the energy of the most probable assignment, against time."""

from experiments.energies.experiment import experiment
from experiments.energies.study import Problem

__all__ = ["Problem", "experiment"]
