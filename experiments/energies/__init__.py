"""Figure 2 of the paper: the energy of the most probable assignment, against time."""

from experiments.energies.experiment import experiment
from experiments.energies.problem import Problem, problems

__all__ = ["Problem", "experiment", "problems"]
