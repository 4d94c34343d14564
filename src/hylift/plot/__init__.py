"""Plots of posteriors, races and lifted graphs."""

from typing import TYPE_CHECKING

from hylift.lazy import lazy_names

if TYPE_CHECKING:
    from hylift.plot.classes import plot_classes as plot_classes
    from hylift.plot.convergence import plot_convergence as plot_convergence
    from hylift.plot.forest import plot_forest as plot_forest
    from hylift.plot.marginals import plot_marginals as plot_marginals
    from hylift.plot.race import plot_race as plot_race

_HOME = {
    "plot_classes": "classes",
    "plot_convergence": "convergence",
    "plot_forest": "forest",
    "plot_marginals": "marginals",
    "plot_race": "race",
}
"""The module of each name."""

__all__ = [*_HOME]

__getattr__ = lazy_names("hylift.plot", _HOME)
