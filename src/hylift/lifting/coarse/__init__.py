"""Liftings that know real evidence by clusters, from coarse to fine."""

from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.disagreement import by_disagreement, disagreement
from hylift.lifting.coarse.gradients import Beliefs
from hylift.lifting.coarse.levels import Choose, Level, coarse_to_fine, every_cluster

__all__ = [
    "Beliefs",
    "Choose",
    "EvidenceClusters",
    "Level",
    "by_disagreement",
    "coarse_to_fine",
    "disagreement",
    "every_cluster",
]
