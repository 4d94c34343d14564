"""The relational Gaussian model of a recession: 100 markets, 5 banks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance
from hylift.errors import EvidenceError

NUM_PUBLISHED = 2


def published(data: Path, number: int) -> Instance:
    """With one of the published files of evidence: 83 and 41 of 606 variables."""
    path = sources.published_file(
        data / "rgm" / f"evidence_{number}.csv", "a table predicate, arg1, arg2, value"
    )
    return Instance(hl.ground(sources.model("rgm"), path), f"published evidence {number}")


def generated(seed: int, share: float) -> Instance:
    """With a share of the variables, chosen at random, observed with values of U(-30, 30)."""
    if not 0 <= share <= 1:
        raise EvidenceError(f"the share of observed variables is between 0 and 1, not {share:g}")
    graph = hl.ground(sources.model("rgm"))
    rng = np.random.default_rng(seed)
    seen = rng.choice(graph.num_variables, round(share * graph.num_variables), replace=False)
    evidence = hl.Evidence.of(np.sort(seen), rng.uniform(-30, 30, len(seen)))
    return Instance.generated(graph.observe(evidence), seed)
