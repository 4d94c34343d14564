"""What Gaussian belief propagation says of its answers, and what it refuses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest

from answers import log_z
from hylift.errors import HyliftError, ImpossibleEvidenceError, ModelError, UnsupportedError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.inference.message.gaussian import GaBP
from hylift.inference.method import Step
from hylift.potentials import ConditionalQuadratic, Function
from inference.message.gaussian_models import ALL, all_alike, moments, with_chord
from zoo import gaussian_chain, gaussian_loop, relational_gaussian_model

NOT_SUMMABLE = (
    "The model is not walk-summable (spectral radius {} >= 1): Gaussian BP may diverge, and where "
    "it converges its means are exact but its variances are not."
)


def test_a_model_that_is_not_walk_summable_may_converge() -> None:
    graph = with_chord(0.395)
    exact = infer(graph, Exact())

    found = infer(graph, GaBP())

    assert found.solution.result == "converged"
    assert found.solution.notes == (NOT_SUMMABLE.format("1.01"),)
    np.testing.assert_allclose(moments(found)[0], moments(exact)[0], atol=1e-8)
    assert (moments(found)[1] > 1.3 * moments(exact)[1]).all()


def test_a_precision_that_is_lost_is_reported() -> None:
    found = infer(with_chord(0.45), GaBP(), tasks=ALL)

    assert found.solution.result == "diverged"
    assert found.solution.notes == (
        NOT_SUMMABLE.format("1.15"),
        "Gaussian BP diverged after step 2: the precision of some belief is no longer positive. "
        "The answer is that of step 2: do not rely on it. Damping may help; Exact and BVI do not "
        "diverge.",
    )
    assert (moments(found)[1] > 0).all()
    assert np.isfinite(log_z(found))
    exact = infer(with_chord(0.45), Exact(), tasks=ALL)
    assert found.assignment is not None
    assert exact.assignment is not None
    assert found.assignment.energy == pytest.approx(exact.assignment.energy, rel=1e-9)


def test_messages_that_grow_are_reported() -> None:
    found = infer(all_alike(6, 0.24), GaBP(damping=0.0))

    assert found.solution.result == "diverged"
    assert found.solution.steps < 100
    assert found.solution.notes[0] == NOT_SUMMABLE.format("1.20")
    assert found.solution.notes[1].endswith(
        ": messages grow without end. The answer is that of each real by itself, with all others "
        "at 0: do not rely on it. Damping may help; Exact and BVI do not diverge."
    )
    mean, var = moments(found)
    np.testing.assert_allclose(mean, np.arange(6))
    np.testing.assert_allclose(var, 1)


@pytest.mark.parametrize("damping", [None, 0.5])
def test_messages_that_swing_are_damped(damping: float | None) -> None:
    graph = all_alike(6, 0.24)
    exact = infer(graph, Exact())

    found = infer(graph, GaBP(damping=damping))

    assert found.solution.result == "converged"
    np.testing.assert_allclose(moments(found)[0], moments(exact)[0], atol=1e-8)


def test_messages_that_come_closer_are_not_damped() -> None:
    graph = relational_gaussian_model()

    found, undamped = infer(graph, GaBP()), infer(graph, GaBP(damping=0.0))

    assert found.solution.steps == undamped.solution.steps
    np.testing.assert_array_equal(moments(found), moments(undamped))


def test_a_chain_is_not_damped_however_long_it_is() -> None:
    size = 60
    names = [f"x{i}" for i in range(size)]
    links = [
        (ConditionalQuadratic.squared_distance(0.5, [1, -1], 0.0), [a, b])
        for a, b in pairwise(names)
    ]
    graph = FactorGraph.build(
        dict.fromkeys(names, real), [*links, (ConditionalQuadratic.square(-0.5), [names[0]])]
    )

    found = infer(graph, GaBP())

    assert found.solution.result == "converged"
    assert found.solution.steps <= size + 1
    assert found.log_partition is not None
    assert found.log_partition.kind == "exact"


@pytest.mark.parametrize("stop", [15, 40])
def test_a_run_that_is_taken_up_is_damped_as_if_it_had_not_been_left(
    tmp_path: Path, stop: int
) -> None:
    graph, path = all_alike(6, 0.24), tmp_path / "run.npz"
    whole = infer(graph, GaBP())

    infer(graph, GaBP(), checkpoint=path, callback=lambda step: step.step == stop)
    again = infer(graph, GaBP(), checkpoint=path)

    assert again.solution.steps == whole.solution.steps
    np.testing.assert_array_equal(moments(again), moments(whole))


@pytest.mark.usefixtures("threads")
def test_the_answer_is_the_same_on_any_number_of_threads() -> None:
    size, rng = 150_000, np.random.default_rng(0)
    place = np.arange(size, dtype=np.int32)
    links = np.stack([place[:-1], place[1:]], axis=1)
    far = np.stack([place[:-200], place[100:-100], place[200:]], axis=1)
    groups = (
        FactorGroup(
            ConditionalQuadratic(
                np.full((size, 1, 1), -1.0), rng.normal(size=(size, 1)), np.zeros(size)
            ),
            place[:, None],
        ),
        FactorGroup(ConditionalQuadratic.product(0.3), links),
        FactorGroup(ConditionalQuadratic.squared_distance(0.1, [1, 1, 1]), far),
    )
    graph = FactorGraph(Variables.uniform(real, size), groups)

    found = []
    for count in (1, 2):
        numba.set_num_threads(count)
        found.append(infer(graph, GaBP(max_steps=4), lift="none"))

    np.testing.assert_array_equal(moments(found[0]), moments(found[1]))
    assert log_z(found[0]) == log_z(found[1])
    one, two = (posterior.solution.history for posterior in found)
    np.testing.assert_array_equal(one.objective, two.objective)


def test_a_callback_follows_and_stops_it() -> None:
    told: list[Step] = []

    def stop_after_three(step: Step) -> bool:
        told.append(step)
        return step.step == 3

    found = infer(gaussian_loop(), GaBP(), callback=stop_after_three)

    assert found.solution.result == "stopped"
    assert found.solution.steps == 3
    assert found.solution.history is not None
    assert [step.objective for step in told] == found.solution.history.objective.tolist()
    assert (np.diff(found.solution.history.objective) < 0).all()


def test_it_stops_in_time_and_says_where_it_is() -> None:
    said: list[str] = []

    found = infer(
        gaussian_loop(), GaBP(), seconds=1e-9, progress=lambda share, what: said.append(what)
    )

    assert found.solution.result == "out_of_time"
    assert found.solution.steps == 1
    assert said[0].startswith("passing messages: largest change ")


def test_too_few_steps_are_reported() -> None:
    found = infer(gaussian_chain(), GaBP(max_steps=2))

    assert found.solution.result == "max_steps"
    assert found.log_partition is not None
    assert found.log_partition.kind == "estimate"
    assert found.solution.notes == (
        "Messages did not converge: more steps, or some damping, may help.",
    )


def test_bounds_that_matter_are_reported() -> None:
    graph = FactorGraph.build(
        {"x": interval(-0.5, 2.0), "y": real},
        [
            (ConditionalQuadratic.gaussian([0.3], [[1.0]]), ["x"]),
            (ConditionalQuadratic.linear_gaussian([1.0], 1.0), ["y", "x"]),
        ],
    )

    found = infer(graph, GaBP())

    assert found.solution.notes == (
        "GaBP ignores bounds, and 0.26 of the mass of 'x' lies beyond its own: marginals and log Z "
        "are estimates. Exact, EPBP and BVI respect bounds.",
    )
    assert found.log_partition is not None
    assert found.log_partition.kind == "estimate"
    assert found.solution.result == "converged"


SQUARE = ConditionalQuadratic.square(-1.0)
HARD = ConditionalQuadratic.shared([[[-1.0]], [[-2.0]]], [[0.0], [0.0]], [0.0, -np.inf])
WAVE = Function(lambda x, y: np.cos(x - y), 0, 2)


@pytest.mark.parametrize(
    ("variables", "factors", "error", "text"),
    [
        (
            {"x": real, "b": boolean},
            [(SQUARE.times([1, 2]), ["b", "x"])],
            UnsupportedError,
            "GaBP is for reals, and 'b' is discrete: use BP where all variables are discrete, and "
            "else EPBP or BVI",
        ),
        (
            {"x": real, "y": real},
            [(SQUARE, [["x"], ["y"]]), (WAVE, ["x", "y"])],
            UnsupportedError,
            "factor 0 of group 'factors 1' is a function of 'x': GaBP needs quadratics. Use EPBP "
            "or BVI",
        ),
        (
            {"x": interval(0, 1)},
            [],
            UnsupportedError,
            "GaBP ignores bounds, and without them the density is improper in 'x': add a "
            "rule such as '-0.01 x^2', or use Exact, EPBP or BVI",
        ),
        (
            {"x": real, "y": real},
            [(SQUARE, [["x"], ["y"]]), (ConditionalQuadratic.product(3.0), ["x", "y"])],
            ModelError,
            "the density is improper in 'x': give it bounds or add a rule such as '-0.01 x^2'",
        ),
        (
            {"x": real, "y": real},
            [(SQUARE, ["y"])],
            ModelError,
            "the density is improper in 'x': give it bounds or add a rule such as '-0.01 x^2'",
        ),
    ],
    ids=["discrete", "function", "held by bounds", "rises", "not held"],
)
def test_it_says_what_it_cannot_do(
    variables: dict, factors: list, error: type[HyliftError], text: str
) -> None:
    graph = FactorGraph.build(variables, factors)

    with pytest.raises(error) as raised:
        infer(graph, GaBP())

    assert str(raised.value) == text


def test_evidence_that_breaks_a_hard_constraint_is_an_error() -> None:
    graph = FactorGraph.build({"x": real, "b": boolean}, [(HARD, ["b", "x"])])

    allowed = infer(graph.observe({"b": False}), GaBP())

    assert log_z(allowed) == pytest.approx(0.5 * np.log(np.pi))
    with pytest.raises(ImpossibleEvidenceError, match="no value of 'x' is possible any more"):
        infer(graph.observe({"b": True}), GaBP())


def test_settings_must_make_sense() -> None:
    with pytest.raises(UnsupportedError, match="damping must be the share of its old value"):
        GaBP(damping=1.0)
    with pytest.raises(UnsupportedError, match="max_steps must be an integer of at least 1"):
        GaBP(max_steps=0)


def stiff_chain(weight: float) -> FactorGraph:
    names = [f"x{i}" for i in range(6)]
    links = [list(pair) for pair in pairwise(names)]
    own = zip(names, [1.0, 0.0, 1.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0, 0.0, 5.0], strict=True)
    return FactorGraph.build(
        dict.fromkeys(names, real),
        [
            (ConditionalQuadratic.squared_distance(weight / 2, [1, -1]), links),
            *(
                (ConditionalQuadratic.shared([[-p / 2]], [h]), [name])
                for name, p, h in own
                if p or h
            ),
        ],
    )


@pytest.mark.parametrize(
    ("weight", "kind"), [(1.0, "exact"), (1e9, "estimate"), (1e12, "estimate")]
)
def test_numbers_that_rounding_defeats_are_not_called_exact(weight: float, kind: str) -> None:
    found = infer(stiff_chain(weight), GaBP(), tasks=("logz", "map"))

    said = "Rounding may change log Z" in " ".join(found.solution.notes)
    assert found.log_partition is not None
    assert found.log_partition.kind == kind
    assert found.map().kind == kind
    assert said == (kind == "estimate")


def test_a_loose_tolerance_makes_no_exact_answer() -> None:
    found = infer(stiff_chain(1.0), GaBP(tolerance=0.9))

    assert found.log_partition is not None
    assert found.log_partition.kind == "estimate"
