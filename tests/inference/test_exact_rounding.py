"""The stated error of an exact log Z covers what rounding does to it."""

import numpy as np
import pytest

import hylift as hl

WELLS = """
    well = {0, ..., 11}
    month = {0, ..., 19}
    x(well, month): real
    trend(month): real
    o(well, month): real

    normal(x(w, t) | 0, 9)  where t = 0
    normal(x(w, t+1) | 0.8 * x(w, t), 4)
    normal(trend(t) | 0, 1)  where t = 0
    normal(trend(t+1) | 0.9 * trend(t), 0.3)
    normal(o(w, t) | x(w, t) + trend(t), VAR)
"""


def covariance(num_wells: int, num_months: int, var: float) -> np.ndarray:
    """Of all o in WELLS, wells first."""

    def chain(first, share, noise):
        noises = np.full(num_months, noise, dtype=np.longdouble)
        noises[0] = first
        weights = np.zeros((num_months, num_months), dtype=np.longdouble)
        for t in range(num_months):
            weights[t] = weights[t - 1] * np.longdouble(share) if t else 0
            weights[t, t] = 1
        return (weights * noises) @ weights.T

    own, shared = chain(9.0, 0.8, 4.0), chain(1.0, 0.9, 0.3)
    whole = np.kron(np.eye(num_wells, dtype=np.longdouble), own)
    whole += np.kron(np.ones((num_wells, num_wells), dtype=np.longdouble), shared)
    return whole + np.longdouble(var) * np.eye(len(whole), dtype=np.longdouble)


def log_density(values: np.ndarray, cov: np.ndarray) -> float:
    """log N(values; 0, cov), by elimination in long doubles."""
    left, rest = cov.copy(), values.astype(np.longdouble)
    total = np.longdouble(0)
    for k in range(len(rest)):
        total -= (rest[k] ** 2 / left[k, k] + np.log(2 * np.pi * left[k, k])) / 2
        share = left[k + 1 :, k] / left[k, k]
        rest[k + 1 :] -= share * rest[k]
        left[k + 1 :, k + 1 :] -= share[:, None] * left[k, k + 1 :]
    return float(total)


@pytest.mark.parametrize("var", [1.0, 1e-4, 1e-7])
def test_the_stated_error_covers_measurements_whose_squares_cancel(var):
    graph = hl.ground(hl.parse(WELLS.replace("VAR", f"{var!r}")))
    cov = covariance(12, 20, var)
    rng = np.random.default_rng(3)
    values = np.linalg.cholesky(cov.astype(np.float64)) @ rng.normal(size=len(cov))
    pairs = [f"o({w},{t})" for w in range(12) for t in range(20)]
    graph = graph.observe(dict(zip(pairs, values.tolist(), strict=True)))

    found = hl.infer(graph, hl.Exact(), tasks=["logz"]).log_partition

    true_error = abs(found.value - log_density(values, cov))
    size = (values**2).sum() / var
    assert true_error <= found.error
    # A few units in the last place of the terms that cancel, and not a hundred of them.
    assert true_error <= 4 * np.finfo(float).eps * size + 1e-11
    assert found.error <= 20 * np.finfo(float).eps * size + 1e-9


def test_the_stated_error_covers_observed_reals_that_cancel_in_a_factor():
    model = hl.parse("""
        place = {0, ..., 99}
        x(place): real
        base(place): real
        o(place): real
        normal(x(p) | 0, 2)
        normal(o(p) | x(p) + base(p), 0.001)
    """)
    rng = np.random.default_rng(0)
    base = 1e5 + rng.random(100)
    o = base + rng.normal(scale=1.4, size=100)
    seen = {f"base({p})": v for p, v in enumerate(base.tolist())}
    seen |= {f"o({p})": v for p, v in enumerate(o.tolist())}

    found = hl.infer(hl.ground(model).observe(seen), hl.Exact()).log_partition

    difference, var = o.astype(np.longdouble) - base, np.longdouble(2) + np.longdouble(0.001)
    expected = (-(difference**2) / var - np.log(2 * np.pi * var)).sum() / 2
    assert abs(found.value - float(expected)) <= found.error
    # As a share of the squares of all that was observed.
    assert found.error <= 1e-15 * 100 * 1e10 / 0.001


PLACES = """
    place = {0, ..., 99}
    x(place): real
    normal(x(p) | 0, 1e6)
"""
MEASURED = """
    r: real[0, inf]
    o(place): real
    normal(o(p) | x(p), r())
"""


@pytest.mark.parametrize("soft", [False, True])
def test_precise_functions_and_soft_evidence_that_become_quadratic_cost_no_digits(soft):
    values = np.random.default_rng(0).normal(scale=1e3, size=100)
    if soft:
        graph = hl.ground(hl.parse(PLACES))
        seen = {f"x({p})": hl.Soft(v, 1e-6) for p, v in enumerate(values.tolist())}
    else:
        graph = hl.ground(hl.parse(PLACES + MEASURED)).observe({"r": 1e-6})
        seen = {f"o({p})": v for p, v in enumerate(values.tolist())}

    found = hl.infer(graph.observe(seen), hl.Exact()).log_partition

    var = np.longdouble(1e6) + np.longdouble(1e-6)
    expected = (-(values.astype(np.longdouble) ** 2) / var - np.log(2 * np.pi * var)).sum() / 2
    assert abs(found.value - float(expected)) <= found.error
    assert found.kind == "exact"


@pytest.mark.parametrize("reading", [1e2, 1e3, 2e4, 1e5])
def test_a_state_that_is_out_of_the_question_takes_no_digits_from_others(reading):
    """In one state the reading is exact to 1/4, in the other to 30: the first has e^-3e9."""
    precise = hl.ConditionalQuadratic.switch(
        [hl.ConditionalQuadratic.linear_gaussian([1.0], var) for var in (1 / 16, 1e3)]
    )
    prior = hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0)
    graph = hl.FactorGraph.build(
        {"d": hl.boolean, "x": hl.real, "y": hl.real, "m": hl.real},
        [(precise, ["d", "y", "x"]), (prior, ["x", "m"])],
    ).observe({"y": reading, "m": 0.25})

    found = hl.infer(graph, hl.Exact()).log_partition

    var = 1.0 + np.array([1 / 16, 1e3])
    log_density = -0.5 * (reading - 0.25) ** 2 / var - 0.5 * np.log(2 * np.pi * var)
    expected = np.logaddexp(*log_density)
    assert found.value == pytest.approx(expected, abs=1e-10 + 1e-15 * abs(expected))
    assert abs(found.value - expected) <= found.error + 4e-16 * abs(expected)
