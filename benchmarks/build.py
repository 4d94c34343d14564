"""Building a large graph, and absorbing evidence into it."""

import numpy as np

import hylift as hl
from benchmarks.measure import peak_gigabytes, timed
from benchmarks.setting import Setting

NUM_FACTORS = 10_000_000
NUM_VARIABLES = 5_000_000


def run(setting: Setting) -> None:
    """ten million pairwise factors over five million Booleans, a tenth of them observed"""
    rng = np.random.default_rng(0)
    first = rng.integers(0, NUM_VARIABLES, NUM_FACTORS, dtype=np.int32)
    shift = rng.integers(1, NUM_VARIABLES, NUM_FACTORS, dtype=np.int32)
    scope = np.stack([first, (first + shift) % NUM_VARIABLES], axis=1)
    observed = rng.choice(NUM_VARIABLES, NUM_VARIABLES // 10, replace=False)
    states = rng.integers(0, 2, len(observed))
    gather, seconds_numpy = timed(lambda: scope[np.flatnonzero(scope[:, 0] >= 0)])
    del gather

    def build() -> hl.FactorGraph:
        agree = hl.Table.shared([[1.0, 0.0], [0.0, 1.0]])
        variables = hl.Variables.uniform(hl.boolean, NUM_VARIABLES)
        return hl.FactorGraph(variables, (hl.FactorGroup(agree, scope),))

    graph, seconds_build = timed(build)
    print(f"build      {seconds_build:6.2f} s   {peak_gigabytes():5.2f} GB at most")
    graph = graph.observe(hl.Evidence.of(observed, states))
    conditioned, seconds_condition = timed(graph.condition)
    print(f"condition  {seconds_condition:6.2f} s   {peak_gigabytes():5.2f} GB at most")
    print(f"           {seconds_condition / seconds_numpy:6.1f} times a NumPy copy of all scopes")
    print(f"{graph} -> {conditioned}")
