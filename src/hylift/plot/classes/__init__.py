"""Pictures of lifted graphs."""

from hylift.plot.classes.picture import plot_classes

__all__ = ["plot_classes"]
