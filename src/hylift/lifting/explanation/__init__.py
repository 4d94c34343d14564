"""What a lifting saved, and what stood against it."""

from hylift.lifting.explanation.cost import Size
from hylift.lifting.explanation.explain import Explanation, LargeClasses, explain
from hylift.lifting.explanation.symmetry import EvidenceEffect

__all__ = [
    "EvidenceEffect",
    "Explanation",
    "LargeClasses",
    "Size",
    "explain",
]
