"""Pictures of answers."""

from hylift.plot.marginals import plot_marginals

__all__ = ["plot_marginals"]
