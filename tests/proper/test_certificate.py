"""A certificate of the Bethe free energy is one: its bound is a bound, its violations are real."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zoo
from experiments.instances import kalman, rgm
from experiments.instances.sources import MODELS
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, interval, real
from hylift.grounding import ground
from hylift.inference import Exact, infer
from hylift.language import parse
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.proper.certificate import BetheCertificate, bethe_certificate
from random_models import graphs

TOY = (MODELS / "toy.mln").read_text(encoding="utf-8")
PRIOR = "-0.04  posB(b)^2 + posA(a)^2"


def toy(*, bounded: bool, prior: bool) -> FactorGraph:
    text = TOY if bounded else TOY.replace("real[-15, 15]", "real")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ground(parse(text if prior else text.replace(PRIOR, "")))


def highest_ratio(graph: FactorGraph, found: BetheCertificate, seed: int) -> float:
    """The largest log p̃ - Σ log g that random states, far points and line searches find."""
    hidden, rng = graph.condition(), np.random.default_rng(seed)
    variables = hidden.variables
    num_states = variables.num_states
    is_real = num_states == 0
    lower = np.where(np.isfinite(variables.lower), variables.lower, -np.inf)
    upper = np.where(np.isfinite(variables.upper), variables.upper, np.inf)
    best = -np.inf

    def ratio(values: np.ndarray) -> float:
        values = np.where(is_real, np.clip(values, lower, upper), values)
        return hidden.log_density(values) - found.densities.log_sum(values)

    for _ in range(8):
        states = rng.integers(0, np.maximum(num_states, 1))
        for scale in (1.0, 30.0, 1e4):
            point = np.where(is_real, scale * rng.normal(size=len(states)), states)
            best = max(best, ratio(point))
        best = max(best, climb(ratio, point, np.flatnonzero(is_real)))
    return best


def assert_below(value: float, bound: float) -> None:
    assert value <= bound or value - bound <= 1e-9 * abs(bound)


def climb(ratio, point: np.ndarray, reals: np.ndarray) -> float:
    """Coordinate ascent by parabolas, which are exact for quadratics inside the bounds."""
    for _ in range(8):
        for i in reals:
            step = np.zeros(len(point))
            step[i] = 1.0
            before, here, after = (ratio(point + t * step) for t in (-1, 0, 1))
            bend = before - 2 * here + after
            if np.isfinite(bend) and bend < -1e-12:
                there = point + np.clip(0.5 * (before - after) / bend, -1e4, 1e4) * step
                point = there if ratio(there) > here else point
    return ratio(point)


def is_possible(graph: FactorGraph) -> bool:
    """Whether the evidence breaks no hard rule."""
    try:
        graph.condition()
    except ImpossibleEvidenceError:
        return False
    return True


@settings(deadline=None, max_examples=60)
@given(graphs(max_bounded=2).filter(is_possible), st.integers(0, 1000))
def test_a_proper_model_is_certified_and_its_bound_is_one(graph, seed) -> None:
    found = bethe_certificate(graph)

    assert found.holds is True
    assert_below(highest_ratio(graph, found, seed), found.log_bound)


@settings(deadline=None, max_examples=40)
@given(graphs(hard=False))
def test_log_z_is_below_the_bound(graph) -> None:
    found = bethe_certificate(graph)

    assert infer(graph, Exact(), tasks="logz").log_partition.value <= found.log_bound + 1e-9


@st.composite
def doubtful_graphs(draw: st.DrawFn) -> FactorGraph:
    """A few reals with whole-numbered couplings, in some states of some Booleans."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    num_discrete, num_reals = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    variables = Variables.of(
        [boolean] * num_discrete + [real] * num_reals, Names.numbered(num_discrete + num_reals)
    )
    groups = []
    for _ in range(draw(st.integers(1, 6), label="factors")):
        inside = rng.permutation(num_discrete)[: rng.integers(0, 3)]
        reals = num_discrete + rng.permutation(num_reals)[: rng.integers(1, 3)]
        root = rng.integers(-1, 2, size=(*[2] * len(inside), len(reals), rng.integers(1, 3)))
        A = -(root @ np.swapaxes(root, -1, -2)).astype(float)
        if rng.random() < 0.15:
            A = -A / 4
        scope = np.concatenate([inside, reals])[None].astype(np.int32)
        potential = ConditionalQuadratic.shared(A, rng.normal(size=A.shape[:-1]))
        groups.append(FactorGroup(potential, scope))
    if num_discrete > 1:
        table = Table.weighted(np.inf, [[1, 1], [rng.integers(0, 2), 1]])
        groups.append(FactorGroup(table, np.array([[0, 1]], dtype=np.int32)))
    return FactorGraph(variables, tuple(groups))


def precision(graph: FactorGraph, states: tuple[int, ...]) -> np.ndarray:
    """The precision of the reals in states of the discrete variables, which come first."""
    size, start = graph.num_variables - len(states), len(states)
    found = np.zeros((size, size))
    for group in graph.groups:
        if isinstance(group.potential, ConditionalQuadratic):
            split = group.potential.num_discrete_slots
            for scope, row in zip(group.scope, group.row, strict=True):
                at = scope[split:] - start
                A = group.potential.A[(row, *(states[i] for i in scope[:split]))]
                found[np.ix_(at, at)] -= 2 * A
    return found


@settings(deadline=None, max_examples=100)
@given(doubtful_graphs(), st.integers(0, 1000))
def test_the_verdict_is_that_of_all_joint_states(graph, seed) -> None:
    num_discrete = int(np.count_nonzero(graph.variables.num_states))
    zeros = np.zeros(graph.num_variables - num_discrete)
    least = [
        np.linalg.eigvalsh(precision(graph, states))[0]
        for states in itertools.product([0, 1], repeat=num_discrete)
        if graph.log_density(np.array([*states, *zeros])) > -np.inf
    ]

    found = bethe_certificate(graph)

    assert found.holds is bool(min(least) > 1e-9)
    if found.holds:
        assert_below(highest_ratio(graph, found, seed), found.log_bound)
    for violation in found.violations:
        assert_not_held(graph, violation, seed)


def assert_not_held(graph: FactorGraph, violation, seed: int) -> None:
    """No Gaussians, however wide, fall off slower than the model along the direction."""
    rng = np.random.default_rng(seed)
    rendered = graph.variables.names.render(np.arange(graph.num_variables))
    names = {name: i for i, name in enumerate(rendered.to_pylist())}
    num_states = graph.variables.num_states
    labels = {
        name: list(graph.variables.domain(names[name]).states) for name, _ in violation.states
    }
    fixed = {names[name]: labels[name].index(state) for name, state in violation.states}
    free = [i for i in np.flatnonzero(num_states) if i not in fixed]
    possible = 0
    for rest in itertools.product(*(range(num_states[i]) for i in free)):
        point = np.where(num_states == 0, rng.normal(size=len(num_states)), 0.0)
        point[list(fixed)] = list(fixed.values())
        point[free] = rest
        if graph.log_density(point) == -np.inf:
            continue
        possible += 1
        direction = np.zeros(len(point))
        for name, step in violation.reals:
            direction[names[name]] = step
        far = 1e4
        bend = sum(graph.log_density(point + t * far * direction) for t in (-1, 1))
        bend -= 2 * graph.log_density(point)
        assert bend >= -1e-9 * far**2 * float(direction @ direction)
        if violation.curvature < 0:
            assert bend > 0
    assert possible > 0


@settings(deadline=None, max_examples=60)
@given(doubtful_graphs(), st.integers(2, 3))
def test_classes_never_contradict_the_ground_graph(graph, copies) -> None:
    size = graph.num_variables
    domains = [graph.variables.domain(i % size) for i in range(copies * size)]
    groups = [
        FactorGroup(
            group.potential,
            np.concatenate([group.scope + copy * size for copy in range(copies)]),
            np.tile(group.row, copies),
        )
        for group in graph.groups
    ]
    several = FactorGraph(Variables.of(domains, Names.numbered(len(domains))), tuple(groups))

    lifted = bethe_certificate(lift(several).graph)

    assert lifted.holds in (bethe_certificate(several).holds, None)
    if lifted.holds:
        single = infer(graph, Exact(), tasks="logz").log_partition.value
        assert copies * single <= lifted.log_bound + 1e-9


@pytest.mark.parametrize("model", zoo.ZOO, ids=str)
def test_every_model_of_the_zoo_is_bounded(model) -> None:
    found = bethe_certificate(model.graph())

    assert found.holds
    assert json.loads(json.dumps(found.to_dict()))["holds"] is True


@pytest.mark.parametrize("lifted", [False, True], ids=["ground", "lifted"])
def test_the_models_of_the_paper_are_bounded(lifted: bool, data_dir: Path) -> None:
    shapes: list[kalman.Shape] = ["tree", "cycle"]
    filters = [kalman.published(data_dir, shape, 0, "paper") for shape in shapes]
    models = [rgm.published(data_dir, 0), *filters]

    for model in models:
        assert bethe_certificate(lift(model.graph).graph if lifted else model.graph).holds


@pytest.mark.parametrize(("bounded", "prior"), [(True, True), (True, False), (False, True)])
def test_the_toy_model_is_bounded_by_its_intervals_or_its_prior(bounded: bool, prior: bool) -> None:
    graph = toy(bounded=bounded, prior=prior)

    found = bethe_certificate(graph)

    assert found.sentence == (
        f"The Bethe free energy of this model is bounded below by {-found.log_bound:.6g}, so BVI "
        "cannot diverge, for any number of components."
    )
    assert found.log_bound < 30
    assert found.densities.of("posA(a0)")["kind"] == ("uniform" if bounded else "gaussian")
    assert_below(highest_ratio(graph, found, 0), found.log_bound)


def test_the_toy_model_without_either_names_what_lets_its_positions_go() -> None:
    found = bethe_certificate(toy(bounded=False, prior=False))

    assert found.holds is False
    assert found.sentence == (
        "The Bethe free energy of this model is not bounded below: the density is improper in "
        "'posA(a0)' where attractedTo(a0,b0) is false, attractedTo(a0,b1) is false and "
        "attractedTo(a0,b2) is false. BVI may diverge with any number of components, and no other "
        "method has a right answer; give it bounds or add a rule such as '-0.01 posA(a0)^2'."
    )
    told = {violation.what: violation.where for violation in found.violations}
    assert told["'posB(b0)'"] == "attractedTo(a0,b0) is true and attractedTo(a1,b0) is true"
    assert len(told) == 5


def test_differences_alone_hold_nothing() -> None:
    apart = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    graph = FactorGraph.build(
        {"x": real, "y": real, "z": real}, [(apart, [["x", "y"], ["y", "z"]])]
    )

    found = bethe_certificate(graph)

    assert [str(violation) for violation in found.violations] == [
        "the density is improper in 'x', 'y' and 'z' jointly"
    ]


def test_a_square_that_grows_pushes_its_real_outwards() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(0.5), ["x"])])

    found = bethe_certificate(graph)

    assert repr(found) == "BetheCertificate(violated: the density grows without bound in 'x')"
    assert found.to_dict()["violations"] == [
        {"direction": {"x": 1.0}, "states": {}, "curvature": -1.0}
    ]


def test_evidence_holds_what_is_tied_to_it() -> None:
    apart = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    graph = FactorGraph.build({"x": real, "y": real}, [(apart, ["x", "y"])])

    assert bethe_certificate(graph).holds is False
    assert bethe_certificate(graph.observe({"y": 3.0})).holds is True


def test_a_function_of_an_unbounded_real_is_not_judged() -> None:
    wave = Function(lambda x: np.cos(x), num_reals=1)
    square = ConditionalQuadratic.square(-1.0)
    graph = FactorGraph.build({"x": real}, [(wave, ["x"]), (square, ["x"])])

    found = bethe_certificate(graph)

    assert found.holds is None
    assert repr(found) == (
        "BetheCertificate(undecided: 'factors 0' is a user-defined function, and 'x' in it has no "
        "bounds)"
    )
    assert "or use NPVI, which only needs a finite log Z." in found.sentence


def test_a_function_of_bounded_reals_is_trusted_and_that_is_said() -> None:
    wave = Function(lambda x: np.cos(x), num_reals=1)
    graph = FactorGraph.build({"x": interval(-1, 1)}, [(wave, ["x"])])

    found = bethe_certificate(graph)

    assert (found.holds, found.log_bound) == (True, None)
    assert found.sentence.endswith(
        "This assumes that 'factors 0', a user-defined function, is bounded above."
    )


def test_a_bounded_real_pulls_an_unbounded_one_no_further_than_its_bounds() -> None:
    tie = ConditionalQuadratic.squared_distance(1.0, [1, -1]).times([0.5, 1.0])
    domains = {"on": boolean, "x": real, "z": interval(2, 5)}
    graph = FactorGraph.build(domains, [(tie, ["on", "x", "z"])])

    found = bethe_certificate(graph)

    assert found.holds
    assert_below(highest_ratio(graph, found, 0), found.log_bound)


def test_a_straight_fall_towards_the_one_open_end_holds_a_real() -> None:
    falls = ConditionalQuadratic.shared([[[0.0]], [[0.0]]], [[-0.5], [-2.0]])
    graph = FactorGraph.build({"on": boolean, "x": interval(1, np.inf)}, [(falls, ["on", "x"])])

    found = bethe_certificate(graph)

    assert found.densities.of("x") == {"kind": "exponential", "rate": 0.5}
    assert found.log_bound == pytest.approx(np.log(2) - np.log(0.5) - 0.5)


def test_a_straight_fall_in_some_states_only_does_not_hold_a_real() -> None:
    falls = ConditionalQuadratic.shared([[[0.0]], [[0.0]]], [[-0.5], [0.0]])
    graph = FactorGraph.build({"on": boolean, "x": interval(1, np.inf)}, [(falls, ["on", "x"])])

    found = bethe_certificate(graph)

    assert [str(violation) for violation in found.violations] == [
        "the density is improper in 'x' where on is true"
    ]


def test_hard_rules_that_forbid_a_state_are_believed() -> None:
    graph = zoo.hard_constraint_keeps_a_real_in_place()

    assert bethe_certificate(graph).holds


def test_two_rules_may_hold_together_what_each_holds_in_one_state() -> None:
    count = 10_000
    ids = np.arange(count, dtype=np.int32)
    square = ConditionalQuadratic.squared_distance(1.0, [1.0], 3.0)
    scope = np.stack([ids, count + ids], axis=1)
    groups = [FactorGroup(square.times(gate), scope) for gate in ([0, 1], [1, 0])]
    variables = Variables.of([boolean] * count + [real] * count, Names.numbered(2 * count))

    assert bethe_certificate(FactorGraph(variables, tuple(groups))).holds
    assert bethe_certificate(FactorGraph(variables, tuple(groups[:1]))).holds is False


def test_a_state_that_others_forbid_may_let_a_real_go() -> None:
    gate = ConditionalQuadratic.square(-1.0).times([[0, 1], [1, 1]])
    never_both_off = Table.weighted(np.inf, [[0, 1], [1, 1]])
    graph = FactorGraph.build({"a": boolean, "b": boolean, "x": real}, [(gate, ["a", "b", "x"])])
    kept = FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real},
        [(gate, ["a", "b", "x"]), (never_both_off, ["a", "b"])],
    )

    assert str(bethe_certificate(graph).violations[0]) == (
        "the density is improper in 'x' where a is false and b is false"
    )
    assert bethe_certificate(kept).holds


def test_many_reals_take_no_loop_over_them() -> None:
    count = 100_000
    ids = np.arange(count, dtype=np.int32)
    link = ConditionalQuadratic.linear_gaussian([0.9], 1.0)
    groups = [
        FactorGroup(link, np.stack([ids[1:], ids[:-1]], axis=1)),
        FactorGroup(ConditionalQuadratic.square(-0.5), ids[:1, None]),
    ]
    graph = FactorGraph(Variables.uniform(real, count), tuple(groups))

    assert bethe_certificate(graph).holds


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bethe_certificate needs a FactorGraph"):
        bethe_certificate("toy.mln")


@pytest.mark.parametrize("variance", [1e-8, 1e-10])
def test_a_precise_rule_of_one_state_does_not_hide_a_wide_one_of_another(variance: float) -> None:
    graph = ground(
        parse(f"""
            B: boolean
            x: real
            y: real
            z: real
            normal(x | 0, 1)
            normal(y | x, 1 + 10000*B)
            normal(z | y*!B + 3*B, {variance})
            normal(z | x, 1)
        """)
    )

    found = bethe_certificate(graph)

    assert found.holds is not False


def test_numbers_that_differ_too_much_leave_the_certificate_undecided() -> None:
    graph = ground(
        parse("""
            B: boolean
            x: real
            w: real
            normal(x | 0, 8.636e-11 + 8.636e-07*B)
            normal(w | 2, 0.05761 + 576.1*B)
            normal(1 | x, 0.002527)
            normal(2 | w*!B + 3*B, 7.695e-10)
        """)
    )

    found = bethe_certificate(graph)

    assert found.holds is not False
