"""Expected statistics of rules, against derivatives of log Z and enumeration."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import hylift as hl
import oracle
import zoo
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.language.report import ModelWarning
from posterior import mixtures

STEP = 1e-3

RULES = """
    person = {{Anna, Bob, Carl}}
    Smokes(person)
    Friends(person, person)
    heat(person): real
    level: real
    {0}  Smokes(x)
    {1}  Friends(x, y) ^ Smokes(x) => Smokes(y)
    {2}  Smokes(x) * (heat(x) - level)^2
    {3}  Smokes(x) v Smokes(y)  where x != y
    normal(heat(x) | 1, 4)
    normal(level | 0, 2)
    Smokes(Anna) v Smokes(Bob).
"""
WEIGHTS = [0.5, 0.7, -0.3, 0.0]
SEEN = {"Friends(Anna,Bob)": True, "Friends(Bob,Carl)": True, "Smokes(Carl)": False}
SEEN |= {"heat(Anna)": 2.0}


def smokers(weights: list[float] = WEIGHTS) -> FactorGraph:
    with warnings.catch_warnings(action="ignore", category=ModelWarning):  # of a weight of 0
        return hl.ground(hl.parse(RULES.format(*weights)), SEEN, closed=["Friends"])


def exact_log_z(graph: FactorGraph) -> float:
    found = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
    assert found is not None
    return found.value


def derivative(graph: FactorGraph, place: int, log_z: Callable[[FactorGraph], float]) -> float:
    """E[log ψ] of a group as the derivative of log Z by its power; good to about 1e-8."""

    def at(power: float) -> float:
        groups = list(graph.groups)
        groups[place] = replace(groups[place], multiplicity=groups[place].multiplicity * power)
        return log_z(FactorGraph(graph.variables, tuple(groups), graph.evidence))

    coarse = (at(1 + 2 * STEP) - at(1 - 2 * STEP)) / (4 * STEP)
    fine = (at(1 + STEP) - at(1 - STEP)) / (2 * STEP)
    return (4 * fine - coarse) / 3


def expected(graph: FactorGraph, method: object, **settings: object) -> np.ndarray:
    found = hl.infer(graph, method, **settings).expected_counts()
    assert found.column_names == ["rule", "weight", "statistic", "expected"]
    return found["expected"].to_numpy()


@pytest.mark.parametrize("model", zoo.ZOO, ids=str)
def test_exact_expectations_are_derivatives_of_log_z(model) -> None:
    graph = model.graph()

    found = expected(graph, hl.Exact())

    wanted = [derivative(graph, place, exact_log_z) for place in range(len(graph.groups))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "build",
    [zoo.switching_regime, zoo.observed_mixture],
    ids=lambda build: build.__name__,
)
def test_exact_expectations_are_those_of_enumeration(build) -> None:
    graph = build()

    found = expected(graph, hl.Exact())

    places = range(len(graph.groups))
    wanted = [derivative(graph, place, lambda g: oracle.solve(g).log_z) for place in places]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("place", range(4))
def test_the_statistic_of_a_rule_is_the_derivative_of_log_z_by_its_weight(place: int) -> None:
    def log_z(change: float) -> float:
        weights = list(WEIGHTS)
        weights[place] += change
        return exact_log_z(smokers(weights))

    found = expected(smokers(), hl.Exact())

    slope = (log_z(STEP) - log_z(-STEP)) / (2 * STEP)
    wider = (log_z(2 * STEP) - log_z(-2 * STEP)) / (4 * STEP)
    assert found[place] == pytest.approx((4 * slope - wider) / 3, abs=1e-7)


def test_a_row_per_rule_says_which_statistic_it_has() -> None:
    table = hl.infer(smokers(), hl.Exact()).expected_counts()

    assert table["rule"].to_pylist()[:2] == [
        "0.5 Smokes(x)",
        "0.7 Friends(x, y) ^ Smokes(x) => Smokes(y)",
    ]
    assert table["weight"].to_pylist() == [*WEIGHTS, None, None, None]
    assert table["statistic"].to_pylist() == ["formula"] * 4 + ["log-value"] * 3
    assert table["expected"].to_pylist()[-1] == 0  # a hard rule holds
    assert table.to_pandas().shape == (7, 4)


def test_groundings_that_evidence_decides_count() -> None:
    everything = {f"Smokes({name})": True for name in ("Anna", "Bob")}
    graph = smokers().observe(everything)

    found = expected(graph, hl.Exact())

    assert found[0] == pytest.approx(2)
    assert found[1] == pytest.approx(9 - 1)  # Bob smokes, and his friend Carl does not
    assert found[3] == pytest.approx(6)


def test_a_conditioned_graph_keeps_its_rules() -> None:
    graph = smokers()

    whole, hidden = (expected(g, hl.Exact()) for g in (graph, graph.condition()))
    further = expected(graph.condition().observe({"Smokes(Bob)": True}), hl.Exact())
    at_once = expected(graph.observe({"Smokes(Bob)": True}), hl.Exact())

    np.testing.assert_allclose(hidden, whole, atol=1e-10)
    np.testing.assert_allclose(further, at_once, atol=1e-10)


def test_draws_are_averaged() -> None:
    graph = smokers()
    posterior = hl.infer(graph, hl.Gibbs(draws=200))

    found = posterior.expected_counts()["expected"].to_numpy()

    draws = posterior.draws
    values = np.zeros(graph.num_variables)
    values[graph.evidence.variable] = graph.evidence.value
    total = np.zeros(len(graph.groups))
    for draw in draws.values.reshape(-1, draws.values.shape[-1]):
        values[draws.ids] = draw
        total += [group.log_sum(values) for group in graph.groups]
    mean = total / draws.values[..., 0].size
    labels = [group.label for group in graph.groups]
    for rule in (0, 2, 4, 5):
        info = graph.rules.infos[rule]
        own = sum(mean[place] for place, label in enumerate(labels) if label == info.text)
        assert found[rule] == pytest.approx(own / info.scale + info.decided, abs=1e-9)
    exact = expected(graph, hl.Exact())
    np.testing.assert_allclose(found[:2], exact[:2], atol=0.3)  # 800 draws


@pytest.mark.parametrize("seen", [{}, {"wet": True, "x": 1.0}], ids=str)
def test_mixtures_have_expectations_in_closed_form(seen: dict[str, object]) -> None:
    posterior = mixtures.posterior(seen)
    graph = mixtures.graph()

    found = posterior.expected_counts()["expected"].to_numpy()

    for group, value in zip(graph.groups, found, strict=True):
        total = 0.0
        for factor, scope in enumerate(group.scope.tolist()):
            names = [graph.variables.names[v] for v in scope]

            def log_value(*slots: object, factor: int = factor, group: object = group) -> object:
                return group.potential.log_value(group.row[factor], list(slots))

            total += posterior.expect(log_value, names).value
        assert value == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("lift", ["exact", "none"])
def test_lifted_and_ground_mixtures_agree_with_exact_inference(lift: str) -> None:
    apart = hl.ground(
        hl.parse("""
            x = {a, b, c, d}
            P(x)
            v(x): real
            0.7  P(x)
            -0.4 (v(x) - 1)^2
            1.1  P(x) v P(x)
        """),
        {"P(a)": True},
    )

    found = expected(apart, hl.BVI(1), lift=lift)

    np.testing.assert_allclose(found, expected(apart, hl.Exact()), atol=1e-6)


def test_a_mixture_integrates_functions() -> None:
    smooth = hl.Function(lambda d, x: 0.2 * d - np.log1p((x - d) ** 2), 1, 1)
    graph = hl.FactorGraph.build(
        {"d": hl.categorical(3), "x": hl.interval(0, 4)},
        [(smooth, ["d", "x"]), (hl.ConditionalQuadratic.square(-0.1), ["x"])],
    )
    posterior = hl.infer(graph, hl.BVI(2))

    found = posterior.expected_counts()["expected"].to_numpy()

    for group, value in zip(graph.groups, found, strict=True):
        total = 0.0
        for factor, scope in enumerate(group.scope.tolist()):
            names = [graph.variables.names[v] for v in scope]

            def log_value(*slots: object, factor: int = factor, group: object = group) -> object:
                return group.potential.log_value(group.row[factor], list(slots))

            total += posterior.expect(log_value, names).value
        assert value == pytest.approx(total, abs=1e-9)


def test_what_has_no_joint_distribution_says_so(tmp_path) -> None:
    graph = zoo.hidden_markov_model()
    with pytest.raises(UnsupportedError, match=r"BP has no joint .* use Exact\(\), BVI\(\) or G"):
        hl.infer(graph, hl.BP()).expected_counts()

    with pytest.raises(UnsupportedError, match=r"this posterior has no marginals: .*tasks"):
        hl.infer(graph, hl.Exact(), tasks="map").expected_counts()

    hl.infer(graph, hl.Exact()).save(tmp_path / "saved")
    with pytest.raises(UnsupportedError, match="needs the model, which is not saved"):
        hl.Posterior.load(tmp_path / "saved").expected_counts()


def test_a_graph_without_factors_has_an_empty_table() -> None:
    found = hl.infer(hl.FactorGraph.build({"x": hl.boolean}, []), hl.Exact()).expected_counts()

    assert found.num_rows == 0
    assert found.schema.field("expected").type == "double"
