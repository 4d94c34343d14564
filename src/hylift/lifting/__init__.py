"""Look-alike parts of a graph are found, and solved once."""

from hylift.lifting.coloring import Partition, Structure, stable_coloring, tie
from hylift.lifting.lift import Lifting, lift
from hylift.lifting.quotient import quotient

__all__ = ["Lifting", "Partition", "Structure", "lift", "quotient", "stable_coloring", "tie"]
