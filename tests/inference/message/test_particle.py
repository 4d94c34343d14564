"""Expectation particle belief propagation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from answers import infer
from experiments.instances import kalman, rgm, toy
from hylift.errors import HyliftError, ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph, Soft, Variables, boolean, categorical, interval, real
from hylift.grounding import ground
from hylift.inference import Exact
from hylift.inference.message.particle import EPBP
from hylift.language import parse
from hylift.language.report import ModelWarning
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table
from random_models import forests, symmetric_graphs
from zoo import (
    ZOO,
    ZooModel,
    coupled_bounded_reals,
    gaussian_chain,
    relational_gaussian_model,
    switching_regime,
    toy_hybrid_mln,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*hard rules say that exactly one")


def beliefs(posterior: Posterior) -> np.ndarray:
    """Probabilities, means and variances of all variables."""
    table = posterior.marginals_of(np.arange(len(posterior.variables)))
    probs = [np.asarray(p) for p in table["probs"].to_pylist() if p is not None]
    mean, std = (np.asarray(table[name].to_pylist(), dtype=float) for name in ("mean", "std"))
    return np.nan_to_num(np.concatenate([*probs, mean, std**2]))


def log_z(posterior: Posterior) -> float:
    assert posterior.log_partition is not None
    assert posterior.log_partition.kind == "estimate"
    return posterior.log_partition.value


@pytest.mark.parametrize("model", [m for m in ZOO if "multiplicity" in m.tags], ids=str)
def test_counted_factors_are_copied_factors(model: ZooModel) -> None:
    (copied,) = (m for m in ZOO if str(m) == "copied_factors")

    one, three = (infer(m.graph(), EPBP(20), lift="none") for m in (model, copied))

    np.testing.assert_allclose(beliefs(one), beliefs(three), atol=1e-10)
    assert log_z(one) == pytest.approx(log_z(three), abs=1e-10)


@given(forests("discrete", max_variables=7, hard=True))
def test_it_is_exact_on_discrete_forests(graph: FactorGraph) -> None:
    try:
        exact = infer(graph, Exact())
    except ImpossibleEvidenceError:
        with pytest.raises(ImpossibleEvidenceError):
            infer(graph, EPBP())
        return

    found = infer(graph, EPBP())

    np.testing.assert_allclose(beliefs(found), beliefs(exact), atol=1e-9)
    assert log_z(found) == pytest.approx(exact.log_partition.value, abs=1e-9)


@settings(max_examples=40)
@given(forests("hybrid", max_variables=5, bounded=True))
def test_it_is_nearly_exact_on_hybrid_forests(graph: FactorGraph) -> None:
    exact = infer(graph, Exact())

    found = infer(graph, EPBP(60))

    # Bounds make errors of 1/N²; couplings may be strong.
    assert exact.compare(found).max_kl < 1e-4
    assert log_z(found) == pytest.approx(exact.log_partition.value, abs=0.02)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize(
    "graph", [toy_hybrid_mln, relational_gaussian_model, switching_regime], ids=lambda g: g.__name__
)
def test_lifted_steps_are_ground_steps(graph: Any, num_steps: int) -> None:
    method = EPBP(20, max_steps=num_steps)

    lifted, ground = (infer(graph(), method, lift=how, seed=3) for how in ("exact", "none"))

    np.testing.assert_allclose(beliefs(lifted), beliefs(ground), rtol=1e-10, atol=1e-10)
    assert log_z(lifted) == pytest.approx(log_z(ground), rel=1e-10)
    np.testing.assert_allclose(
        lifted.solution.history.objective, ground.solution.history.objective, atol=1e-10
    )


@settings(max_examples=60)
@given(symmetric_graphs(max_copies=4, max_relations=3), st.sampled_from([1, 2, 5]))
def test_lifted_steps_of_random_graphs_are_ground_steps(graph: FactorGraph, num_steps: int) -> None:
    method = EPBP(8, max_steps=num_steps, damping=0.1)
    try:
        ground = infer(graph, method, lift="none")
    except HyliftError:
        assume(False)

    lifted = infer(graph, method, lift="exact")

    np.testing.assert_allclose(beliefs(lifted), beliefs(ground), rtol=1e-10, atol=1e-10)
    assert log_z(lifted) == pytest.approx(log_z(ground), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("num_particles", "l1", "kl"), [(20, 5.2e-2, 0.47), (200, 5.2e-3, 0.047)])
def test_the_rgm_is_better_than_in_the_paper(
    data_dir: Path, num_particles: int, l1: float, kl: float
) -> None:
    graph = rgm.published(data_dir, 0).graph
    exact = infer(graph, Exact())

    # Few steps are enough, since proposals start near.
    found = exact.compare(infer(graph, EPBP(num_particles, max_steps=12)))

    assert found.mean_l1 < l1 / 500
    assert found.mean_kl < kl / 500


def test_the_toy_is_nearly_exact() -> None:
    graph = toy.instance().graph
    places = [n for n in graph.variables.names.render().to_pylist() if n.startswith("pos")]

    found = infer(graph, Exact()).compare(infer(graph, EPBP(20)), places)

    # The paper's best mean is 0.004, of lifted BVI; what is left is Bethe's approximation.
    assert found.mean_kl < 1e-5


@pytest.mark.parametrize(("shape", "bound"), [("tree", 1e-9), ("cycle", 1e-8)])
def test_kalman_filters_have_exact_means(data_dir: Path, shape: kalman.Shape, bound: float) -> None:
    graph = kalman.published(data_dir, shape, 0, "paper").graph

    found = infer(graph, Exact()).compare(infer(graph, EPBP(20)))

    # The paper has 0.18 and 0.34 for its means.
    assert found.mean_l1 < bound


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("place", [0.0, 1e3, -1e5])
def test_neither_scale_nor_place_matters(scale: float, place: float) -> None:
    names = [f"x{i}" for i in range(4)]
    weight, target = 0.5 / scale**2, place * scale
    links = ConditionalQuadratic.squared_distance(weight, [1, -1])
    switch = ConditionalQuadratic.gaussian(
        [[target], [target + 3 * scale]], [[[scale**2]], [[2 * scale**2]]]
    )
    graph = FactorGraph.build(
        dict.fromkeys(names, real) | {"b": boolean},
        [
            (ConditionalQuadratic.squared_distance(weight, [1.0], target), ["x0"]),
            (links, [["x0", "x1"], ["x1", "x2"], ["x2", "x3"]]),
            (switch, ["b", "x3"]),
        ],
    )

    found = infer(graph, Exact()).compare(infer(graph, EPBP(30)))

    # At 1e5 standard deviations from 0 the parameters themselves are rounded to 1e-6.
    assert found.max_kl < 1e-8


def test_no_belief_reaches_beyond_bounds() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": real},
        [
            (ConditionalQuadratic.squared_distance(1.0, [1, -1]), ["x", "y"]),
            (ConditionalQuadratic.gaussian([300.0], [[1.0]]), ["y"]),
        ],
    )
    exact = infer(graph, Exact())

    found = infer(graph, EPBP(50))

    # All mass is at the upper bound, a hundred times narrower than the interval.
    assert exact.compare(found).max_kl < 1e-8
    assert found.marginal("x").low >= 0.0
    assert found.marginal("x").high <= 1.0


def test_soft_evidence_moves_beliefs() -> None:
    graph = gaussian_chain().observe({"x3": Soft(-4.0, 0.1), "x5": 2.0})

    found = infer(graph, Exact()).compare(infer(graph, EPBP(50)))

    assert found.max_kl < 1e-7


def test_functions_of_reals_and_states_in_one_factor_are_summed() -> None:
    """A function that is a quadratic in disguise gives the same messages."""

    def pull(s: Any, x: Any, y: Any, weight: Any) -> Any:
        return -weight * (x - y - s) ** 2

    quadratic = ConditionalQuadratic.switch(
        [ConditionalQuadratic.squared_distance(0.4, [1, -1], float(s)) for s in range(3)]
    )
    variables = {"s": categorical(3), "x": interval(-2, 3), "y": real}
    own = (ConditionalQuadratic.square(-0.3), ["y"])

    one, other = (
        infer(FactorGraph.build(variables, [(potential, ["s", "x", "y"]), own]), EPBP(20))
        for potential in (quadratic, Function(pull, 1, 2, np.array([[0.4]])))
    )

    np.testing.assert_allclose(beliefs(one), beliefs(other), atol=1e-6)  # after other starts
    assert log_z(one) == pytest.approx(log_z(other), abs=1e-3)


def test_slots_that_make_no_difference_are_left_out() -> None:
    """Of two reals that only a state couples, particles are not combined."""
    place = ConditionalQuadratic.switch(
        [
            ConditionalQuadratic.squared_distance(0.2, [0, 1], 2),
            ConditionalQuadratic.squared_distance(0.2, [1, 0], -7),
        ]
    )
    graph = FactorGraph.build(
        {"on": boolean, "x": interval(-15, 15), "y": interval(-15, 15)},
        [(place, ["on", "x", "y"])],
    )

    found = infer(graph, EPBP(10_000, max_steps=2))

    assert found.solution.result == "max_steps"


@pytest.mark.usefixtures("threads")
def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads() -> None:
    graph, answers = relational_gaussian_model(40, 5), []

    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        answers.append(beliefs(infer(graph, EPBP(30), lift="none", seed=5)))

    np.testing.assert_array_equal(*answers)


def test_other_seeds_give_nearly_the_same_answer() -> None:
    one, other = (beliefs(infer(coupled_bounded_reals(), EPBP(50), seed=s)) for s in (0, 1))

    assert (one != other).any()
    np.testing.assert_allclose(one, other, atol=1e-3)  # of quadrature at the bounds


def test_notes_tell_of_particles_that_are_too_far_apart() -> None:
    chain = FactorGraph.build(
        {"x": real, "y": real},
        [
            (ConditionalQuadratic.square(-0.5), [["x"], ["y"]]),
            (ConditionalQuadratic.squared_distance(1e4, [1, -1]), ["x", "y"]),
        ],
    )

    notes = infer(chain, EPBP(10)).solution.notes

    assert notes[0].startswith("Each real has 10 particles; ")
    assert notes[-1].endswith("Use more particles.")


def test_steps_end_when_they_are_used_up_or_stopped() -> None:
    short = infer(switching_regime(), EPBP(20, max_steps=3))
    stopped = infer(switching_regime(), EPBP(20), callback=lambda step: step.step == 4)

    assert (short.solution.result, short.solution.steps) == ("max_steps", 3)
    assert (stopped.solution.result, stopped.solution.steps) == ("stopped", 4)


def test_nothing_to_infer_is_an_answer() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 1.0]), ["a"])])

    found = infer(graph.observe({"a": True}), EPBP())

    assert log_z(found) == pytest.approx(1.0)
    assert infer(FactorGraph(Variables.named({}), ()), EPBP()).solution.result == "converged"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"particles": 7}, "particles must be an integer of at least 8, not 7"),
        ({"damping": 1.0}, "damping must be the share"),
        ({"max_steps": 0}, "max_steps must be an integer of at least 1, not 0"),
        ({"tolerance": 0}, "tolerance must be a number between 0 and 1, not 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        EPBP(**settings)


def test_what_it_cannot_do_is_said() -> None:
    many = ConditionalQuadratic.squared_distance(1.0, [1.0] * 5)
    names = [f"x{i}" for i in range(5)]
    square = (ConditionalQuadratic.square(-1.0), [[name] for name in names])
    large = FactorGraph.build(dict.fromkeys(names, real), [(many, names), square])
    wave = Function(lambda x: -np.abs(x), 0, 1)
    loose = FactorGraph.build({"x": real}, [(wave, ["x"])])

    with pytest.raises(UnsupportedError, match="use fewer particles or factors with fewer"):
        infer(large, EPBP(50))
    with pytest.raises(UnsupportedError, match="EPBP cannot choose first particles for 'x'"):
        infer(loose, EPBP())
    with pytest.raises(UnsupportedError, match="use lift='exact' or lift='none'"):
        infer(gaussian_chain(), EPBP(), lift="coarse-to-fine")


@pytest.mark.parametrize(
    ("means", "variances"),
    [([[-100.0], [100.0]], [[[1.0]], [[1.0]]]), ([[3.0], [0.0]], [[[1e-8]], [[1.0]]])],
    ids=["far apart", "one needle"],
)
def test_modes_that_particles_may_miss_are_told_of(means, variances) -> None:
    graph = FactorGraph.build(
        {"b": boolean, "x": real},
        [(ConditionalQuadratic.gaussian(means, variances), ["b", "x"])],
    )

    found = infer(graph, EPBP(50))

    assert "may have been missed" in " ".join(found.solution.notes)


def test_a_real_that_varies_by_less_than_its_digits_is_refused() -> None:
    graph = FactorGraph.build(
        {"x": interval(1e8, 1e8 + 1), "y": real},
        [
            (ConditionalQuadratic.squared_distance(0.5, [1, -1]), ["x", "y"]),
            (ConditionalQuadratic.square(-1.0), ["y"]),
        ],
    )

    with pytest.raises(UnsupportedError, match=r"'x' varies by less than floating-point numbers"):
        infer(graph, EPBP(20))


def test_a_budget_that_is_used_up_leaves_marginals_all_the_same() -> None:
    found = infer(relational_gaussian_model(40, 5), EPBP(50), lift="none", seconds=1e-6)

    assert found.solution.result == "out_of_time"
    assert found.solution.steps == 1
    assert np.isfinite(found.marginal("recession").mean)


def test_a_small_mode_far_out_keeps_its_weight() -> None:
    """Six standard deviations of the whole do not reach it."""
    means, variances = [[0.0], [12.0]], [[[0.25]], [[0.25]]]
    graph = FactorGraph.build(
        {"b": boolean, "x": real},
        [
            (ConditionalQuadratic.gaussian(means, variances), ["b", "x"]),
            (Table.shared([0.0, -6.0]), ["b"]),
        ],
    )

    found = infer(graph, EPBP(100))

    exact = infer(graph, Exact())
    assert found.marginal("b").prob("true") == pytest.approx(
        exact.marginal("b").prob("true"),
        rel=1e-2,  # sums over strata far out are that rough
    )
    assert exact.compare(found).max_kl < 1e-3


def test_messages_that_take_long_are_damped() -> None:
    rng = np.random.default_rng(8)
    names = [f"x{i}" for i in range(10)]
    pairs = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
    links = [(Table.shared(rng.choice([-4.0, 4.0]) * np.eye(2)), pair) for pair in pairs]
    own = [(Table.shared(rng.normal(size=2)), [name]) for name in names]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), links + own)

    patient, stubborn = infer(graph, EPBP()), infer(graph, EPBP(damping=0.0))

    assert patient.solution.result == "converged"
    assert stubborn.solution.result == "max_steps"
    assert "did not converge" in " ".join(stubborn.solution.notes)


def test_functions_of_reals_whose_densities_are_not_all_laid_out_anew() -> None:
    """A density that is settled has no further targets; its neighbours in the group have."""
    values = [19.0, 20.0, 35.0, 21.0, 23.0, 22.0]
    model = parse("""
        room = {0, ..., 5}
        temperature(room): real[0, 40]
        reading(room): real[0, 40]
        Broken(room)
        -1.5  Broken(r)
        -0.3  (temperature(r) - temperature(r+1))^2
        -1    log(1 + 4*(reading(r) - temperature(r))^2) * !Broken(r)
        -0.01 (temperature(r) - 20)^2
    """)
    graph = ground(model, {f"reading({r})": value for r, value in enumerate(values)})

    found, exact = infer(graph, EPBP(50)), infer(graph, Exact())

    # Two factors about one temperature and one broken thermometer are a loop, if a weak one.
    assert exact.compare(found).max_kl < 1e-3


PUMPS = """
    line = {0, ..., 3}
    pump = {A, B, C}
    On(line, pump)
    flow(line): real
    On(l, A) v On(l, B) v On(l, C).
    !(On(l, p) ^ On(l, q))  where p != q.
    0.3   On(l, A)
    5     On(l, p) <=> On(l+1, p)
    normal(flow(l) | 4*On(l, A) + 2*On(l, B), 1)
    -0.5  (flow(l) - flow(l+1))^2
"""


def pumps() -> FactorGraph:
    """Hard rules that tie the pumps of a line, which the language warns of."""
    with pytest.warns(ModelWarning, match="exactly one 'pump' holds"):
        return ground(parse(PUMPS), {"flow(0)": Soft(2.0, 4.0)})


@pytest.mark.parametrize("damping", [None, 0.5])
def test_messages_that_swings_have_made_large_begin_anew_when_they_are_damped(
    damping: float | None,
) -> None:
    graph = pumps()

    found, exact = infer(graph, EPBP(damping=damping)), infer(graph, Exact())

    assert found.solution.result == "converged"
    assert exact.log_partition is not None
    # Bethe's approximation counts one kind of pumps for all lines, which has half of the mass.
    assert log_z(found) == pytest.approx(exact.log_partition.value, abs=0.7)


def test_messages_that_go_on_swinging_end_without_a_warning() -> None:
    graph = pumps()

    found = infer(graph, EPBP(damping=0.0, max_steps=300), rewrite=False)

    assert found.solution.result == "max_steps"
    assert np.isfinite(log_z(found))
    assert any("did not converge" in note for note in found.solution.notes)


def test_a_switch_of_one_state_is_no_switch():
    """Its quadratic has one joint state, and yet a discrete slot."""
    square = ConditionalQuadratic.square(-0.5)
    graph = FactorGraph.build(
        {"s": categorical(1), "x": real},
        [(ConditionalQuadratic.switch([square]), ["s", "x"])],
    )

    marginals = infer(graph, EPBP(20)).marginals("x").to_pylist()

    assert marginals[0]["std"] == pytest.approx(1.0, abs=1e-3)
