"""Families of mixture components: densities, moments, nodes, checks and kernels of each."""

from hylift.components.beta import Betas
from hylift.components.categorical import Categoricals
from hylift.components.family import Family, Nodes
from hylift.components.gaussian import Gaussians, Limits
from hylift.components.layout import FAMILIES, Layout

__all__ = [
    "FAMILIES",
    "Betas",
    "Categoricals",
    "Family",
    "Gaussians",
    "Layout",
    "Limits",
    "Nodes",
]
