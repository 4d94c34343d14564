"""A start at a narrow peak of functions, where particles that began flat have not been."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.search import polish
from hylift.inference.search.landmarks import Landmarks
from hylift.posterior import GaussianMixture, Marginals, Posterior

UNSEEN = 0.1
"""A peak is new to particles if it is so many of their deviations wide at most."""


def start_at_peak(
    graph: FactorGraph, landmarks: Landmarks, flat: Posterior, seconds: float | None
) -> Posterior | None:
    """The posterior of a flat run, with reals at the best assignment that begins at the peaks of
    functions; None where there is no peak, or the run may have seen it.

    graph: the one that was run on, of some variables of the posterior.
    """
    at = graph.variables.places_in(flat.variables)
    some = np.flatnonzero((at >= 0) & ~np.isnan(landmarks.value).all(axis=0))
    if not len(some):
        return None
    known, own = flat.known_marginals(), at[some]
    std = np.empty(len(own))
    for place, found, rows in known.by_batch(own):
        reals: Any = found
        std[place] = np.asarray(reals.std)[rows]
    if not (landmarks.width[:, some] < UNSEEN * std).any():
        return None
    plain = np.clip(np.zeros(len(at)), graph.variables.lower, graph.variables.upper)
    value = polish(graph, landmarks.starts(plain, 1), seconds=seconds).values[some]
    nearest = np.nanargmin(np.abs(landmarks.value[:, some] - value), axis=0)
    width = landmarks.width[nearest, some]
    if not (width < UNSEEN * std).any():
        return None
    peak = GaussianMixture(np.ones((len(own), 1)), value[:, None], width[:, None] ** 2)
    batch, row = known.batch.copy(), known.row.copy()
    batch[own], row[own] = len(known.batches), np.arange(len(own))
    return replace(flat, all_marginals=Marginals((*known.batches, peak), batch, row), mixture=None)
