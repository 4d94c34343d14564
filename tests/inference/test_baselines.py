"""Every baseline on every model of the zoo that it claims, beside exact inference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from hylift.errors import UnsupportedError
from hylift.inference import BP, EPBP, Exact, GaBP, Gibbs, MaxWalkSAT, Method, infer
from hylift.posterior import Posterior
from zoo import ZOO, ZooModel

EVERYTHING = ("marginals", "logz", "map")

Passing = BP | GaBP | EPBP


def is_discrete(model: ZooModel) -> bool:
    return "discrete" in model.tags


def is_gaussian(model: ZooModel) -> bool:
    return "gaussian" in model.tags and "function" not in model.tags


def is_closed(model: ZooModel) -> bool:
    return is_discrete(model) or "function" not in model.tags


CLAIMS: list[tuple[Method, Callable[[ZooModel], bool]]] = [
    (BP(), is_discrete),
    (BP(schedule="residual"), is_discrete),
    (GaBP(), is_gaussian),
    (EPBP(), lambda model: True),
    (Gibbs(), is_closed),
    (MaxWalkSAT(flips=100_000), lambda model: True),
]
LOOPS = {
    "toy_hybrid_mln": 0.003,
    "mixed_cardinality_loop": 0.07,
    "relational_gaussian_model": 1e-4,
    "switching_regime": 0.5,
    "function_of_discrete_slots": 0.25,
    "counted_factors": 1.0,
    "copied_factors": 1.0,
}
"""Errors of Bethe's approximation, where they are larger than 1e-5: about one and a half times what
is measured, of means and of Σ|p - q|."""
BOUNDS_MATTER = ("soft_evidence_outside_the_interval", "truncated_gaussian")
"""Models whose bounds GaBP ignores, and says so."""
FUNCTIONS = ("function_of_bounded_reals", "function_of_both_kinds")


def tried(claimed: bool) -> list[object]:
    return [
        pytest.param(
            method,
            model,
            id=f"{method.name}-{model}-{number}",
            # Each of its flips integrates a function; test_walk_answers.py has this model, too.
            marks=[pytest.mark.slow]
            if isinstance(method, MaxWalkSAT) and str(model) == "function_of_bounded_reals"
            else [],
        )
        for number, (method, claims) in enumerate(CLAIMS)
        for model in ZOO
        if claims(model) == claimed
    ]


@cache
def exact_answer(model: ZooModel) -> Posterior:
    return infer(model.graph(), Exact(), tasks=EVERYTHING)


def tolerance(method: Method, model: ZooModel) -> float:
    """Largest error of a mean, or sum of errors of probabilities."""
    name = str(model)
    if isinstance(method, GaBP) and name in BOUNDS_MATTER:
        return 1.0
    if isinstance(method, EPBP) and "bounded" in model.tags:
        # Sums over strata are not as exact where a bound cuts the density.
        return max(LOOPS.get(name, 0.0), 3e-3)
    return LOOPS.get(name, 1e-5)


@pytest.mark.parametrize(("method", "model"), tried(claimed=True))
def test_answers_are_near_the_exact_ones(method, model):
    exact = exact_answer(model)

    found = infer(model.graph(), method, tasks=EVERYTHING)

    if str(model) not in FUNCTIONS or not isinstance(method, MaxWalkSAT):
        assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-6)
    assert found.map().energy >= exact.map().energy - 1e-6
    if isinstance(method, MaxWalkSAT):
        assert found.all_marginals is None
    elif isinstance(method, Gibbs):
        check_stated_errors(exact, found)
    else:
        assert exact.compare(found).max_l1 <= tolerance(method, model)
        assert found.solution.result == "converged"


def check_stated_errors(exact: Posterior, found: Posterior) -> None:
    """Means, with states by position, are as near as the sampler says, by four of its errors."""
    draws = found.draws
    assert draws is not None
    marginals = exact.marginals_of(draws.ids).to_pylist()
    expected = [
        row["mean"] if row["mean"] is not None else np.arange(len(row["probs"])) @ row["probs"]
        for row in marginals
    ]

    error = np.abs(draws.mean - expected)

    assert (error <= 4 * draws.mcse + 1e-9).all()
    assert found.log_partition is None


@pytest.mark.parametrize(
    ("method", "model"),
    [
        (method, model)
        for method, claims in CLAIMS
        if isinstance(method, BP | GaBP)
        for model in ZOO
        if claims(model) and "tree" in model.tags and str(model) not in BOUNDS_MATTER
    ],
    ids=str,
)
def test_messages_are_exact_on_trees(method, model):
    exact = exact_answer(model)

    found = infer(model.graph(), method, tasks=EVERYTHING)

    comparison = exact.compare(found)
    assert comparison.max_l1 <= 1e-9
    assert comparison.max_kl <= 1e-9
    assert found.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-9)
    assert found.log_partition.kind == "exact"
    assert found.map().kind == "exact"


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (kind, model)
        for kind, claims in ((BP, is_discrete), (GaBP, is_gaussian), (EPBP, lambda model: True))
        for model in ZOO
        if claims(model)
    ],
    ids=str,
)
def test_lifted_equals_ground_after_each_step(kind, model, num_steps):
    graph = model.graph()
    method = EPBP(20, max_steps=num_steps) if kind is EPBP else kind(max_steps=num_steps)

    lifted, ground = (infer(graph, method, lift=how) for how in ("exact", "none"))

    assert ground.compare(lifted).max_l1 <= 1e-10
    assert lifted.log_partition.value == pytest.approx(ground.log_partition.value, abs=1e-10)


@pytest.mark.parametrize(("method", "model"), tried(claimed=False))
def test_what_is_not_claimed_is_refused(method, model):
    with pytest.raises(UnsupportedError, match=method.name):
        infer(model.graph(), method)
