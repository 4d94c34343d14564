"""Which variables and factors look alike."""

from hylift.lifting.coloring.parameters import TOLERANCE
from hylift.lifting.coloring.partition import Partition, tie
from hylift.lifting.coloring.refine import stable_coloring
from hylift.lifting.coloring.structure import Structure

__all__ = ["TOLERANCE", "Partition", "Structure", "stable_coloring", "tie"]
