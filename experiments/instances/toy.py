"""Things in boxes that attract each other: small enough for exact answers."""

from __future__ import annotations

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance


def instance() -> Instance:
    """The model; nothing is observed."""
    return Instance(hl.ground(sources.model("toy")), "no evidence")
