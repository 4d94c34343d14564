"""The methods that take part in a race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hylift.errors import UnsupportedError, check_word
from hylift.graph import FactorGraph
from hylift.inference import Exact, Lift, Method
from hylift.inference.capabilities import COARSE, RACE_KEYS, info_of
from hylift.inference.method import method_by_key

ENTRIES_PER_SECOND = 2**22
MOST_ENTRIES = 2**27
"""Numbers in the largest table of exact inference: about what its share of the time allows, and
never more than a gigabyte."""

Methods = Method | str | Iterable[Method | str]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method in a race, with its label and lifting."""

    label: str
    method: Method
    lift: Lift


def entrants(
    graph: FactorGraph, methods: Methods | None, lift: Lift, seconds: float
) -> tuple[Entrant, ...]:
    """The methods with labels that differ; by default all that there are."""
    if methods is None:
        with_coarse = lift == "exact" and _has_real_evidence(graph)
        chosen: Sequence[Method | str] = [
            key for key in RACE_KEYS if with_coarse or not key.endswith(COARSE)
        ]
    else:
        if isinstance(methods, str) or not isinstance(methods, Iterable):
            methods = [methods]
        chosen = list(methods)
    if not chosen:
        raise UnsupportedError("a race needs at least one method")
    found = [_entrant(one, lift, seconds) for one in chosen]
    return _told_apart(found)


def checked_name(name: str) -> str:
    """The name of a method in small letters; raises where there is no such method."""
    word = name.strip().lower()
    check_word("method", word, RACE_KEYS)
    return word


def _entrant(method: Method | str, lift: Lift, seconds: float) -> Entrant:
    if isinstance(method, str):
        key = checked_name(method)
        lift = "coarse-to-fine" if key.endswith(COARSE) else lift
        method = _in_time(method_by_key(key.removesuffix(COARSE)), seconds)
    if isinstance(method, type) or not hasattr(method, "solve"):
        raise UnsupportedError(
            f"a method is a value such as BVI(), or a name such as 'bvi', not {method!r}"
        )
    if not isinstance(getattr(method, "name", None), str):
        raise UnsupportedError(
            f"a method of a race has a name, by which it is shown: give {method!r} the attribute "
            "'name', which is a text"
        )
    most = info_of(method).lift
    if most == "none" or (most == "exact" and lift == "coarse-to-fine"):
        lift = most
    label = method.name + (" coarse-to-fine" if lift == "coarse-to-fine" else "")
    return Entrant(label, method, lift)


def _in_time(method: Method, seconds: float) -> Method:
    """Exact inference that refuses what would take much longer; the others watch the clock."""
    if not isinstance(method, Exact):
        return method
    entries = int(min(max(ENTRIES_PER_SECOND * seconds, 1), MOST_ENTRIES))
    return replace(method, map_seconds=seconds, max_entries=entries)


def _told_apart(found: Sequence[Entrant]) -> tuple[Entrant, ...]:
    """Labels with a number where a label stands twice."""
    count = Counter(entrant.label for entrant in found)
    seen: Counter[str] = Counter()
    labelled = []
    for entrant in found:
        seen[entrant.label] += 1
        if count[entrant.label] > 1:
            entrant = replace(entrant, label=f"{entrant.label} #{seen[entrant.label]}")
        labelled.append(entrant)
    return tuple(labelled)


def _has_real_evidence(graph: FactorGraph) -> bool:
    """Return whether coarse-to-fine lifting has real values to merge."""
    evidence = graph.evidence
    return bool(np.any(graph.variables.num_states[evidence.variable] == 0))
