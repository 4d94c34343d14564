"""Sequential Monte Carlo: log Z within its errors, and time beside Gibbs for equal error."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import hylift as hl
from benchmarks.families import practice
from benchmarks.families.score import Moments
from benchmarks.setting import Setting
from hylift.inference.method import Method

NUM_MODELS, NUM_BESIDE = 42, 10
"""Of each family, and those on which Gibbs is run, too."""

SECONDS = 30.0
"""For exact inference: other models are left out."""

LEAST_ERROR = 1e-4
"""Smaller ones count as this: enumerated parts have none."""


@dataclass(frozen=True, slots=True)
class Found:
    """One answer: its time and the root mean square of the errors of its marginals."""

    seconds: float  # of processors
    error: float
    far: float  # log Z, in standard errors


def run(setting: Setting) -> None:
    """log Z of SMC beside exact inference on 500 models, and its time beside Gibbs"""
    print("family        models  log Z within 3 errors  rms  seconds  ×Gibbs  ×Gibbs, equal error")
    within = total = 0
    for family in practice.PRACTICE:
        found = [_found(family, seed) for seed in range(NUM_MODELS)]
        far = np.array([one[0].far for one in found if one])
        if not len(far):
            continue
        within, total = within + int((far <= 3).sum()), total + len(far)
        pairs = [one for one in found if len(one) == 2]
        slower = np.array([ours.seconds / theirs.seconds for ours, theirs in pairs])
        worse = np.array([ours.error / theirs.error for ours, theirs in pairs])
        seconds = np.median([one[0].seconds for one in found if one])
        print(
            f"{family:12}  {len(far):6}  {int((far <= 3).sum()):21}  "
            f"{np.sqrt(np.mean(far**2)):3.1f}  {seconds:7.2f}  {np.median(slower):6.2g}"
            f"  {np.median(slower * worse**2):19.2g}",
            flush=True,
        )
    print(f"log Z was within 3 standard errors in {within} of {total} models")


def _found(family: str, seed: int) -> list[Found]:
    """Answers of SMC and, on some models, of Gibbs; none where exact inference takes too long."""
    graph = practice.written(family, seed).graph()
    try:
        exact = hl.infer(graph, hl.Exact(), seconds=SECONDS)
    except (hl.HyliftError, MemoryError):
        return []
    methods: list[Method] = [hl.SMC(), hl.Gibbs()] if seed < NUM_BESIDE else [hl.SMC()]
    return [_beside(exact, graph, method, seed) for method in methods]


def _beside(exact: hl.Posterior, graph: hl.FactorGraph, method: Method, seed: int) -> Found:
    began = time.process_time()
    answer = hl.infer(graph, method, seed=seed, check=False)
    seconds = time.process_time() - began
    ours, truth = Moments.of(answer), Moments.of(exact)
    errors = np.concatenate([ours.probs - truth.probs, (ours.mean - truth.mean) / truth.std])
    far = np.nan
    if answer.log_partition is not None and exact.log_partition is not None:
        off = abs(answer.log_partition.value - exact.log_partition.value)
        far = off / (answer.log_partition.error + exact.log_partition.error)
    return Found(seconds, max(float(np.sqrt(np.mean(errors**2))), LEAST_ERROR), far)
