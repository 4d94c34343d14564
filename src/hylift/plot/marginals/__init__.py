"""Pictures of marginals."""

from hylift.plot.marginals.figure import MAX_PANELS, check_panels, plot_marginals

__all__ = ["MAX_PANELS", "check_panels", "plot_marginals"]
