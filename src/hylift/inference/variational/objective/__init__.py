"""Free energies of mixtures of products, and their gradients."""

from hylift.inference.variational.objective.objective import Entropy, Evaluation, Objective

__all__ = ["Entropy", "Evaluation", "Objective"]
