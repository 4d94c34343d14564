"""Formulas that are no quadratics, until evidence fills some of their slots."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import hylift as hl
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.potentials.reduced import Reduced

ROWS = ["r0", "r1", "r2", "r3"]
X = np.array([0.5, -1.0, 2.0, 0.25])
Y = np.array([1.0, 0.3, -0.7, 2.0])


def observed(values: np.ndarray) -> pa.Table:
    return pa.table({"row": ROWS, "value": values})


DECLARED = {
    "k": "k: real",
    "q": "q: real",
    "x(": "x(row): real",
    "y(": "y(row): real",
    "P(": "P(row)",
    "C(": "kind = {K0, K1, K2}\nC(row, kind!)",
}


def grounded(rules: str, **evidence: pa.Table) -> hl.FactorGraph:
    """Rules with the declarations that they need."""
    needed = [line for word, line in DECLARED.items() if word in rules]
    model = hl.parse("\n".join(["row", *needed, rules]))
    given = {name: table for name, table in evidence.items() if f"{name}(" in rules}
    return hl.ground(model, {"row": ROWS, **given})


def hidden_kinds(graph: hl.FactorGraph) -> set[type]:
    return {type(group.potential) for group in graph.condition().groups}


def test_a_regression_is_quadratic_once_its_inputs_are_observed():
    graph = grounded(
        "normal(y(r) | k + q * x(r), 0.5)\nnormal(k | 0, 10)\nnormal(q | 0, 10)",
        x=observed(X),
        y=observed(Y),
    )

    found = hl.infer(graph, hl.Exact())

    inputs = np.stack([np.ones(4), X], axis=1)
    precision = inputs.T @ inputs / 0.5 + np.eye(2) / 10
    expected = np.linalg.solve(precision, inputs.T @ Y / 0.5)
    actual = [found.marginal(name) for name in ("k", "q")]
    np.testing.assert_allclose([one.mean for one in actual], expected, rtol=1e-12)
    np.testing.assert_allclose(
        [one.var for one in actual], np.diag(np.linalg.inv(precision)), rtol=1e-12
    )
    covariance = inputs @ (10 * np.eye(2)) @ inputs.T + 0.5 * np.eye(4)
    log_z = -0.5 * (
        Y @ np.linalg.solve(covariance, Y) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    assert float(found.log_partition) == pytest.approx(log_z, rel=1e-12)


def test_a_variance_may_be_an_observed_real():
    graph = grounded("normal(k | y(r), x(r)^2)", x=observed(X), y=observed(Y))

    found = hl.infer(graph, hl.Exact()).marginal("k")

    assert found.mean == pytest.approx(np.average(Y, weights=X**-2.0), rel=1e-12)
    assert found.var == pytest.approx(1 / (X**-2.0).sum(), rel=1e-12)


RULES = [
    "0.7  P(r) * (k = q * x(r))",
    "-0.3  (k * x(r) - q)^2 * (C(r, K1) + 2 * C(r, K2))",
    "0.4  x(r) * y(r) * k * P(r) + C(r, K0)",
    "-1  k^2 + x(r)^2 * P(r)",
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seen", [("x",), ("x", "y")])
def test_what_is_left_has_the_value_of_the_whole(rule, seen):
    graph = grounded(rule, **{name: observed({"x": X, "y": Y}[name]) for name in seen})
    rng = np.random.default_rng(0)
    values = rng.normal(size=graph.num_variables)
    states = graph.variables.num_states
    values[states > 0] = rng.integers(0, states[states > 0])
    values[graph.evidence.variable] = graph.evidence.value

    left = graph.condition()

    hidden = np.setdiff1d(np.arange(graph.num_variables), graph.evidence.variable)
    assert left.log_density(values[hidden]) == pytest.approx(graph.log_density(values), rel=1e-12)
    assert not hidden_kinds(graph) & {Function, Reduced}


def test_a_factor_whose_reals_are_all_observed_is_a_table():
    graph = grounded("-0.2  P(r) * exp(x(r)) * y(r)^2", x=observed(X), y=observed(Y))

    assert hidden_kinds(graph) == {Table}


def test_what_is_no_quadratic_even_then_stays_a_function():
    graph = grounded("-1  exp(k) * x(r) + q^2", x=observed(X))

    assert hidden_kinds(graph) == {Reduced}


def test_a_quadratic_with_observed_reals_takes_part_in_lifting():
    graph = grounded(
        "-1  (y(r) - x(r) * k)^2\nnormal(k | 0, 1)", x=observed(np.array([1.0, 1.0, 2.0, 2.0]))
    )

    lifted = hl.lift(graph)

    assert hidden_kinds(graph) == {ConditionalQuadratic}
    assert lifted.graph.num_variables == 3


def test_values_that_make_no_number_are_told():
    graph = grounded("k + log(x(r))", x=observed(-np.ones(4)), y=observed(Y))

    with pytest.raises(hl.HyliftError, match=r"is nan where x\(r\) is -1"):
        graph.condition()


def test_an_observed_variance_of_0_is_refused_by_name():
    graph = grounded("normal(k | y(r), x(r))", x=observed(np.zeros(4)), y=observed(Y))

    with pytest.raises(hl.HyliftError, match=r"is 0 where y\(r\) is 1 and x\(r\) is 0"):
        graph.condition()
