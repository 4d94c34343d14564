"""Liftings from coarse to fine: by clusters of real evidence, and by distance."""

from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.disagreement import Beliefs, by_disagreement, disagreement
from hylift.lifting.coarse.levels import (
    Choose,
    Level,
    Surroundings,
    by_distance,
    coarse_to_fine,
    every_cluster,
)

__all__ = [
    "Beliefs",
    "Choose",
    "EvidenceClusters",
    "Level",
    "Surroundings",
    "by_disagreement",
    "by_distance",
    "coarse_to_fine",
    "disagreement",
    "every_cluster",
]
