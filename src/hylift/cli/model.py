"""Models and evidence as the command line names them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hylift.cli.render import progress_bar
from hylift.cli.stderr import print_notes
from hylift.errors import EvidenceError, UnsupportedError, did_you_mean
from hylift.formats import uai
from hylift.formats.table_file import TableFile
from hylift.graph import FactorGraph, Variables, without_repeats

if TYPE_CHECKING:
    from hylift.grounding import Grounding

NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)
"""`In=in.parquet`, `In=all.csv[paper,topic]`: a table for one predicate or type."""

MODELS = (".mln", ".uai")


@dataclass(frozen=True, slots=True)
class Given:
    """The options of a command about evidence."""

    evidence: Sequence[str] = ()
    closed: Sequence[str] = ()
    only_rows: Sequence[str] = ()
    unmatched: str = "error"

    @classmethod
    def of(
        cls,
        evidence: list[str] | None,
        closed: list[str] | None,
        only_rows: list[str] | None,
        unmatched: str,
    ) -> Given:
        return cls(evidence or (), _split(closed), _split(only_rows), unmatched)

    @property
    def files(self) -> list[tuple[str | None, TableFile]]:
        """The files, each with its predicate or type if one is named."""
        found: list[tuple[str | None, TableFile]] = []
        for text in self.evidence:
            named = None if os.path.exists(text) else NAMED.fullmatch(text)
            name, file = (named[1], named[2]) if named else (None, text)
            found.append((name, TableFile.parse(file)))
        return found

    def read(self, model: Path) -> list[Path]:
        """All files that a command with this evidence reads."""
        return [model, *(file.path for _, file in self.files)]

    def sources(self, known: Collection[str]) -> list[Any]:
        """Files, and mappings from one of the known predicates and types to a file."""
        for name, file in self.files:
            if name is not None and name not in known:
                raise EvidenceError(
                    f"{name}={file}: '{name}' is not a predicate or type of the model."
                    f"{did_you_mean(name, known)}"
                )
        return [file if name is None else {name: file} for name, file in self.files]


def _split(lists: Sequence[str] | None) -> tuple[str, ...]:
    """The names in lists with commas."""
    return tuple(name.strip() for text in lists or () for name in text.split(","))


def as_text(given: str | Path) -> str:
    """An argument as text that can be printed; invalid bytes are replaced."""
    return os.fsencode(given).decode(errors="replace")


def read_graph(model: Path, given: Given, *, quiet: bool) -> tuple[FactorGraph, tuple[str, ...]]:
    """The factor graph of a model file with its evidence, and notes on it, which are printed."""
    if _ending(model) == ".uai":
        return _read_uai(model, given), ()
    grounding = ground_file(model, given, quiet=quiet)
    return grounding.graph, grounding.notes


def ground_file(model: Path, given: Given, *, quiet: bool) -> Grounding:
    """The grounding of an .mln file; its notes are printed."""
    check_is_rules(model, "grounded")
    from hylift.grounding import World, ground_world
    from hylift.language import read_model

    with progress_bar(quiet) as progress:
        parsed = read_model(model)
        world = World.of(
            parsed,
            given.sources([*parsed.predicate_by_name, *parsed.type_by_name, *parsed.table_names]),
            closed=given.closed,
            only_rows=given.only_rows,
            unmatched=cast(Literal["error", "ignore"], given.unmatched),
        )
        grounding = ground_world(world, progress)
    if not quiet:
        print_notes(grounding.notes)
    return grounding


def check_is_rules(model: Path, what: str) -> None:
    """Raise unless the file name is that of rules; `what` is done with such files only."""
    if _ending(model) != ".mln":
        raise UnsupportedError(f"{model}: only models of rules (.mln) are {what}")


def queried(
    variables: Variables, query: Sequence[str], observed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Ids of the variables that names, predicates, patterns and .query files ask for.

    A predicate stands for its atoms that are not observed, or for all where all are. Ids are in the
    order in which they are asked for, each of them once.
    """
    asked = [
        uai.read_query(pattern, len(variables))
        if pattern.lower().endswith(".query")
        else variables.matching(as_text(pattern), observed)
        for pattern in query
    ]
    return without_repeats(np.concatenate(asked))


def _ending(model: Path) -> str:
    ending = model.suffix.lower()
    if ending not in MODELS:
        raise UnsupportedError(
            f"{model}: models are read from files that end in {' or '.join(MODELS)}"
        )
    return ending


def _read_uai(model: Path, given: Given) -> FactorGraph:
    if given.closed or given.only_rows or given.unmatched != "error":
        options = "--closed, --only-rows and --unmatched"
        raise UnsupportedError(f"{model}: {options} are for models of rules (.mln)")
    if len(given.evidence) > 1:
        raise UnsupportedError(f"{model}: a .uai model takes one evidence file")
    graph = uai.read_uai(model)
    for path in given.evidence:
        graph = graph.observe(uai.read_evidence(path, graph.variables.num_states))
    return graph
