"""A robot's map of 37 segments on two sides of a corridor.

The published map spells out the types of nine segments, Wall, Door and Other, that the authors'
model calls W, D and O. The variant `paper` loses them for that, as their code did; `clean` knows
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance, Variant
from hylift.formats.alchemy_db import read_facts

KINDS = np.array(["W", "D", "O"])
NUM_OF_KIND = [19, 14, 4]
NUM_ON_LINE = [20, 17]
NUM_TYPES, NUM_LENGTHS, NUM_DEPTHS = 9, 28, 17
"""What there is in the published map, and what of it is observed."""

# Per kind: walls and doors as the formulas have them; spreads, and others, as in the map, in which
# all walls and all doors are equally deep.
LENGTH, LENGTH_SD = np.array([0.341, 0.1, 0.045]), np.array([0.2, 0.003, 0.003])
DEPTH, DEPTH_SD = np.array([0.001, 0.02, 0.37]), np.array([0.0, 0.0, 0.1])
SHORTEST, LONGEST = 0.02, 0.98
SHALLOWEST, DEEPEST = 0.001, 0.49


def published(data: Path, variant: Variant) -> Instance:
    """With the published map."""
    path = sources.published_file(data / "robot" / "robot-map.db", "facts as Alchemy writes them")
    evidence: dict[str, Any] = dict.fromkeys(["PartOf", "Aligned", "Length", "Depth"], path)
    if variant == "clean":
        evidence["SegType"] = _types(path)
    return Instance(_ground(evidence), "published evidence")


def generated(seed: int, variant: Variant) -> Instance:
    """With a map drawn at random, of the same kind and size.

    Walls are part of the line on their side, and segments on one side are aligned.
    """
    rng = np.random.default_rng(seed)
    name = np.array(sources.model("robot").type_by_name["segment"].constants)
    kind = rng.permutation(np.repeat(np.arange(len(KINDS)), NUM_OF_KIND))
    side = rng.permutation(np.repeat(np.arange(len(NUM_ON_LINE)), NUM_ON_LINE))
    wall = np.flatnonzero(kind == 0)
    one, other = np.nonzero((side[:, None] == side) & ~np.eye(len(name), dtype=bool))
    length = np.clip(rng.normal(LENGTH[kind], LENGTH_SD[kind]), SHORTEST, LONGEST)
    depth = np.clip(rng.normal(DEPTH[kind], DEPTH_SD[kind]), SHALLOWEST, DEEPEST)
    typed = _some(NUM_TYPES, rng, name)
    line = np.char.add("LA", (1 + side).astype(str))
    evidence = {
        "PartOf": pa.table({"segment": name[wall], "line": line[wall]}),
        "Aligned": pa.table({"one": name[one], "other": name[other]}),
        "Length": _measured(name, length, _some(NUM_LENGTHS, rng, name)),
        "Depth": _measured(name, depth, _some(NUM_DEPTHS, rng, name)),
    }
    if variant == "clean":
        evidence["SegType"] = pa.table({"segment": name[typed], "type": KINDS[kind[typed]]})
    return Instance.generated(_ground(evidence), seed)


def _ground(evidence: dict[str, Any]) -> hl.FactorGraph:
    return hl.ground(sources.model("robot"), evidence, closed=["Aligned"])


def _types(path: Path) -> pa.Table:
    """The facts about types, by the first letters that the model uses."""
    facts = read_facts(path)
    words = facts.filter(pc.equal(facts["predicate"], "SegType"))["arguments"]
    kind = pc.utf8_slice_codeunits(pc.list_element(words, 1), 0, 1)
    return pa.table({"segment": pc.list_element(words, 0), "type": kind})


def _measured(
    name: NDArray[np.str_], value: NDArray[np.float64], chosen: NDArray[np.int64]
) -> pa.Table:
    return pa.table({"segment": name[chosen], "value": value[chosen]})


def _some(count: int, rng: np.random.Generator, of: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of that many, chosen at random."""
    return np.sort(rng.choice(len(of), count, replace=False))
