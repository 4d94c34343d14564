"""Model and tables -> FactorGraph."""

from hylift.grounding.ground import Grounding, ground, ground_world, size_estimate
from hylift.grounding.sizes import SizeWarning
from hylift.grounding.world import World

__all__ = ["Grounding", "SizeWarning", "World", "ground", "ground_world", "size_estimate"]
