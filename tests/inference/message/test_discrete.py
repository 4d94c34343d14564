"""Belief propagation between discrete variables."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import infer
from hylift import read_evidence, read_uai
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Variables,
    boolean,
    categorical,
    interval,
)
from hylift.inference import BP, EPBP, Exact, Lift, Step
from hylift.lifting import lift
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.kinds import tabulated
from random_models import DISCRETE, forests, symmetric_graphs
from zoo import (
    friends_and_smokers,
    function_of_discrete_slots,
    hidden_markov_model,
    mixed_cardinality_loop,
)

EVERYTHING = ("marginals", "logz", "map")


def probabilities(posterior: Posterior) -> np.ndarray:
    """Of all states of all variables, one behind the other."""
    count = len(posterior.variables)
    table = posterior.marginals_of(np.arange(count))
    return np.concatenate([np.asarray(probs) for probs in table["probs"].to_pylist()])


def slow_sum_product(graph: FactorGraph, num_steps: int, damping: float) -> list[np.ndarray]:
    """Beliefs of each variable after some steps, from dictionaries and loops over joint states."""
    sizes = graph.variables.num_states
    factors = [
        (scope, group.potential.log_table[row])
        for group in graph.groups
        for scope, row in zip(group.scope.tolist(), group.row.tolist(), strict=True)
    ]
    ends = [(c, v) for c, (scope, _) in enumerate(factors) for v in scope]
    to_variable = {end: np.ones(sizes[end[1]]) for end in ends}
    for _ in range(num_steps):
        to_factor = {
            (c, v): np.prod([m for (d, u), m in to_variable.items() if u == v and d != c], axis=0)
            for c, v in ends
        }
        sent = {}
        for c, v in ends:
            scope, log_table = factors[c]
            message = np.zeros(sizes[v])
            for states in product(*(range(sizes[u]) for u in scope)):
                weight = np.exp(log_table[states])
                for u, state in zip(scope, states, strict=True):
                    weight *= 1.0 if u == v else (to_factor[c, u] * np.ones(sizes[u]))[state]
                message[states[scope.index(v)]] += weight
            kept = damping if len(scope) > 1 else 0.0
            sent[c, v] = (message / message.max()) ** (1 - kept) * to_variable[c, v] ** kept
        to_variable = sent
    beliefs = []
    for v, size in enumerate(sizes):
        belief = np.prod([np.ones(size), *(m for (_, u), m in to_variable.items() if u == v)], 0)
        beliefs.append(belief / belief.sum())
    return beliefs


@given(forests("discrete", max_variables=7, hard=True))
def test_it_is_exact_on_forests(graph):
    try:
        exact = infer(graph, Exact(), tasks=EVERYTHING)
    except ImpossibleEvidenceError:
        with pytest.raises(ImpossibleEvidenceError):
            infer(graph, BP())
        return

    found = infer(graph, BP(), tasks=EVERYTHING)

    np.testing.assert_allclose(probabilities(found), probabilities(exact), atol=1e-9)
    assert found.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-9)
    assert found.log_partition.kind == "exact"
    assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-9)
    assert found.solution.result == "converged"


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_each_step_is_that_of_a_slow_sum_product(num_steps, damping):
    graph = mixed_cardinality_loop()

    found = infer(graph, BP(damping=damping, max_steps=num_steps))

    expected = np.concatenate(slow_sum_product(graph, num_steps, damping))
    np.testing.assert_allclose(probabilities(found), expected, atol=1e-12)


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
@given(graph=symmetric_graphs(domains=DISCRETE, multiplicities=False), data=st.data())
def test_lifted_equals_ground_step_by_step(schedule, graph, data):
    num_steps = data.draw(st.sampled_from([1, 2, 3, 7]), label="steps")
    tasks = data.draw(st.sampled_from([("marginals", "logz"), EVERYTHING]), label="tasks")
    method = BP(schedule=schedule, max_steps=num_steps, damping=0.2)
    try:
        ground = infer(graph, method, lift="none", tasks=tasks)
    except ImpossibleEvidenceError:
        with pytest.raises(ImpossibleEvidenceError):
            infer(graph, method, lift="exact", tasks=tasks)
        return

    lifted = infer(graph, method, lift="exact", tasks=tasks)

    np.testing.assert_allclose(probabilities(lifted), probabilities(ground), atol=1e-10)
    assert lifted.log_partition.value == pytest.approx(ground.log_partition.value, abs=1e-10)
    assert len(lifted.solution.history) == len(ground.solution.history)
    np.testing.assert_allclose(
        lifted.solution.history.objective, ground.solution.history.objective, atol=1e-10
    )


def test_a_class_in_several_slots_hears_what_the_others_say():
    """On a complete graph every variable is alike, and its class sends messages to itself."""
    names = [f"x{i}" for i in range(5)]
    pairs = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean),
        [
            (Table.shared([[0.3, 0.0], [0.0, 0.4]]), pairs),
            (Table.shared([0.1, 0.0]), [[n] for n in names]),
        ],
    )

    lifted, ground = (infer(graph, BP(), lift=how) for how in ("exact", "none"))

    assert lifted.solution.history.num_classes[-1] == 1
    np.testing.assert_allclose(probabilities(lifted), probabilities(ground), atol=1e-10)
    assert lifted.log_partition.value == pytest.approx(ground.log_partition.value, abs=1e-10)


def test_a_lifted_graph_may_be_given_itself():
    graph = friends_and_smokers(6)
    lifting = lift(graph)

    found = infer(lifting.graph, BP(), lift="none")

    expected = infer(graph, BP(), lift="exact", rewrite=False)
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-9)
    assert found.marginal("Smokes(p0)").probs == pytest.approx(
        expected.marginal("Smokes(p3)").probs, abs=1e-9
    )


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
@pytest.mark.parametrize("model", [friends_and_smokers, mixed_cardinality_loop])
def test_both_schedules_find_one_fixed_point(model, schedule):
    graph = model()

    found = infer(graph, BP(schedule=schedule), rewrite=False)

    expected = infer(graph, BP(damping=0.0, tolerance=1e-12), rewrite=False)
    np.testing.assert_allclose(probabilities(found), probabilities(expected), atol=1e-8)
    assert found.solution.result == "converged"
    assert found.log_partition.kind == "estimate"
    assert "The graph has loops" in " ".join(found.solution.notes)


def test_potentials_far_beyond_what_exponentials_hold_are_no_matter():
    weights = np.array([[0.0, -5000.0], [-4000.0, -9000.0]])
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": categorical(3)},
        [
            (Table.shared(weights), ["a", "b"]),
            (Table.shared([[-3000.0, 2.0, -1.0], [0.0, 4001.0, -7.0]]), ["b", "c"]),
            (Table.shared([-8000.0, 0.0]), ["a"]),
        ],
    )

    found, exact = (infer(graph, m, tasks=EVERYTHING) for m in (BP(), Exact()))

    np.testing.assert_allclose(probabilities(found), probabilities(exact), atol=1e-9)
    assert found.log_partition.value == pytest.approx(exact.log_partition.value, rel=1e-13)
    assert found.map().kind == "exact"


def test_hard_constraints_that_contradict_each_other_are_an_error():
    same = np.where(np.eye(2) > 0, 0.0, -np.inf)
    different = np.where(np.eye(2) > 0, -np.inf, 0.0)
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.shared(same), ["a", "b"]),
            (Table.shared(different), ["a", "b"]),
            (Table.shared([0.0, -np.inf]), ["a"]),
        ],
    )

    with pytest.raises(ImpossibleEvidenceError, match=r"no state of 'b' is possible"):
        infer(graph, BP(), rewrite=False)


@pytest.mark.parametrize("kind", [BP, EPBP])
@pytest.mark.parametrize(
    "factors",
    [
        [([0.0, -np.inf], ["a"]), ([-np.inf, 0.0], ["a"])],
        [
            ([0.0, -np.inf], ["a"]),
            ([-np.inf, 0.0], ["b"]),
            ([[0.0, -np.inf], [-np.inf, 0.0]], ["a", "b"]),
        ],
    ],
)
def test_a_variable_that_is_left_no_state_is_named(factors, kind):
    domains = {name: boolean for _, scope in factors for name in scope}
    graph = FactorGraph.build(domains, [(Table.shared(t), scope) for t, scope in factors])

    for rewrite in (False, True):
        with pytest.raises(ImpossibleEvidenceError, match=r"no state of '[ab]' is possible"):
            infer(graph, kind(), rewrite=rewrite)


@pytest.mark.parametrize("kind", [BP, EPBP])
@pytest.mark.parametrize("count", [0.4, 1.4, 3.0])
def test_a_part_of_a_hard_factor_is_as_hard(kind, count):
    variables = Variables.named({"a": boolean, "b": boolean})
    never = FactorGroup(
        Table.shared([0.0, -np.inf]), np.array([[0]]), multiplicity=np.array([count])
    )
    alike = FactorGroup(Table.shared([[1.0, 0.0], [0.0, 1.0]]), np.array([[0, 1]]))
    graph = FactorGraph(variables, (never, alike))

    found = infer(graph, kind())

    assert found.marginal("a").probs == pytest.approx([1.0, 0.0])
    assert found.log_partition.value == pytest.approx(np.log(1 + np.e), abs=1e-12)


def random_tree(seed: int, scale: float) -> FactorGraph:
    """Categorical variables, each tied to an earlier one by a random table."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(7)]
    factors = [(Table.shared(rng.normal(0, scale, (3, 3))), [names[rng.integers(i)], names[i]])
               for i in range(1, 7)]  # fmt: skip
    own = [(Table.shared(rng.normal(0, scale, 3)), [name]) for name in names]
    return FactorGraph.build(dict.fromkeys(names, categorical(3)), factors + own)


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 300.0])
def test_news_that_few_can_hear_is_waited_for(scale, schedule):
    """An entry of a message may be tiny, and decide all the same once other messages arrive."""
    for seed in range(40):
        graph = random_tree(seed, scale)
        exact = infer(graph, Exact(), tasks=EVERYTHING)

        found = infer(graph, BP(schedule=schedule), tasks=EVERYTHING)

        np.testing.assert_allclose(probabilities(found), probabilities(exact), atol=1e-9)
        assert found.log_partition.value == pytest.approx(exact.log_partition.value, rel=1e-11)
        assert found.log_partition.kind == "exact"
        assert found.map().kind == "exact"
        assert found.map().energy == pytest.approx(exact.map().energy, rel=1e-11)


@pytest.mark.parametrize("method", [BP(tolerance=0.9), BP(damping=1 - 1e-10, max_steps=20)])
def test_an_answer_is_exact_only_if_messages_have_ended(method):
    graph = random_tree(0, 1.0)

    found = infer(graph, method, tasks=EVERYTHING)

    assert found.log_partition.kind == "estimate"
    assert found.map().energy >= infer(graph, Exact(), tasks="map").map().energy - 1e-9


def test_a_callback_that_stops_it_stops_the_search_for_an_assignment_too():
    said = []

    found = infer(
        large_grid(60),
        BP(),
        tasks=EVERYTHING,
        callback=lambda step: step.step == 3,
        progress=lambda share, what: said.append(what),
    )

    assert sum("passing messages" in what for what in said) == 3
    assert found.solution.result == "stopped"
    assert np.isfinite(found.map().energy)


def test_merged_factors_leave_no_loop():
    rng = np.random.default_rng(3)
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3)},
        [(Table.shared(rng.normal(size=(2, 3))), ["a", "b"]) for _ in range(2)],
    )

    merged, apart = infer(graph, BP(merge_factors=True)), infer(graph, BP())

    exact = infer(graph, Exact())
    assert merged.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-12)
    assert merged.log_partition.kind == "exact"
    assert apart.log_partition.kind == "estimate"
    assert "merge_factors" in " ".join(apart.solution.notes)


def test_the_best_assignment_alone_needs_no_sums():
    graph = hidden_markov_model()

    found = infer(graph, BP(), tasks="map")

    exact = infer(graph, Exact(), tasks="map")
    assert found.map().kind == "exact"
    assert found.map().values.tolist() == exact.map().values.tolist()
    assert found.log_partition is None
    assert found.all_marginals is None


def test_the_best_assignment_can_be_asked_for_later():
    graph = friends_and_smokers()

    assignment = infer(graph, BP()).map()

    assert assignment.energy == pytest.approx(infer(graph, Exact(), tasks="map").map().energy)
    assert assignment.kind == "estimate"


def test_functions_of_states_are_tabulated():
    graph = function_of_discrete_slots()

    found = infer(graph, BP(max_steps=2, damping=0.0), rewrite=False)

    tables = [
        FactorGroup(Table(part.potential.log_table), part.scope, part.row)
        for group in graph.condition().groups
        for part in tabulated(group, graph.variables.num_states)
    ]
    same = FactorGraph(graph.variables, tuple(tables))
    expected = np.concatenate(slow_sum_product(same, 2, 0.0))
    np.testing.assert_allclose(probabilities(found), expected, atol=1e-12)


def test_it_says_so_when_messages_do_not_converge():
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(10)]
    pairs = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
    frustrated = [(Table.shared(rng.choice([-4.0, 4.0]) * np.eye(2)), pair) for pair in pairs]
    own = [(Table.shared(rng.normal(size=2)), [name]) for name in names]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), frustrated + own)

    found = infer(graph, BP(damping=0.0, max_steps=100))

    assert found.solution.result == "max_steps"
    assert "did not converge" in " ".join(found.solution.notes)


def large_grid(size: int = 150) -> FactorGraph:
    ids = np.arange(size * size).reshape(size, size)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    rng = np.random.default_rng(1)
    links = np.concatenate([across, down]).astype(np.int32)
    own = Table(rng.normal(size=(size * size, 2)))
    pair = Table(rng.normal(0, 0.5, (len(links), 2, 2)))
    groups = FactorGroup(own, ids.reshape(-1, 1).astype(np.int32)), FactorGroup(pair, links)
    return FactorGraph(Variables.uniform(boolean, size * size), groups)


@pytest.mark.usefixtures("threads")
def test_the_number_of_threads_makes_no_difference():
    graph, answers = large_grid(), []

    for count in (1, 2):
        numba.set_num_threads(count)
        answers.append(infer(graph, BP(max_steps=5), lift="none"))

    one, two = answers
    assert probabilities(one).tobytes() == probabilities(two).tobytes()
    assert one.log_partition.value == two.log_partition.value


def test_time_and_callbacks_end_it():
    graph, seen = large_grid(60), []

    def third(step: Step) -> bool:
        seen.append(step)
        return step.step == 3

    stopped = infer(graph, BP(), callback=third)
    late = infer(graph, BP(), seconds=1e-6)

    assert (stopped.solution.result, stopped.solution.steps) == ("stopped", 3)
    assert seen[-1].objective == stopped.solution.history.objective[-1]
    assert late.solution.result == "out_of_time"
    assert late.all_marginals is not None


def test_alchemy_lifts_to_four_classes_with_the_same_beliefs(data_dir: Path):
    instance = data_dir / "uai" / "Alchemy_11.uai"
    model = read_uai(instance)
    evidence = read_evidence(Path(f"{instance}.evid"), model.variables.num_states)
    graph = model.observe(evidence)

    lifted, ground = (infer(graph, BP(), lift=how) for how in ("exact", "none"))

    assert lifted.solution.history.num_classes[-1] == 4
    np.testing.assert_allclose(probabilities(lifted), probabilities(ground), atol=1e-8)
    assert lifted.log_partition.value / np.log(10) == pytest.approx(606.279199, abs=0.02)


def test_nothing_to_infer_is_no_problem():
    table = Table.shared([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5]])
    domains = {"a": boolean, "b": categorical(3)}
    alone = FactorGraph.build(domains, [])
    seen = FactorGraph.build(domains, [(table, ["a", "b"])]).observe({"a": True, "b": 2})

    free, known = (infer(graph, BP(), tasks=EVERYTHING) for graph in (alone, seen))

    assert free.log_partition.value == pytest.approx(np.log(6), abs=1e-12)
    assert free.marginal("b").probs == pytest.approx([1 / 3] * 3)
    assert known.log_partition.value == pytest.approx(0.5, abs=1e-12)
    assert known.map()["b"] == "2"


def test_observed_reals_are_welcome():
    square = ConditionalQuadratic.square(-1.0).times([0, 1])
    graph = FactorGraph.build({"a": boolean, "x": interval(-9, 9)}, [(square, ["a", "x"])])

    found = infer(graph.observe({"x": 2.0}), BP())

    assert found.marginal("a").prob("true") == pytest.approx(1 / (1 + np.exp(4.0)), abs=1e-12)


def refuse_reals() -> None:
    x = FactorGraph.build({"x": interval(0, 1)}, [(ConditionalQuadratic.square(-1.0), ["x"])])
    infer(x, BP())


def refuse(lift: Lift = "exact", start: bool = False) -> None:
    graph = friends_and_smokers()
    infer(graph, BP(), lift=lift, start=infer(graph, Exact()) if start else None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (refuse_reals, r"BP is for discrete variables, and 'x' is real"),
        (lambda: refuse("coarse-to-fine"), r"use lift='exact' or lift='none'"),
        (lambda: refuse(start=True), r"BP cannot start from an earlier posterior"),
        (lambda: BP(damping=1.0), r"at least 0 and below 1, not 1\.0"),
        (lambda: BP(damping="much"), r"not 'much'"),
        (lambda: BP(merge_factors="no"), r"merge_factors must be True or False, not 'no'"),
        (lambda: BP(max_steps=0), r"max_steps must be an integer of at least 1, not 0"),
        (lambda: BP(tolerance=0.0), r"tolerance must be a number between 0 and 1, not 0\.0"),
        (lambda: BP(schedule="residal"), r"no schedule 'residal'.*Did you mean 'residual'"),
    ],
)
def test_what_it_cannot_do_is_said(wrong, message):
    with pytest.raises(UnsupportedError, match=message):
        wrong()
