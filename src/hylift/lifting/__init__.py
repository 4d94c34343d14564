"""Lifting: look-alike parts of a graph are found and solved once."""

from hylift.lifting.coarse.disagreement import Beliefs, by_disagreement
from hylift.lifting.coarse.levels import (
    Choose,
    Level,
    Surroundings,
    by_distance,
    coarse_to_fine,
    every_cluster,
)
from hylift.lifting.coloring import Partition, stable_coloring, tie
from hylift.lifting.explanation import Explanation
from hylift.lifting.implicit.ground import ground_lifted
from hylift.lifting.lift import Lifting, lift, quotient
from hylift.lifting.structure import Structure

__all__ = [
    "Beliefs",
    "Choose",
    "Explanation",
    "Level",
    "Lifting",
    "Partition",
    "Structure",
    "Surroundings",
    "by_disagreement",
    "by_distance",
    "coarse_to_fine",
    "every_cluster",
    "ground_lifted",
    "lift",
    "quotient",
    "stable_coloring",
    "tie",
]
