"""What variational methods refuse, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hylift.errors import (
    EvidenceError,
    ImpossibleEvidenceError,
    ModelError,
    UnknownNameError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import BVI, NPVI, Adam, Exact, MeanField, NaturalNewton, infer
from hylift.inference.variational import slots
from hylift.potentials import ConditionalQuadratic
from zoo import friends_and_smokers, hard_clause, smallest_toy_hybrid_mln, toy_hybrid_mln

METHODS = [BVI(2), NPVI(2), MeanField()]


def refusal_of(call: Callable[[], Any], error: type[Exception] = UnsupportedError) -> str:
    with pytest.raises(error) as refusal:
        call()
    return str(refusal.value)


@pytest.mark.parametrize("method", [BVI, NPVI])
@pytest.mark.parametrize("components", [0, -1, 2.5, "three", None])
def test_components_are_a_whole_number(method: Callable[..., Any], components: object) -> None:
    text = refusal_of(lambda: method(components=components))

    assert text == f"components must be an integer of at least 1, not {components!r}"


@pytest.mark.parametrize("method", [BVI, NPVI, MeanField])
@pytest.mark.parametrize("setting", ["restarts", "max_steps"])
def test_restarts_and_steps_are_whole_numbers(method: Callable[..., Any], setting: str) -> None:
    text = refusal_of(lambda: method(**{setting: 0}))

    assert text == f"{setting} must be an integer of at least 1, not 0"


@pytest.mark.parametrize("method", [BVI, NPVI, MeanField])
def test_unknown_families_of_reals(method: Callable[..., Any]) -> None:
    text = refusal_of(lambda: method(reals="student"))

    assert text == "reals must be one of 'auto', 'gaussian', 'beta', not 'student'"


@pytest.mark.parametrize("optimiser", ["adam", Adam, None])
def test_an_optimiser_is_a_value(optimiser: object) -> None:
    text = refusal_of(lambda: BVI(optimiser=optimiser))  # type: ignore[arg-type]

    assert text == (f"optimiser must be a value such as Adam(learning_rate=0.2), not {optimiser!r}")


@pytest.mark.parametrize("rate", [0, -0.1, float("nan")])
def test_learning_rates_are_positive(rate: float) -> None:
    text = refusal_of(lambda: Adam(learning_rate=rate))

    assert text == f"a learning rate is positive, not {rate!r}"


def test_decays_of_adam_are_shares() -> None:
    assert refusal_of(lambda: Adam(decay=1.0)) == "decay is at least 0 and below 1, not 1.0"
    text = refusal_of(lambda: Adam(square_decay=-0.5))
    assert text == "square_decay is at least 0 and below 1, not -0.5"


def test_a_warm_start_has_as_many_components() -> None:
    graph = smallest_toy_hybrid_mln()
    earlier = infer(graph, BVI(2))

    text = refusal_of(lambda: infer(graph, BVI(3), start=earlier))

    assert text == ("the posterior to start from has 2 components, not 3: ask for components=2")


def test_a_warm_start_is_a_mixture() -> None:
    graph = hard_clause()
    exact = infer(graph, Exact())

    text = refusal_of(lambda: infer(graph, BVI(2), start=exact))

    assert text == (
        "a warm start needs the posterior of BVI, NPVI or MeanField, not one of 'exact'"
    )
    text = refusal_of(lambda: infer(graph, BVI(2), start="yesterday"))  # type: ignore[arg-type]
    assert text == "start must be a posterior of an earlier run, not 'yesterday'"


def test_unknown_liftings_suggest_the_closest() -> None:
    text = refusal_of(lambda: infer(hard_clause(), BVI(2), lift="coarse"))  # type: ignore[arg-type]

    assert text.startswith("there is no lift 'coarse': choose among exact, coarse-to-fine, none.")


@pytest.mark.parametrize("seconds", [-1, 0, "soon", float("nan")])
def test_seconds_are_positive(seconds: object) -> None:
    text = refusal_of(lambda: infer(hard_clause(), BVI(2), seconds=seconds))  # type: ignore[arg-type]

    assert text == f"seconds must be a positive number, not {seconds!r}"


def test_a_callback_is_a_function() -> None:
    text = refusal_of(lambda: infer(hard_clause(), BVI(2), callback=3))  # type: ignore[arg-type]

    assert text == "callback must be a function of a step, not 3"


def test_a_seed_is_a_whole_number() -> None:
    with pytest.raises(TypeError):
        infer(hard_clause(), BVI(2), seed="one")  # type: ignore[arg-type]


@pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_real_that_is_not_held_in_a_state_is_named_with_that_state(
    method: BVI | NPVI | MeanField, lift: Any
) -> None:
    held_where_on = ConditionalQuadratic.square(-0.5).times([0, 1])
    graph = FactorGraph.build({"on": boolean, "height": real}, [(held_where_on, ["on", "height"])])

    text = refusal_of(lambda: infer(graph, method, lift=lift), ModelError)

    assert text == (
        "the density is improper in 'height' where on is false: give it bounds or add a rule such "
        "as '-0.01 height^2'. bethe_certificate(graph) lists all such variables"
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_reals_that_are_not_held_together_in_a_state_are_refused(
    method: BVI | NPVI | MeanField,
) -> None:
    """Each is held by itself; where `on` is true, their product wins in one direction."""
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real},
        [
            (ConditionalQuadratic.square(-0.5), [["x"], ["y"]]),
            (ConditionalQuadratic.product(2.0).times([0, 1]), ["on", "x", "y"]),
        ],
    )

    text = refusal_of(lambda: infer(graph, method), ModelError)

    said = "the density grows without bound in 'x' and 'y' jointly where on is true: "
    assert text.startswith(said)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("product", [2.0, -2.0])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_gaussian_without_a_maximum_is_refused(
    method: BVI | NPVI | MeanField, product: float, slope: float
) -> None:
    """Also where x and y are one class, and the direction is that in which they differ."""
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [
            (ConditionalQuadratic.shared([[-0.5]], [slope]), [["x"], ["y"]]),
            (ConditionalQuadratic.product(product), ["x", "y"]),
        ],
    )

    text = refusal_of(lambda: infer(graph, method), ModelError)

    assert text.startswith("the density is improper in '")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_real_that_nothing_holds_is_refused(method: BVI | NPVI | MeanField) -> None:
    graph = FactorGraph.build(
        {"x": real, "free": real}, [(ConditionalQuadratic.square(-0.5), ["x"])]
    )

    text = refusal_of(lambda: infer(graph, method), ModelError)

    assert "improper in 'free'" in text


@pytest.mark.parametrize(("lower", "upper", "slope"), [(0, np.inf, -1.0), (-np.inf, 0, 1.0)])
@pytest.mark.parametrize("curvature", [0.0, -0.5])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_single_bound_that_matters_is_refused(
    method: BVI | NPVI | MeanField, curvature: float, lower: float, upper: float, slope: float
) -> None:
    potential = ConditionalQuadratic.shared([[curvature]], [slope])
    graph = FactorGraph.build({"wait": interval(lower, upper)}, [(potential, ["wait"])])

    text = refusal_of(lambda: infer(graph, method))

    assert text.startswith("'wait' is bounded on one side only, [")
    assert text.endswith("Give 'wait' a second one, as far away as it can ever be")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_impossible_evidence_is_refused(method: BVI | NPVI | MeanField) -> None:
    graph = hard_clause().observe({"H": False, "S": False})

    with pytest.raises(ImpossibleEvidenceError):
        infer(graph, method)


def test_bethe_refuses_a_factor_whose_grid_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "LARGEST_GRID", 7)

    text = refusal_of(lambda: infer(friends_and_smokers(), BVI(2), lift="none"))

    assert text == (
        "the Bethe entropy needs the joint density of each factor's variables on a grid, and that "
        "of 'Smokes(p0)', 'Smokes(p1)', 'Friends(p0,p1)' has 8 points, more than 7: use NPVI or "
        "MeanField, which need no grid, or smaller factors"
    )


def test_queries_for_unknown_atoms_suggest_the_closest() -> None:
    posterior = infer(toy_hybrid_mln(), BVI(2))

    for query in (
        lambda: posterior.marginal("posA(a9)"),
        lambda: posterior.joint(["posA(a0)", "posA(a9)"]),
        lambda: posterior.given({"posA(a9)": 1.0}),
        lambda: posterior.sample(3, seed=0, atoms="posA(a9)"),
        lambda: posterior.expect(lambda x: x, "posA(a9)"),
    ):
        text = refusal_of(query, UnknownNameError)

        assert "'posA(a9)'" in text
        assert "Did you mean 'posA(a" in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"posA(a0)": 20.0}, ["posA(a0)", "20", "-15", "15"]),
        ({"attractedTo(a0,b0)": "perhaps"}, ["attractedTo(a0,b0)", "perhaps"]),
        ({"posA(a0)": float("nan")}, ["posA(a0)"]),
    ],
)
def test_conditioning_outside_the_domain_is_refused(
    values: dict[str, object], said: list[str]
) -> None:
    posterior = infer(toy_hybrid_mln(), BVI(2))

    text = refusal_of(lambda: posterior.given(values), EvidenceError)

    for part in said:
        assert part in text


def test_conditioning_on_another_value_than_observed_is_refused() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1), "on": boolean},
        [(ConditionalQuadratic.square(-1.0).times([0, 1]), ["on", "x"])],
    ).observe({"on": True})
    posterior = infer(graph, BVI(2))

    text = refusal_of(lambda: posterior.given({"on": False}), EvidenceError)

    assert text == "'on' is observed as true and cannot be false"


def test_settings_are_shown() -> None:
    assert BVI(2).optimiser == NaturalNewton()
    assert [method.name for method in METHODS] == ["BVI(2)", "NPVI(2)", "mean field"]
