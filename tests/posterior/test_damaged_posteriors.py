"""Altered files of posteriors are refused in one line, or are the posterior of what they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alterations import altered
from hylift.errors import FormatError
from hylift.inference import BVI, SMC, Exact, Gibbs, MaxWalkSAT, Method, infer
from hylift.posterior import Posterior
from hylift.posterior.trust import VERDICTS
from zoo import ZOO

METHODS: list[Method] = [
    BVI(2),
    Gibbs(chains=2, draws=60, warm_up=50),
    SMC(groups=3, particles=16, sweeps=6),
    MaxWalkSAT(flips=9000),
    Exact(),
]


def saved(method: Method, path: Path) -> bytes:
    graph = next(one for one in ZOO if str(one) == "toy_hybrid_mln").graph()
    tasks = ("map",) if isinstance(method, MaxWalkSAT) else ("marginals", "logz", "map")
    infer(graph, method, tasks=tasks, check=False).save(path)
    return path.read_bytes()


def ask_everything(posterior: Posterior) -> None:
    str(posterior)
    posterior.summary()
    if posterior.all_marginals is not None:
        posterior.marginals()
        posterior.marginal(posterior.variables.names[0]).sample(2, seed=0)
    if posterior.assignment is not None:
        posterior.map().to_dict()
    if posterior.draws is not None:
        assert posterior.draws.mean.shape == posterior.draws.ids.shape
    assert posterior.trust.verdict in VERDICTS


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(7, marks=pytest.mark.slow)], ids=["once", "500 times"]
)
def test_an_altered_posterior_is_refused_in_one_line_or_answers(
    rounds: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(rounds)
    files = [saved(method, tmp_path / "answer") for method in METHODS]
    path = tmp_path / "altered"
    refused = asked = 0
    for content, other in rounds * list(zip(files, files[1:] + files[:1], strict=True)):
        for _, data in altered(content, other, rng):
            path.write_bytes(data)
            try:
                found = Posterior.load(path)
            except FormatError as error:
                assert str(error).startswith(str(path))  # noqa: PT017
                assert len(str(error).splitlines()) == 1  # noqa: PT017
                refused += 1
            else:
                ask_everything(found)
                asked += 1

    assert refused > asked
