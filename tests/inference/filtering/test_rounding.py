"""Units, levels, wide priors and the order of factors do not change what a filter says."""

import numpy as np
import pytest

import hylift as hl

gaussian = hl.ConditionalQuadratic.gaussian
linear = hl.ConditionalQuadratic.linear_gaussian


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_units_of_reals_do_not_matter(unit):
    model = hl.parse(f"""
        t = {{0, 1}}
        x(t): real
        y(t): real
        normal(x(k) | 0, {unit**-2})
        normal(y(k) | 0, {unit**2})
        -0.5 (x(k)^2 * {unit**2} + (y(k) - {unit})^2 / {unit**2})
    """)

    found = hl.kalman_filter(hl.ground(model), "t")

    assert np.allclose(found.mean[2:] / unit, 0.5, rtol=1e-12)
    assert np.allclose(found.var[2:] / unit**2, 0.5, rtol=1e-12)
    assert np.allclose(found.var[:2] * unit**2, 0.5, rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1e5, 1e7])
def test_log_z_does_not_cancel_at_high_levels(level):
    size, var = 50, 1e-4
    value = level + np.cumsum(np.random.default_rng(0).normal(size=size)) * np.sqrt(var)
    names = [f"{kind}{t}" for kind in "xo" for t in range(size)]
    factors = [(gaussian([level], var), ["x0"])]
    factors += [(linear([1.0], var), [f"x{t}", f"x{t - 1}"]) for t in range(1, size)]
    factors += [(linear([1.0], var), [f"o{t}", f"x{t}"]) for t in range(size)]
    graph = hl.FactorGraph.build(dict.fromkeys(names, hl.real), factors)
    graph = graph.observe({f"o{t}": float(value[t]) for t in range(size)})

    found = hl.kalman_filter(graph, np.tile(np.arange(size), 2))

    expected = log_density_of_a_walk(value - level, var)
    error = abs(found.log_partition[-1] - expected)
    # A distance of 0.01 between numbers of 1e7 has seven digits.
    assert error < 1e-12 * max(level, 1e2) / np.sqrt(var)
    assert error < 10 * found.error.sum() + 1e-11


def log_density_of_a_walk(value, var):
    """Of measurements of a walk from N(0, var), all variances the same; as in a textbook."""
    mean, spread, total = 0.0, 0.0, 0.0
    for seen in value:
        spread += var
        whole = spread + var
        total -= 0.5 * (np.log(2 * np.pi * whole) + (seen - mean) ** 2 / whole)
        mean += spread / whole * (seen - mean)
        spread -= spread**2 / whole
    return total


@pytest.mark.parametrize("wide", [1e4, 1e10, 1e16])
def test_wide_priors_cost_no_digits(wide):
    names = ["x0", "x1", "o0", "o1"]
    factors = [
        (gaussian([0.0], wide), ["x0"]),
        (linear([1.0], 0.5), ["x1", "x0"]),
        (linear([1.0], 0.7), [["o0", "x0"], ["o1", "x1"]]),
    ]
    graph = hl.FactorGraph.build(dict.fromkeys(names, hl.real), factors)

    found = hl.kalman_filter(graph.observe({"o0": 1000.0, "o1": 1001.0}), np.array([0, 1, 0, 1]))

    first = 1 / (1 / wide + 1 / 0.7)
    assert found.var[0] == pytest.approx(first, rel=1e-14)
    assert found.mean[0] == pytest.approx(first * 1000 / 0.7, rel=1e-14)
    assert found.var[1] == pytest.approx(1 / (1 / (first + 0.5) + 1 / 0.7), rel=1e-14)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_real_is_born_through_what_holds_it_most_firmly(is_swapped):
    factors = [(hl.ConditionalQuadratic.square(-1e-15), ["x"]), (gaussian([3.0], 1.0), ["x"])]
    graph = hl.FactorGraph.build({"x": hl.real}, factors[::-1] if is_swapped else factors)

    found = hl.kalman_filter(graph, np.array([0]))

    assert found.mean[0] == pytest.approx(3.0, rel=1e-14)
    assert found.var[0] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_real_that_only_measurements_hold_begins_with_the_firmest(is_swapped):
    factors = [(linear([1.0], 1.0), ["p", "x"]), (linear([1.0], 4.0), ["q", "x"])]
    graph = hl.FactorGraph.build(
        dict.fromkeys("xpq", hl.real), factors[::-1] if is_swapped else factors
    ).observe({"p": 0.0, "q": 10.0})

    found = hl.kalman_filter(graph, np.zeros(3, dtype=int))

    assert (found.predicted_mean[0], found.predicted_var[0]) == (0.0, 1.0)
    assert found.predictions()["atom"].to_pylist() == ["q"]


def test_equally_firm_measurements_are_told_apart_by_what_they_say():
    factors = [(linear([1.0], 1.0), ["p", "x"]), (linear([1.0], 1.0), ["q", "x"])]

    found = [
        hl.kalman_filter(
            hl.FactorGraph.build(dict.fromkeys("xpq", hl.real), some).observe({"p": 0.0, "q": 5.0}),
            np.zeros(3, dtype=int),
        )
        for some in (factors, factors[::-1])
    ]

    assert found[0].predicted_mean[0] == found[1].predicted_mean[0]
    assert found[0].measured.tolist() == found[1].measured.tolist()


@pytest.mark.parametrize("are_measured", [False, True])
def test_reals_that_only_several_factors_hold_are_born_together(are_measured):
    names = ["x", "y", "next", "o", "p"]
    factors = [
        (linear([1.0, 1.0], 1.0), ["o", "x", "y"]),
        (linear([1.0, -1.0], 1.0), ["p", "x", "y"]),
        (linear([0.5, 0.2], 1.0), ["next", "x", "y"]),
    ]
    if not are_measured:
        factors += [(gaussian([3.0], 0.1), ["o"]), (gaussian([1.0], 0.1), ["p"])]
    graph = hl.FactorGraph.build(dict.fromkeys(names, hl.real), factors)
    graph = graph.observe({"o": 3.0, "p": 1.0}) if are_measured else graph

    found = hl.kalman_filter(graph, np.array([0, 0, 1, 0, 0]))

    exact = hl.infer(graph, hl.Exact())
    expected = [
        exact.marginal(name) for name in graph.variables.names.render(found.ids).to_pylist()
    ]
    assert np.allclose(found.mean, [float(d.mean) for d in expected], atol=1e-12)
    assert np.allclose(found.var, [float(d.var) for d in expected], rtol=1e-12)
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, abs=1e-12)
    assert not len(found.measured)


def test_rounding_that_shows_is_shown():
    graph = hl.FactorGraph.build({"x": hl.real}, [(gaussian([1e9], 1e-8), ["x"])])
    graph = graph.observe({"x": hl.Soft(1e9 + 0.01, 1e-8)})

    found = hl.kalman_filter(graph, np.array([0]))

    # The distance of 0.01 is known to 1e-7 of itself or so, and its square, over 2e-8, is 5000.
    assert 1e-3 < found.error[0] < 1.0
    assert f" ± {found.error.sum():.1g})" in repr(found)
