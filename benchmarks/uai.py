"""Exact inference on UAI competition instances."""

import os
from pathlib import Path

import numpy as np

import hylift as hl
from benchmarks.measure import timed
from hylift.formats.uai import read_marginals

DATA = Path(os.environ.get("HYLIFT_DATA", "../shared/data")) / "uai"


def run() -> None:
    """each instance in the folder uai of $HYLIFT_DATA (../shared/data), against its .MAR file"""
    models = sorted(DATA.glob("*.uai"))
    if not models:
        print(f"no instances in {DATA}: set HYLIFT_DATA")
    for path in models:
        graph = hl.read_uai(path)
        graph = graph.observe(hl.read_evidence(f"{path}.evid", graph.variables.num_states))
        posterior, seconds = timed(lambda graph=graph: hl.infer(graph))
        table = posterior.marginals(observed=True)["probs"].to_pylist()
        truth = read_marginals(f"{path}.MAR")
        error = max(np.abs(np.array(p) - q).max() for p, q in zip(table, truth, strict=True))
        log10 = float(posterior.log_partition) / np.log(10)
        print(f"{path.name:24} {seconds:6.2f} s  log10 Z {log10:12.6f}  error {error:.1e}")
