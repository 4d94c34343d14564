"""Named distributions against SciPy, as tables, functions and straight lines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as stats

import hylift as hl
from hylift.errors import EvidenceError, ModelError, UnsupportedError
from hylift.language.lowering.evaluate import evaluate
from hylift.language.syntax import Density, Parameter

VALUES = np.array([0.05, 0.3, 0.9])
COUNTS = np.array([0.0, 2.0, 7.0])
TRUTHS = np.array([True, False, True])


def log_density(name: str, *arrays: np.ndarray) -> np.ndarray:
    """The value of a density whose value and parameters are arrays."""
    leaves = {Parameter(f"p{place}"): array for place, array in enumerate(arrays)}
    value, *parameters = leaves
    return np.asarray(evaluate(Density(name, value, tuple(parameters)), leaves.__getitem__))


@pytest.mark.parametrize(
    ("name", "value", "parameters", "expected"),
    [
        ("bernoulli", TRUTHS, (0.3,), stats.bernoulli(0.3).logpmf(TRUTHS)),
        (
            "bernoulli_logit",
            TRUTHS,
            (1.7,),
            stats.bernoulli(1 / (1 + np.exp(-1.7))).logpmf(TRUTHS),
        ),
        (
            "bernoulli_probit",
            TRUTHS,
            (-0.4,),
            stats.bernoulli(stats.norm.cdf(-0.4)).logpmf(TRUTHS),
        ),
        ("poisson", COUNTS, (2.5,), stats.poisson(2.5).logpmf(COUNTS)),
        ("exponential", VALUES, (3.0,), stats.expon(scale=1 / 3).logpdf(VALUES)),
        ("gamma", VALUES, (2.0, 3.0), stats.gamma(2, scale=1 / 3).logpdf(VALUES)),
        ("beta", VALUES, (2.0, 3.0), stats.beta(2, 3).logpdf(VALUES)),
        ("lognormal", VALUES, (0.5, 4.0), stats.lognorm(2, scale=np.exp(0.5)).logpdf(VALUES)),
        ("student", VALUES, (0.5, 4.0, 3.0), stats.t(3, 0.5, 2).logpdf(VALUES)),
    ],
)
def test_densities_are_those_of_scipy(name, value, parameters, expected) -> None:
    found = log_density(name, value, *map(np.asarray, parameters))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_lies_outside_is_impossible() -> None:
    assert log_density("poisson", np.array(1.5), np.array(2.0)) == -np.inf
    assert log_density("poisson", np.array(-1.0), np.array(2.0)) == -np.inf
    assert log_density("poisson", np.array(2.0), np.array(0.0)) == -np.inf
    assert log_density("poisson", np.array(0.0), np.array(0.0)) == 0.0
    assert log_density("beta", np.array(1.1), np.array(2.0), np.array(1.0)) == -np.inf
    assert np.isnan(log_density("bernoulli", np.array(True), np.array(1.2)))


def test_densities_are_finite_where_they_have_poles() -> None:
    assert np.isfinite(log_density("gamma", np.array(0.0), np.array(0.3), np.array(2.0)))
    ends = log_density("beta", np.array([0.0, 1.0]), np.array(0.2), np.array(0.3))
    assert np.isfinite(ends).all()


def test_far_scores_keep_their_digits() -> None:
    assert log_density("bernoulli_logit", np.array(True), np.array(-800.0)) == -800.0
    found = log_density("bernoulli_probit", np.array(True), np.array(-40.0))
    assert found == pytest.approx(stats.norm.logcdf(-40.0), rel=1e-12)


def test_claims_of_workers_are_a_table() -> None:
    rules = """
        Has(item)
        Claims(worker, item)
        0.4 Has(i)
        bernoulli(Claims(w, i) | 0.25 + 0.65*Has(i))
    """
    graph = hl.ground(hl.parse(rules), {"Claims(w1, a)": True, "Claims(w2, a)": False})
    odds = np.exp(0.4) * (0.9 * 0.1) / (0.25 * 0.75)
    posterior = hl.infer(graph)
    assert posterior.trust.verdict == "certified"
    assert posterior.marginal("Has(a)").probs[1] == pytest.approx(odds / (1 + odds), abs=1e-12)


def test_an_exponential_is_a_straight_line() -> None:
    graph = hl.ground(hl.parse("t: real[0, inf]\nexponential(t | 0.5)"))
    (group,) = graph.groups
    assert group.potential.quadratic() is not None
    assert hl.infer(graph).marginal("t").mean == pytest.approx(2.0, abs=1e-6)


def test_counts_with_an_unknown_rate() -> None:
    rules = "n(day): real\nrate: real[0, 50]\ngamma(rate | 2, 0.5)\npoisson(n(d) | rate)"
    graph = hl.ground(hl.parse(rules), {"n": [("mon", 3.0), ("tue", 5.0), ("wed", 4.0)]})
    exact = stats.gamma(2 + 12, scale=1 / (0.5 + 3))
    own = hl.infer(graph).marginal("rate")
    assert own.mean == pytest.approx(exact.mean(), abs=1e-4)
    assert own.std == pytest.approx(exact.std(), abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "log_likelihood"),
    [
        ("exponential(x(i) | r)", lambda x, r: stats.expon(scale=1 / r).logpdf(x)),
        ("gamma(x(i) | 2, r)", lambda x, r: stats.gamma(2, scale=1 / r).logpdf(x)),
        ("gamma(x(i) | r, 2)", lambda x, r: stats.gamma(r, scale=1 / 2).logpdf(x)),
        ("beta(x(i) | 2, r)", lambda x, r: stats.beta(2, r).logpdf(x)),
        ("lognormal(x(i) | 0, r)", lambda x, r: stats.lognorm(r**0.5).logpdf(x)),
        ("student(x(i) | 0, r, 4)", lambda x, r: stats.t(4, 0, r**0.5).logpdf(x)),
        ("poisson(x(i) | r)", lambda x, r: stats.poisson(r).logpmf(x)),
    ],
)
def test_parameters_may_have_bounds_at_0(rule: str, log_likelihood) -> None:
    values = [2.0, 3.0, 1.0] if "poisson" in rule else [0.25, 0.75, 0.5]
    rules = f"x(i): real[0, {'inf' if 'poisson' in rule else 1}]\nr: real[0, 8]\n{rule}"
    graph = hl.ground(hl.parse(rules), {"x": list(zip("abc", values, strict=True))})
    posterior = hl.infer(graph, hl.Exact())

    r = (np.arange(200_000) + 0.5) * 8 / 200_000
    density = np.exp(sum(log_likelihood(value, r) for value in values))
    assert posterior.log_partition.value == pytest.approx(np.log(density.mean() * 8), abs=1e-6)
    mean = (density * r).sum() / density.sum()
    assert posterior.marginal("r").mean == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [("a", 3.0), ("b", None)],
            "'poisson(n(i) | r)' is about an observed count, but n(b) is hidden: give its value, "
            "without an error, or leave its row out and pass only_rows=['n'], so that groundings "
            "without a row do not exist",
        ),
        ([("a", 3.0, 0.0), ("b", 2.0, 0.5)], "n(b) is hidden"),
        (
            [("a", 3.0), ("b", 1.5)],
            "n(b) is 1.5, but the value of 'poisson(n(i) | r)' is a count: 0, 1, 2, …",
        ),
        ([("a", -1.0)], "n(a) is -1, but the value of"),
    ],
)
def test_the_value_of_poisson_is_an_observed_count(rows: list, sentence: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        hl.ground(hl.parse("n(i): real\nr: real[0, 9]\npoisson(n(i) | r)"), {"n": rows})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "log_likelihood"),
    [
        ("poisson(n(d) | exp(x))", lambda n, x: stats.poisson(np.exp(x)).logpmf(n)),
        ("normal(n(d) | 4, exp(x))", lambda n, x: stats.norm(4, np.exp(x / 2)).logpdf(n)),
        ("normal(n(d) | 4, 2*exp(x)^2)", lambda n, x: stats.norm(4, 2**0.5 * np.exp(x)).logpdf(n)),
        ("student(n(d) | 4, exp(x), 3)", lambda n, x: stats.t(3, 4, np.exp(x / 2)).logpdf(n)),
        ("gamma(n(d) | 2, exp(x))", lambda n, x: stats.gamma(2, scale=np.exp(-x)).logpdf(n)),
        ("exponential(n(d) | exp(x))", lambda n, x: stats.expon(scale=np.exp(-x)).logpdf(n)),
    ],
)
def test_exponential_links_may_overflow_far_away(rule, log_likelihood) -> None:
    counts = [3.0, 5.0]
    rules = f"n(day): real[0, 100]\nx: real\nnormal(x | 0, 1)\n{rule}"
    graph = hl.ground(hl.parse(rules), {"n": [("mon", 3.0), ("tue", 5.0)]})
    posterior = hl.infer(graph, hl.Exact())

    x = np.linspace(-12, 12, 4001)  # the sum is exact for what falls off at both ends
    density = np.exp(stats.norm.logpdf(x) + sum(log_likelihood(n, x) for n in counts))
    total = density.sum() * (x[1] - x[0])
    mean = (density * x).sum() / density.sum()
    assert posterior.log_partition.value == pytest.approx(np.log(total), abs=1e-6)
    assert posterior.marginal("x").mean == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            "A: boolean\nH: boolean\nbernoulli(A | 0.5 + 0.65*H)",
            "'p' in 'bernoulli(A | 0.5 + 0.65 * H)' is 1.15 where A is false and H is true: a "
            "probability is between 0 and 1",
        ),
        (
            "y: real[0, inf]\nF: boolean\n1 F\nexponential(y | 2*F)",
            "'rate' in 'exponential(y | 2 * F)' is 0 where F is false: it must be positive",
        ),
        (
            "y: real[0, inf]\nF: boolean\n1 F\ngamma(y | 2, 2*F)",
            "'rate' in 'gamma(y | 2, 2 * F)' is 0 where y is 1 and F is false: it must be positive",
        ),
        (
            "y: real\nr: real\nnormal(r | 2, 1)\npoisson(y | r)",
            "it must be positive, so give the reals in it bounds, as in 'noise: real[0, inf]'",
        ),
        (
            "A: boolean\np: real\nnormal(p | 0, 1)\nbernoulli(A | p)",
            ": a probability is between 0 and 1",
        ),
        (
            "y: real\nm: real\nv: real[-1, 9]\nnormal(m | 0, 1)\nnormal(y | m, v)",
            "it must be positive, so give the reals in it bounds, as in 'noise: real[0, inf]'",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*may be negative")
def test_impossible_parameters_are_told(rules: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        hl.infer(hl.ground(hl.parse(rules), {"y": 1.0} if "y" in rules else None))
    assert sentence in str(caught.value)


def test_a_variance_that_may_be_negative_is_warned_of() -> None:
    rules = "y: real\nv: real\nnormal(y | 0, v)"
    (found,) = hl.check(hl.parse(rules + "\nnormal(v | 3, 1)"))
    assert found.message == (
        "the variance of normal is positive, but 'v' may be negative: declare 'v' as real[0, inf]"
    )
    hl.ground(hl.parse(rules), {"v": 2.0})  # it is known not to be


def test_names_of_distributions_stay_free_for_predicates() -> None:
    model = hl.parse("beta(item): real\ngamma: real\nnormal(beta(i) | gamma, 1)\n-1 gamma^2")
    assert [declared.name for declared in model.predicates] == ["beta", "gamma"]


def test_models_with_densities_are_written_and_read() -> None:
    text = "x: real\ny: real[0, 1]\nstudent(x | 2 * y, 4, 3)\n2 beta(y | 2, 3)"
    model = hl.parse(text)
    assert hl.parse(str(model)) == model
    m = hl.ModelBuilder()
    x, y = m.predicate("x", domain=hl.real), m.predicate("y", domain=hl.interval(0, 1))
    m.rule(None, hl.density("student", x, 2 * y, 4, 3))
    m.rule(2, hl.density("beta", y, 2, 3))
    assert m.build().rules == model.rules


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("student(x | 1, 2)", "'student' takes 3 parameters, not 2: write 'student(value | m, v, "),
        ("bernoulli(x | 0.5)", "the value of bernoulli is a truth value, but 'x' is a number"),
        ("student(A | 1, 2, 3)", "the value of student is a number, but 'A' is a truth value"),
        ("bernoulli(A | 1.5)", "'p' of bernoulli is a probability, not 1.5"),
        ("student(x | 1, -2, 3)", "'v' of student must be positive, not -2"),
        ("exponential(x | 2)", "'x' may be where exponential has no density: declare 'x' as real"),
        ("student(x | 1; 2)", "write 'student(value | m, v, nu)'"),
    ],
)
def test_wrong_densities_are_told(rule: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        hl.check(hl.parse(f"x: real\nA: boolean\n-1 x^2\n1 A\n{rule}"))
    assert sentence in str(caught.value)


def test_unknown_distributions_are_told() -> None:
    with pytest.raises(UnsupportedError, match="no distribution 'cauchy'"):
        hl.density("cauchy", 1.0, 0.0)
