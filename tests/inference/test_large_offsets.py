"""Timestamps and other large numbers cost no digits, or the answer says that they do."""

from collections.abc import Callable

import numpy as np
import pytest

import hylift as hl
from hylift.inference.method import Method
from hylift.posterior import Categorical
from hylift.potentials.about import QuadraticAbout
from hylift.rewrite.centred import Beliefs, ByOrigin

METHODS = (
    hl.Exact(), hl.EP(), hl.SMC(), hl.Gibbs(), hl.BVI(3), hl.NPVI(2), hl.MeanField(),
    hl.NPVI(2, bound="tracey", joint=True), hl.EPBP(), hl.MiniBuckets(),
)  # fmt: skip
OFFSETS = (1.7e9, *(pytest.param(offset, marks=pytest.mark.slow) for offset in (1e8, 1e12)))


def readings(offset: float) -> hl.FactorGraph:
    model = hl.parse(f"""
        x: real
        y: real
        Late
        normal(x | {offset!r}, 1)
        -1 Late
        normal(y | x + 5 * Late, 1)
    """)
    return hl.ground(model, {"y": offset + 5})


def walk(offset: float) -> hl.FactorGraph:
    """A level a day, some of whose sensors are wrong; the last one is measured with an error."""
    model = hl.parse(f"""
        day = {{1, ..., 6}}
        level(day): real
        reading(day): real
        Faulty(day)
        normal(level(1) | {offset!r}, 9)
        normal(level(d + 1) | level(d), 1)
        -1 Faulty(d)
        normal(reading(d) | level(d) + 4 * Faulty(d), 0.25 + Faulty(d))
    """)
    seen = np.array([0.3, 1.1, 5.9, 1.6, 2.5])
    rows = [(str(day), offset + value) for day, value in enumerate(seen, start=1)]
    return hl.ground(model, {"reading": rows}).observe({"level(6)": hl.Soft(offset + 2.0, 0.5)})


@pytest.mark.parametrize(
    ("model", "offset"),
    [
        (readings, 1.7e9),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in ((readings, 1e8), (readings, 1e12), (walk, 1.7e9))
        ),
    ],
)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_an_offset_of_all_reals_changes_no_answer(
    method: Method, model: Callable[[float], hl.FactorGraph], offset: float
) -> None:
    near = hl.infer(model(0.0), method, check=False)

    far = hl.infer(model(offset), method, check=False)

    is_searched = method.name.startswith("BVI")  # which stops at another digit
    rounding = (1e-4 if is_searched else 1e-6) + 4 * float(np.spacing(offset))
    assert not any("Rounding" in note for note in far.solution.notes)
    if near.log_partition is not None:
        assert far.log_partition is not None
        assert far.log_partition.kind == near.log_partition.kind
        assert far.log_partition.value == pytest.approx(near.log_partition.value, abs=rounding)
    assert far.map().energy == pytest.approx(near.map().energy, abs=rounding)
    if near.all_marginals is None:
        return
    for atom in near.variables.names.render(np.flatnonzero(~near.observed)).to_pylist():
        here, there = near.marginal(atom), far.marginal(atom)
        if isinstance(here, Categorical):
            np.testing.assert_allclose(there.probs, here.probs, atol=rounding)
        else:
            assert there.mean - offset == pytest.approx(here.mean, abs=rounding)
            assert there.std == pytest.approx(here.std, abs=rounding)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.name.startswith("BVI") or m.name in ("Gibbs", "SMC")],
    ids=lambda method: method.name,
)  # fmt: skip
def test_draws_and_joints_are_where_the_reals_are(method: Method, offset: float) -> None:
    near, far = (hl.infer(readings(where), method, check=False, seed=3) for where in (0.0, offset))

    if near.draws is not None:
        moved = far.draws.values - np.array([offset, 0.0])
        np.testing.assert_allclose(moved, near.draws.values, atol=1e-6 + 4 * np.spacing(offset))
    else:
        values, height = far.mixture.mode()
        expected, expected_height = near.mixture.mode()
        np.testing.assert_allclose(values - [offset, 0.0], expected, atol=1e-3)
        assert height == pytest.approx(expected_height, abs=1e-3)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_digits_that_a_potential_has_lost_already_are_noted(method: Method) -> None:
    """Coefficients about 0, which the user has made."""
    link = hl.ConditionalQuadratic.switch(
        [hl.ConditionalQuadratic.gaussian([1.7e9 + late], [[1.0]]) for late in (0.0, 1.0)]
    )
    graph = hl.FactorGraph.build(
        {"Late": hl.boolean, "y": hl.real}, [(link, ["Late", "y"])]
    ).observe({"y": 1.7e9 + 1.0})

    found = hl.infer(graph, method)

    assert "Rounding may change" in " ".join(found.solution.notes)
    assert found.trust.verdict != "certified"
    log_z = found.log_partition
    truth = np.log(np.exp(-0.5) + 1.0) - 0.5 * np.log(2 * np.pi)
    assert log_z is None or log_z.kind == "estimate"
    assert log_z is None or log_z.lower <= truth <= log_z.upper


@pytest.mark.parametrize("method", [hl.EP(), hl.BP()], ids=lambda method: method.name)
@pytest.mark.parametrize("weight", [1e9, 1e12, 1e15])
def test_weights_that_cancel_leave_nothing_exact(method: Method, weight: float) -> None:
    model = hl.parse(f"A\nB\n{weight:.0f}  A ^ B\n-{weight:.0f}  B")

    found = hl.infer(hl.ground(model), method, check=False)

    log_z = found.log_partition
    assert log_z is not None
    assert log_z.kind == "estimate"
    assert abs(log_z.value - np.log(3.0)) <= log_z.error
    assert found.trust.verdict != "certified"


@pytest.mark.parametrize(
    "method", [hl.Exact(), hl.BVI(2), hl.Gibbs(), hl.SMC()], ids=lambda method: method.name
)
def test_an_offset_of_all_reals_changes_no_expected_count(method: Method) -> None:
    near, far = (hl.infer(walk(at), method, check=False, seed=3) for at in (0.0, 1.7e9))

    expected, found = (p.expected_counts()["expected"].to_numpy() for p in (near, far))

    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_draws_of_exact_answers_are_where_the_reals_are() -> None:
    near, far = (hl.infer(readings(at), hl.Exact()) for at in (0.0, 1.7e9))

    np.testing.assert_allclose(far.joint("x").mean - 1.7e9, near.joint("x").mean, atol=0.1)


def in_seconds(offset: float, scale: float) -> hl.FactorGraph:
    """A time that a state shifts by little, against how large its numbers are."""
    A = np.array([[[[-0.7]], [[-1.9]]]]) / scale**2
    b, c = np.array([[[0.16], [-0.24]]]) / scale, np.array([[0.46, 0.84]])
    about = QuadraticAbout(np.full((1, 2, 1), offset), A, b, c)
    return hl.FactorGraph.build({"a": hl.boolean, "t": hl.real}, [(about, ["a", "t"])])


@pytest.mark.parametrize(("offset", "scale"), [(-1.7e9, 9030.0), (1e12, 3e6), (1e6, 10.0)])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_small_differences_between_large_numbers_are_kept(
    method: Method, offset: float, scale: float
) -> None:
    near, far = (
        hl.infer(in_seconds(*units), method, check=False) for units in ((0.0, 1.0), (offset, scale))
    )

    if near.log_partition is not None:
        expected = near.log_partition.value + np.log(scale)
        assert far.log_partition is not None
        assert far.log_partition.value == pytest.approx(expected, abs=1e-6)
    if near.all_marginals is not None:
        expected = near.marginal("a").prob("true")
        assert far.marginal("a").prob("true") == pytest.approx(expected, abs=1e-6)


def clocks(now: float) -> hl.FactorGraph:
    """Reals of very different sizes in one rule: a moment, and how far clocks are off."""
    model = hl.parse(f"""
        Off(clock)
        drift(clock): real
        at: real
        stamp(clock): real
        -2 Off(x)
        normal(drift(x) | 0, 1 + 10000*Off(x))
        normal(at | {now!r}, 100000000)
        normal(stamp(x) | at + drift(x), 0.25)
    """)
    seen = {"a": 1.25, "b": -0.25, "c": 160.0, "d": 0.5}
    return hl.ground(model, {"stamp": [(name, now + off) for name, off in seen.items()]})


@pytest.mark.parametrize("now", [1.7e9, 1e12])
@pytest.mark.parametrize("exact", [True, False])
def test_a_small_real_beside_a_large_one_keeps_its_digits(exact: bool, now: float) -> None:
    near = hl.infer(clocks(0.0))

    far = hl.infer(clocks(now), exact=exact)

    assert far.trust.verdict != "doubtful"
    for clock in "abcd":
        truth, found = (p.marginal(f"Off({clock})").prob("true") for p in (near, far))
        assert found == pytest.approx(truth, abs=0.005)
        truth, found = (p.marginal(f"drift({clock})") for p in (near, far))
        assert found.mean == pytest.approx(truth.mean, abs=0.05 * truth.std)
    assert float(far.log_partition) == pytest.approx(float(near.log_partition), abs=1e-5)


@pytest.mark.parametrize("method", [None, hl.Exact()])
def test_best_assignments_that_have_lost_their_digits_are_not_exact(method: Method | None) -> None:
    """Reals with bounds keep the origin 0."""
    model = hl.parse("""
        x: real[1699999950.0, 1700000050.0]
        y: real
        B
        normal(x | 1700000000.0 + 2*B, 1)
        normal(y | x + B, 1)
        0.5 B
    """)

    posterior = hl.infer(hl.ground(model, {"y": 1.7e9 + 4}), method, tasks="map")

    assert posterior.map().kind == "estimate"
    assert posterior.map().gap > 1
    assert posterior.trust.verdict != "certified"


@pytest.mark.parametrize("rule", ["normal(x | B, 1e-6)", "0.1 B * (x > 0; slope=2)"])
def test_rounding_counts_for_states_however_they_meet_reals(rule: str) -> None:
    graph = hl.ground(hl.parse(f"x: real\nB\nnormal(x | 0, 1e-6)\n1 B\n{rule}"))
    size = np.array([0.0 if states else 1e3 for states in graph.variables.num_states])
    first = np.concatenate([[0], np.cumsum(graph.variables.num_states)[:-1]])
    beliefs = Beliefs(np.full(2, 0.5), first, size)

    lost = ByOrigin.of(graph).lost(np.zeros(2), beliefs, np.zeros(2, dtype=np.int32))

    assert lost.marginal > 1e-6
