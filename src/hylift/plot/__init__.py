"""Pictures of answers and of lifted graphs."""

from hylift.plot.classes import plot_classes
from hylift.plot.convergence import plot_convergence
from hylift.plot.forest import plot_forest
from hylift.plot.marginals import plot_marginals
from hylift.plot.race import plot_race

__all__ = ["plot_classes", "plot_convergence", "plot_forest", "plot_marginals", "plot_race"]
