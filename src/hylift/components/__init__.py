"""Families of mixture components.

A family has a file here: the densities, moments, nodes, draws and checks of its parameters, for
many variables at once (`Family`). Its part in inner loops is a branch in `kernels/`: `integrals`
has overlaps, entropies and the tables for quadrature, `steps` those of optimisers. `Layout` packs
the parameters of all variables into flat arrays, which is how they are stored. Nothing outside this
folder distinguishes families by their codes.
"""

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
