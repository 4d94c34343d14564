"""Model and tables -> FactorGraph."""

from hylift.ground.ground import Grounding, ground, ground_world, size_estimate
from hylift.ground.size import SizeWarning
from hylift.ground.world import World

__all__ = ["Grounding", "SizeWarning", "World", "ground", "ground_world", "size_estimate"]
