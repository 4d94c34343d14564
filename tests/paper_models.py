"""The models of the paper, with all that grounding them tells."""

from __future__ import annotations

from typing import Any

from experiments.instances import sources
from hylift.grounding import Grounding, World, ground_world


def grounded(name: str, evidence: Any = None, **options: Any) -> Grounding:
    """A model of the examples with evidence."""
    return ground_world(World.of(sources.model(name), evidence, **options))
