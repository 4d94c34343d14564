"""UAI competition instances, by the method that is chosen for them."""

import numpy as np

import hylift as hl
from benchmarks.measure import timed
from benchmarks.setting import Setting
from hylift.formats.uai import read_marginals


def run(setting: Setting) -> None:
    """each instance in the folder uai of the data, against its .MAR file"""
    folder = setting.published("uai")
    for path in sorted(folder.glob("*.uai")) if folder else ():
        graph = hl.read_uai(path)
        graph = graph.observe(hl.read_evidence(f"{path}.evid", graph.variables.num_states))
        posterior, seconds = timed(lambda graph=graph: hl.infer(graph))
        table = posterior.marginals(observed=True)["probs"].to_pylist()
        truth = read_marginals(f"{path}.MAR")
        error = max(np.abs(np.array(p) - q).max() for p, q in zip(table, truth, strict=True))
        log10 = float(posterior.log_partition) / np.log(10)
        method = posterior.solution.method
        print(
            f"{path.name:24} {seconds:6.2f} s  {method:6}  log10 Z {log10:12.6f}  error {error:.1e}"
        )
