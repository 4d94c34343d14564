"""An earlier posterior as a start for a rewritten graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.inference.prepared import Prepared
from hylift.numerics.segments import offsets
from hylift.posterior import Mixture, Posterior
from hylift.posterior.mapped import MappedMixture
from hylift.rewrite.rewritten import StateMap
from hylift.words import option, worded

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST = 1e-12
"""Probability that a state of a start has at least, so that it can come back."""


def started(start: Posterior, prepared: Prepared) -> Posterior:
    """A start about the variables of a rewritten graph, from one about variables of the user's.

    A cluster starts as it was; one that was none with its members independent, as far as they are
    known.
    """
    whole = prepared.whole
    if whole is None or start.mixture is None:
        return start
    found = start.mixture if isinstance(start.mixture, Mixture) else start.mixture.product()
    source = whole.source.variables.places_in(start.variables, found.hidden)[whole.hidden]
    back, after = _composed(prepared), prepared.source.variables
    same = np.flatnonzero((back.variable >= 0) & ~back.is_mapped & (source >= 0))
    members = np.flatnonzero(back.is_mapped & (source >= 0))
    clusters = np.unique(back.variable[members]).astype(np.int64)
    size = after.num_states[clusters].astype(np.int64)
    first = offsets(size)
    logs = np.zeros((first[-1], found.num_components))
    of = np.searchsorted(clusters, back.variable[members])
    entries = back.entries(members, size[of])
    begin = found.layout.first[found.variable_to_class[source[members]]]
    probs = found.entries[begin[entries.place] + entries.here]
    np.add.at(logs, first[of[entries.place]] + entries.there, np.log(np.maximum(probs, LEAST)))
    classes = np.full(len(after), -1, dtype=np.int32)
    classes[back.variable[same]] = found.variable_to_class[source[same]]
    classes[clusters] = len(found.layout) + np.arange(len(clusters))
    if isinstance(start.mixture, MappedMixture):
        as_before = _as_before(start.mixture, back, source, clusters, size)
        classes[clusters] = np.where(as_before >= 0, as_before, classes[clusters])
    hidden = np.flatnonzero(classes >= 0)
    part = np.zeros(len(after), dtype=np.int32)
    part[back.variable[same]] = found.parts()[source[same]]
    part[back.variable[members]] = found.parts()[source[members]]
    mixture = Mixture(
        found.weights,
        found.layout.with_categoricals(size),
        np.concatenate([found.entries, _normalised(logs, first)]),
        classes[hidden],
        hidden,
        None if found.part is None else part[hidden],
    )
    return replace(
        start,
        variables=after,
        observed=classes < 0,
        log_partition=None,
        all_marginals=None,
        assignment=None,
        mixture=mixture,
        target=None,
        draws=None,
    )


def _as_before(
    start: MappedMixture, back: StateMap, source: Ids, clusters: Ids, size: Ids
) -> NDArray[np.int32]:
    """(cluster,): its class in the start, where it had the same members and joint states; or -1."""
    members = np.flatnonzero(back.is_mapped & np.isin(back.variable, clusters))
    of = np.searchsorted(clusters, back.variable[members])
    at = np.maximum(source[members], 0)
    before = start.map.take(at)
    inside = np.where(before.is_mapped & (source[members] >= 0), before.variable, -1)
    first = np.zeros(len(clusters), dtype=np.int64)
    first[of[::-1]] = inside[::-1]
    classes = np.append(start.inner.variable_to_class, -1)
    has = np.append(start.layout.size, 0)[classes[inside]]
    differs = (inside != first[of]) | (inside < 0) | (has != size[of])
    fits = np.flatnonzero(~differs)
    entries = back.entries(members[fits], size[of[fits]])
    there = before.take(fits).entries(np.arange(len(fits)), size[of[fits]])
    differs[fits[entries.place[entries.here != there.here]]] = True
    wrong = np.bincount(of[differs], minlength=len(clusters)) > 0
    return np.where(wrong, -1, classes[first]).astype(np.int32)


def _composed(prepared: Prepared) -> StateMap:
    """The ground variables as functions of those of the last graph."""
    found: StateMap | None = None
    for one in prepared.rewrites:
        if not isinstance(one.back, StateMap):
            raise UnsupportedError(
                f"a run with a start cannot rewrite the graph by {one.name}",
                worded("leave '", one.name, "' out of ", option("rewrite")),
            )
        found = one.back if found is None else found.then(one.back, one.graph.variables.num_states)
    assert found is not None
    return found


def _normalised(logs: FloatArray, first: Ids) -> FloatArray:
    """Probabilities of the states of each variable, from (entry, component) logarithms."""
    if not len(logs):
        return logs
    size = np.diff(first)
    shares = np.exp(logs - np.repeat(np.maximum.reduceat(logs, first[:-1]), size, axis=0))
    return np.asarray(shares / np.repeat(np.add.reduceat(shares, first[:-1]), size, axis=0))
