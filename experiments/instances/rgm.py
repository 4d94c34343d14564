"""The relational Gaussian model of a recession: 100 markets, 5 banks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance
from hylift.errors import EvidenceError

NUM_PUBLISHED = 2

NUM_MARKETS, NUM_BANKS = 100, 5


def published(data: Path, number: int) -> Instance:
    """With one of the published files of evidence: 83 and 41 of 606 variables."""
    path = sources.published_file(
        data / "rgm" / f"evidence_{number}.csv", "a table predicate, arg1, arg2, value"
    )
    return Instance(hl.ground(sources.model("rgm"), path), f"published evidence {number}")


def generated(
    seed: int, share: float, *, num_markets: int = NUM_MARKETS, num_banks: int = NUM_BANKS
) -> Instance:
    """With a share of the variables, chosen at random, observed with values of U(-30, 30)."""
    if not 0 <= share <= 1:
        raise EvidenceError(f"the share of observed variables is between 0 and 1, not {share:g}")
    graph = hl.ground(_model(num_markets, num_banks))
    rng = np.random.default_rng(seed)
    seen = rng.choice(graph.num_variables, round(share * graph.num_variables), replace=False)
    evidence = hl.Evidence.of(np.sort(seen), rng.uniform(-30, 30, len(seen)))
    return Instance.generated(graph.observe(evidence), seed)


def _model(num_markets: int, num_banks: int) -> hl.Model:
    model = sources.model("rgm")
    constants = {"market_id": _names("c", num_markets), "bank": _names("b", num_banks)}
    types = tuple(replace(each, constants=constants[each.name]) for each in model.types)
    return replace(model, types=types)


def _names(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(count))
