"""The popularity of 300 papers and 10 topics.

The code behind the paper's figures differs from its text: papers follow their topics with the
weight 1.0 instead of 0.5, popularities lie between -15 and 15 instead of 0 and 10, evidence tells
of 0 to 9 topics of a paper instead of all 10, and that on sessions names topics that do not exist.
The variant `paper` has all of that, `clean` none of it; of the published files, both use the rows
about topics that exist.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance, Variant

NUM_PUBLISHED = 2

NUM_PAPERS, NUM_TOPICS = 300, 10
SHARE = 0.7
"""Of the papers and of the topics: those that evidence is about."""


def published(data: Path, number: int, variant: Variant) -> Instance:
    """With one of the published files of evidence."""
    path = sources.published_file(
        data / "papers" / f"evidence_{number}.csv", "a table predicate, arg1, arg2, value"
    )
    graph = hl.ground(_model(variant), path, unmatched="ignore")
    num_rows = pyarrow.csv.read_csv(path).num_rows
    return Instance(graph, f"published evidence {number}", _left_out(graph, num_rows))


def _left_out(graph: hl.FactorGraph, num_rows: int) -> str:
    """A sentence on rows that became no evidence; empty where all did."""
    count = num_rows - len(graph.evidence.variable)
    if count == 0:
        return ""
    return (
        f"{count:,} of {num_rows:,} rows of evidence name topics that do not exist, and are left "
        "out."
    )


def generated(seed: int, variant: Variant) -> Instance:
    """With evidence drawn as the paper describes, or as its files show."""
    rng = np.random.default_rng(seed)
    evidence = {
        "PaperPopularity": _popularity("p", NUM_PAPERS, rng),
        "TopicPopularity": _popularity("t", NUM_TOPICS, rng),
        "PaperIn": _topics_of_papers(variant, rng),
    }
    if variant == "clean":
        first, second = np.nonzero(~np.eye(NUM_TOPICS, dtype=bool))
        evidence["SameSession"] = _links("t", first, "t", second, rng)
    return Instance.generated(hl.ground(_model(variant), evidence), seed)


def _model(variant: Variant) -> hl.Model:
    model = sources.model("papers")
    if variant == "paper":
        return model
    return sources.with_reals_on(
        sources.with_constants(model, {"belonging": 0.5}), hl.interval(0, 10)
    )


def _popularity(letter: str, size: int, rng: np.random.Generator) -> pa.Table:
    chosen = _chosen(size, rng)
    return pa.table({"of": _names(letter, chosen), "value": rng.uniform(0, 10, len(chosen))})


def _topics_of_papers(variant: Variant, rng: np.random.Generator) -> pa.Table:
    chosen = _chosen(NUM_PAPERS, rng)
    size = (len(chosen), NUM_TOPICS)
    topic = rng.permuted(np.broadcast_to(np.arange(NUM_TOPICS), size), axis=1)
    most = NUM_TOPICS if variant == "clean" else rng.integers(NUM_TOPICS, size=(len(chosen), 1))
    kept = np.broadcast_to(np.arange(NUM_TOPICS) < most, size)
    paper = np.broadcast_to(chosen[:, None], size)
    return _links("p", paper[kept], "t", topic[kept], rng)


def _links(
    letter: str,
    one: NDArray[np.int64],
    other_letter: str,
    other: NDArray[np.int64],
    rng: np.random.Generator,
) -> pa.Table:
    """Pairs of constants, true or false with equal probability."""
    return pa.table(
        {
            "one": _names(letter, one),
            "other": _names(other_letter, other),
            "value": rng.random(len(one)) < 0.5,
        }
    )


def _chosen(size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.choice(size, round(SHARE * size), replace=False))


def _names(letter: str, numbers: NDArray[np.int64]) -> NDArray[np.str_]:
    return np.char.add(letter, numbers.astype(str))
