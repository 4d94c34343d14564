"""Table 3: relational Kalman filters of groundwater levels, a tree and a model with cycles."""

from experiments.kalman.experiment import run_cycle, run_tree

__all__ = ["run_cycle", "run_tree"]
