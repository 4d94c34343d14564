"""Liftings that know real evidence by clusters, from coarse to fine."""

from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.levels import Level, coarse_to_fine, every_cluster

__all__ = ["EvidenceClusters", "Level", "coarse_to_fine", "every_cluster"]
