"""What Gibbs refuses, and in which words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hylift.errors import (
    ImpossibleEvidenceError,
    IntractableError,
    ModelError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import infer
from hylift.inference.sampling import Gibbs, structure
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Table
from zoo import friends_and_smokers, function_of_both_kinds, function_of_discrete_slots

SHORT = Gibbs(draws=20, warm_up=20)


@pytest.mark.parametrize(
    ("setting", "least"), [("chains", 1), ("draws", 4), ("warm_up", 1), ("thin", 1), ("longer", 1)]
)
@pytest.mark.parametrize("value", [0, -3, 2.5, "many", None])
def test_settings_are_whole_numbers(setting: str, least: int, value: object) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        Gibbs(**{setting: value})

    assert str(refusal.value) == (
        f"{setting} must be an integer of at least {least}, not {value!r}"
    )


def test_functions_of_few_states_are_tables() -> None:
    found = infer(function_of_discrete_slots(), SHORT)

    assert found.marginal("a").probs.shape == (3,)


def test_functions_whose_reals_are_observed_are_taken() -> None:
    graph = function_of_both_kinds().observe({"x": 1.5})

    assert infer(graph, SHORT).marginal("d").probs.shape == (3,)


def test_lifted_graphs_are_refused() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        infer(lift(friends_and_smokers()).graph, Gibbs())

    assert str(refusal.value) == (
        "Gibbs needs a ground graph: this one is lifted, and the joint distribution of the members "
        "of a class is not in it"
    )


@pytest.mark.parametrize(
    ("domains", "factors"),
    [
        ({"x": real}, []),
        ({"x": real}, [(ConditionalQuadratic.square(0.5), ["x"])]),
        (
            {"x": real, "y": real},
            [
                (ConditionalQuadratic.squared_distance(1.0, [1, -1]), ["x", "y"]),
            ],
        ),
        ({"x": interval(0, np.inf)}, [(ConditionalQuadratic.shared([[0.0]], [1.0]), ["x"])]),
        (
            {"on": boolean, "x": real},
            [(ConditionalQuadratic.square(-1.0).times([1, 0]), ["on", "x"])],
        ),
        (
            {"x": real, "y": real, "u": interval(0, 1)},
            [
                (ConditionalQuadratic.squared_distance(1.0, [1, -1]), ["x", "y"]),
                (ConditionalQuadratic.product(0.1), ["y", "u"]),
            ],
        ),
    ],
    ids=["isolated", "convex", "difference", "one side", "in a state", "beside a bounded one"],
)
def test_reals_that_nothing_holds_are_named(domains: dict, factors: list) -> None:
    with pytest.raises(ModelError) as refusal:
        infer(FactorGraph.build(domains, factors), SHORT)

    held_by_nothing = [name for name in ("x", "y") if f"improper in '{name}'" in str(refusal.value)]
    assert len(held_by_nothing) == 1
    (name,) = held_by_nothing
    assert str(refusal.value) == (
        f"the density is improper in '{name}' given some values of the other variables: give it "
        f"bounds or add a rule such as '-0.01 {name}^2'"
    )


def test_constraints_that_nothing_satisfies_are_refused() -> None:
    differ = Table.weighted(np.inf, [[0, 1], [1, 0]])
    graph = FactorGraph.build(
        dict.fromkeys("abc", boolean), [(differ, [["a", "b"], ["b", "c"], ["c", "a"]])]
    )

    with pytest.raises(ImpossibleEvidenceError) as refusal:
        infer(graph, Gibbs(), rewrite=False)

    assert str(refusal.value) == (
        "Gibbs begins where no hard constraint is broken, and local search found no such "
        "assignment: the evidence may contradict the hard constraints, or they are too hard "
        "for it. Exact() decides where it is feasible."
    )


@pytest.mark.parametrize(("low", "high"), [(1e8, 1e8 + 1e-6), (1.0, 1 + 1e-14)])
def test_bounds_with_few_numbers_between_them_are_refused(low: float, high: float) -> None:
    graph = FactorGraph.build(
        {"x": interval(low, high)}, [(ConditionalQuadratic.square(-1.0), ["x"])]
    )

    with pytest.raises(UnsupportedError) as refusal:
        infer(graph, SHORT)

    assert str(refusal.value) == (
        "'x' varies by less than floating-point numbers of its size can resolve: give it "
        "another origin or unit"
    )


def test_factors_of_all_chains_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "MOST_NUMBERS", 50)
    names = [f"x{i}" for i in range(6)]
    graph = FactorGraph.build(
        dict.fromkeys(names, real),
        [
            (ConditionalQuadratic.square(-1.0), [[name] for name in names]),
            (ConditionalQuadratic.squared_distance(1.0, [1, -1]), list(pairwise(names))),
        ],
    )

    infer(graph, Gibbs(chains=2, draws=20, warm_up=20))
    with pytest.raises(IntractableError) as refusal:
        infer(graph, Gibbs(chains=4, draws=20, warm_up=20))

    assert str(refusal.value) == (
        "block draws of these 6 reals need 60 numbers for 4 chains, more than 50: fewer chains, or "
        "evidence on some of the reals, would make it less"
    )
