"""What a lifting saved, and what stood against it."""

from hylift.lifting.explanation.cost import Size, grid_points
from hylift.lifting.explanation.explain import EvidenceEffect, Explanation, LargeClasses, explain
from hylift.lifting.explanation.predicates import Predicates

__all__ = [
    "EvidenceEffect",
    "Explanation",
    "LargeClasses",
    "Predicates",
    "Size",
    "explain",
    "grid_points",
]
