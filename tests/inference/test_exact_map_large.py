"""MAP of models too large for tables."""

import csv
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

import oracle
import random_models
import zoo
from hylift.errors import (
    DivergentModelError,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
)
from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import Exact, infer
from hylift.inference.exact.maximum import branch_and_bound, search
from hylift.inference.exact.maximum.dominated import ReducedGraph
from hylift.inference.exact.maximum.linear_program import Program
from hylift.posterior import Assignment
from hylift.potentials import ConditionalQuadratic, Table

SMALL = [model for model in zoo.ZOO if "large" not in model.tags]
DISTANCE = ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0])
TABLELESS = Exact(max_entries=1)


@contextmanager
def no_tables(*, dominated: bool = True) -> Iterator[None]:
    """Inside, tables never fit; unless `dominated`, no state is dropped either."""

    def refuse(*_: object, **__: object) -> None:
        raise IntractableError("no tables here.")

    def keep(graph: FactorGraph) -> ReducedGraph:
        num = graph.num_variables
        return ReducedGraph(graph, np.arange(num), np.zeros(num), 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "sum_states", refuse)
        if not dominated:
            patch.setattr(search, "without_dominated", keep)
        yield


def best_of(graph: FactorGraph, *, dominated: bool) -> Assignment:
    with no_tables(dominated=dominated):
        return infer(graph, Exact(), tasks=["map"]).map()


@cache
def solved(model: zoo.ZooModel) -> oracle.Answer:
    return oracle.solve(model.graph())


def test_a_real_that_depends_on_too_many_states_is_no_hindrance_if_these_are_dominated() -> None:
    switches = [f"on{i}" for i in range(40)]
    graph = FactorGraph.build(
        dict.fromkeys(switches, boolean) | {"height": real, "other": real},
        [
            (ConditionalQuadratic.squared_distance(1.0, [1.0], 3.0), ["height"]),
            (DISTANCE.times([0, 1]), [[switch, "height", "other"] for switch in switches]),
        ],
    )

    found = infer(graph.observe({"other": 0.0, "on3": True}), Exact(), tasks=["map"]).map()

    assert found["height"] == pytest.approx(1.5)
    assert found.energy == pytest.approx(4.5)
    assert {found[switch] for switch in switches if switch != "on3"} == {"false"}
    assert found.kind == "exact"


@pytest.mark.parametrize("dominated", [True, False])
@pytest.mark.parametrize("model", SMALL, ids=str)
def test_the_least_energy_is_found_without_tables(model: zoo.ZooModel, dominated: bool) -> None:
    graph = model.graph()

    found = best_of(graph, dominated=dominated)

    assert found.energy == pytest.approx(solved(model).map_energy, rel=0, abs=1e-7)
    assert oracle.log_density(graph, found.values) == pytest.approx(-found.energy, abs=1e-10)
    assert found.kind == infer(graph, Exact(), tasks=["map"]).map().kind


@pytest.mark.parametrize("dominated", [True, False])
@given(graph=random_models.graphs(max_discrete=4))
def test_random_hybrid_graphs_agree_with_enumeration(dominated: bool, graph: FactorGraph) -> None:
    expected = oracle.solve(graph).map_energy

    if expected == np.inf:
        with pytest.raises(ImpossibleEvidenceError, match=r"no joint state|hard constraint"):
            best_of(graph, dominated=dominated)
    else:
        found = best_of(graph, dominated=dominated)
        assert found.energy == pytest.approx(expected, rel=0, abs=1e-9)
        assert found.kind == "exact"


def random_tables(seed: int, num_variables: int = 7) -> FactorGraph:
    """Tables of every form a program has: dense, clauses, exceptions, and hard constraints."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, num_variables)
    variables = Variables.of([categorical(int(n)) for n in sizes], Names.numbered(num_variables))
    groups = []
    for number in range(2 * num_variables):
        scope = rng.permutation(num_variables)[: rng.integers(1, 6)]
        shape = (2, *sizes[scope])
        values = rng.normal(size=shape) if number % 2 else np.zeros(shape)
        for _ in range(rng.integers(0, 3)):
            values[rng.integers(2), *rng.integers(0, sizes[scope])] = 3 * rng.normal()
        if number % 5 == 0:
            values[rng.random(shape) < rng.choice([0.1, 0.6])] = -np.inf
        times = rng.choice([1.0, 2.0, 0.5], 2)
        groups.append(FactorGroup(Table(values), np.stack([scope] * 2), multiplicity=times))
    return FactorGraph(variables, tuple(groups))


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_every_form_agree_with_enumeration(seed: int) -> None:
    graph = random_tables(seed)
    expected = oracle.solve(graph).map_energy

    for dominated in (True, False):
        try:
            found = best_of(graph, dominated=dominated).energy
        except ImpossibleEvidenceError:
            found = np.inf
        assert found == pytest.approx(expected, rel=0, abs=1e-9)


def spins(num: int, seed: int = 0, copies: int = 1) -> FactorGraph:
    """Booleans that all disagree about who should be alike, and the same again."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(num), 2)))
    values = np.tile(rng.normal(size=(len(pairs), 2, 2)), (copies, 1, 1))
    scope = (pairs + num * np.arange(copies)[:, None, None]).reshape(-1, 2)
    variables = Variables.uniform(boolean, copies * num)
    return FactorGraph(variables, (FactorGroup(Table(values), scope),))


def test_a_limit_of_one_entry_is_no_hindrance() -> None:
    graph = spins(12)

    found = infer(graph, TABLELESS, tasks=["map"]).map()

    assert found.energy == pytest.approx(
        infer(graph, Exact(), tasks=["map"]).map().energy, abs=1e-9
    )
    assert found.kind == "exact"


def test_independent_parts_are_solved_one_by_one() -> None:
    one = infer(spins(18), Exact(), tasks=["map"]).map()

    found = infer(spins(18, copies=8), TABLELESS, tasks=["map"]).map()

    assert found.energy == pytest.approx(8 * one.energy, abs=1e-8)


def test_two_runs_without_tables_give_the_same_bytes() -> None:
    """Both ways round of each pair are equally good."""
    alike = np.array(list(itertools.combinations(range(9), 2)))
    differ = Table.shared([[0.0, 1.0], [1.0, 0.0]])
    graph = FactorGraph(Variables.uniform(boolean, 9), (FactorGroup(differ, alike),))

    first, second = (infer(graph, TABLELESS, tasks=["map"]).map() for _ in range(2))

    assert first.values.tobytes() == second.values.tobytes()
    assert first.energy == -20.0


# The paper's large models


def read_papers(path: Path) -> FactorGraph:
    """300 papers in 10 topics, with weight 1 for papers in topics, and unbounded popularity."""
    num_papers, num_topics = 300, 10
    paper, topic = np.arange(num_papers), num_papers + np.arange(num_topics)
    num_reals = num_papers + num_topics
    inside = num_reals + np.arange(num_papers * num_topics).reshape(num_papers, num_topics)
    first, second = np.nonzero(~np.eye(num_topics, dtype=bool))
    same = num_reals + inside.size + np.arange(len(first))
    p, t = np.indices(inside.shape).reshape(2, -1)
    groups = (
        FactorGroup(ConditionalQuadratic.squared_distance(0.3, [1.0], 1.0), paper[:, None]),
        FactorGroup(DISTANCE.times([0, 0.5]), np.stack([same, topic[first], topic[second]], 1)),
        FactorGroup(DISTANCE.times([0, 1]), np.stack([inside.ravel(), paper[p], topic[t]], 1)),
    )
    domain_id = np.repeat([0, 1], [num_reals, inside.size + len(same)])
    names = Names.numbered(len(domain_id))
    variables = Variables((real, boolean), domain_id, names, np.ones(len(domain_id)))
    observed = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        at = int(row["arg1"][1:])
        if row["predicate"] == "PaperPopularity":
            observed[paper[at]] = float(row["value"])
        elif row["predicate"] == "TopicPopularity":
            observed[topic[at]] = float(row["value"])
        elif row["predicate"] == "PaperIn":
            observed[inside[at, int(row["arg2"][1:])]] = float(row["value"])
    return FactorGraph(variables, groups).observe(
        Evidence.of(list(observed), list(observed.values()))
    )


def read_robot(path: Path) -> FactorGraph:
    """37 segments of walls, doors and others, their types unknown."""
    num = 37
    kind, line = np.arange(3 * num).reshape(num, 3), 3 * num + np.arange(2 * num).reshape(num, 2)
    aligned = np.zeros((num, num), dtype=int)
    s1, s2 = np.nonzero(~np.eye(num, dtype=bool))
    aligned[s1, s2] = 5 * num + np.arange(len(s1))
    num_booleans = 5 * num + len(s1)
    length, depth = num_booleans + np.arange(2 * num).reshape(2, num)
    wall, door, other = kind.T
    s1, s2, part = np.repeat(s1, 2), np.repeat(s2, 2), np.tile([0, 1], len(s1))
    clause = np.ones((2,) * 5)
    clause[1, 1, 0, 1, 0] = 0
    scope = [wall[s1], wall[s2], line[s1, part], line[s2, part], aligned[s2, s1]]
    at_most_one = np.concatenate([kind[:, pair] for pair in itertools.permutations(range(3), 2)])

    def near(weight: float, target: float) -> ConditionalQuadratic:
        return ConditionalQuadratic.squared_distance(weight, [1.0], target).times([0, 1])

    groups = (
        FactorGroup(Table.weighted(3.0, [[1, 1], [1, 0]]), at_most_one),
        FactorGroup(Table.weighted(3.0, np.arange(8).reshape(2, 2, 2) > 0), kind),
        FactorGroup(Table.weighted(1.591, clause), np.stack(scope, axis=1)),
        *(
            FactorGroup(Table.weighted(weight, [0, 1]), which[:, None])
            for weight, which in ((0.3, wall), (-0.737, door), (-0.077, other))
        ),
        FactorGroup(near(3.228, 0.1), np.stack([door, length], axis=1)),
        FactorGroup(near(2.668, 0.02), np.stack([door, depth], axis=1)),
        FactorGroup(near(3.754, 0.341), np.stack([wall, length], axis=1)),
        FactorGroup(near(2.532, 0.001), np.stack([wall, depth], axis=1)),
    )
    domains = (boolean, interval(0, 1), interval(0, 0.5))
    domain_id = np.repeat([0, 1, 2], [num_booleans, num, num])
    names = Names.numbered(len(domain_id))
    variables = Variables(domains, domain_id, names, np.ones(len(domain_id)))
    observed = dict.fromkeys(range(5 * num, num_booleans), 0.0)
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    for name, first, second, value in re.findall(
        r"(\w+)\(A1_(\d+)(?:,(?:A1_|LA)?(\w+))?\)[ \t]*([\d.]*)", text
    ):
        s = int(first) - 1
        if name == "PartOf":
            observed[line[s, int(second) - 1]] = 1.0
        elif name == "Aligned":
            observed[aligned[s, int(second) - 1]] = 1.0
        elif name in ("Length", "Depth"):
            observed[(length if name == "Length" else depth)[s]] = float(value)
    return FactorGraph(variables, groups).observe(
        Evidence.of(list(observed), list(observed.values()))
    )


@pytest.mark.parametrize(
    ("read", "file", "energy", "num_hidden"),
    [
        (read_papers, "papers/evidence_0.csv", 7425.860899, 2266),
        (read_robot, "robot/robot-map.db", -5020.526558, 195),
    ],
)
def test_the_large_models_of_the_paper_are_solved(
    read: object, file: str, energy: float, num_hidden: int, data_dir: Path
) -> None:
    path = data_dir / file
    if not path.exists():
        pytest.skip(f"there is no published evidence {path}")
    graph = read(path)  # type: ignore[operator]

    found = infer(graph, Exact(), tasks=["map"]).map()

    assert np.count_nonzero(~found.observed) == num_hidden
    assert found.energy == pytest.approx(energy, rel=0, abs=1e-6)
    assert found.kind == "exact"


# Refusals


def test_contradicting_constraints_leave_no_state() -> None:
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    differ = Table.weighted(np.inf, ~np.eye(3, dtype=bool))
    graph = FactorGraph(Variables.uniform(categorical(3), 4), (FactorGroup(differ, pairs),))

    with pytest.raises(ImpossibleEvidenceError, match="no joint state is possible"):
        infer(graph, TABLELESS, tasks=["map"])


def test_contradicting_implications_leave_no_state() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.weighted(np.inf, zoo.IMPLIES), ["a", "b"]),
            (Table.weighted(np.inf, [[0, 0], [1, 0]]), ["a", "b"]),
        ],
    )

    with pytest.raises(ImpossibleEvidenceError, match="no joint state is possible"):
        infer(graph, TABLELESS, tasks=["map"])


@pytest.mark.parametrize("dominated", [True, False])
def test_a_state_without_maximum_is_named(dominated: bool) -> None:
    """Where both modes are loose, x slides down a slope; one alone holds it."""
    loose = ConditionalQuadratic.switch(
        [ConditionalQuadratic.square(-1.0), ConditionalQuadratic.shared([[0.0]], [1.0])]
    )
    graph = FactorGraph.build(
        {"mode": categorical(["tight", "loose"]), "key": boolean, "x": real},
        [(loose, ["mode", "x"]), (Table.shared(np.eye(2)), ["mode", "key"])],
    )
    held = FactorGraph(
        graph.variables,
        (*graph.groups, FactorGroup(Table.weighted(np.inf, [[1, 1], [0, 0]]), [[0, 1]])),
    )

    with pytest.raises(DivergentModelError, match="improper in 'x' where mode is loose"):
        best_of(graph, dominated=dominated)
    assert best_of(held, dominated=dominated).energy == -1.0


def test_running_out_of_time_is_said_beside_what_was_tried() -> None:
    with pytest.raises(IntractableError) as refusal:
        infer(spins(30), Exact(max_entries=2**10, map_seconds=1e-6), tasks=["map"])

    text = str(refusal.value)
    assert "elimination of these 30 variables has width 29" in text
    assert "dropping dominated states fixed 0 of 30 discrete variables" in text
    assert "Branch and bound over 30 variables ran out of time (Exact(map_seconds=…))" in text


def test_the_bound_and_the_gap_reached_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_early(program: Program, deadline: float) -> SimpleNamespace:
        bound = branch_and_bound.SCALE * (-3.0 - program.constant)
        x = np.zeros(len(program.cost))
        return SimpleNamespace(status=1, message="", x=x, mip_dual_bound=bound)

    monkeypatch.setattr(branch_and_bound, "_run", stop_early)
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(Table.shared(np.eye(2)), ["a", "b"])])

    with pytest.raises(IntractableError) as refusal:
        best_of(graph, dominated=False)

    assert (
        "ran out of time (Exact(map_seconds=…)) with a joint state of energy -1, counting the "
        "factors among these alone, and with the proof that none is below -3: a gap of 2."
    ) in str(refusal.value)


def test_too_large_a_program_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_and_bound, "MAX_NUMBERS", 100)

    with pytest.raises(IntractableError) as refusal:
        infer(spins(12), TABLELESS, tasks=["map"])

    assert "would need a linear program of 264 numbers, where 100 are the limit" in str(
        refusal.value
    )


def coupled(num_reals: int) -> FactorGraph:
    """Reals that are all coupled, each near 2 or -2."""
    switches, heights = [f"on{i}" for i in range(num_reals)], [f"x{i}" for i in range(num_reals)]
    near = ConditionalQuadratic.squared_distance(1.0, [1.0], 2.0)
    away = ConditionalQuadratic.squared_distance(1.0, [1.0], -2.0)
    pairs = [[one, other] for one in heights for other in heights if one < other]
    return FactorGraph.build(
        dict.fromkeys(switches, boolean) | dict.fromkeys(heights, real),
        [
            (
                ConditionalQuadratic.switch([near, away]),
                [list(pair) for pair in zip(switches, heights, strict=True)],
            ),
            (ConditionalQuadratic.squared_distance(0.01, [1, -1]), pairs),
        ],
    )


def test_reals_that_depend_on_too_many_states_are_refused_once() -> None:
    with pytest.raises(IntractableError) as refusal:
        infer(coupled(12), Exact(max_entries=2**12), tasks=["map"], rewrite=False)

    assert str(refusal.value).count("among them) depend on") == 1
    assert "dominated states fixed 0 of 12 discrete variables." in str(refusal.value)


def test_lattices_find_the_best_states_of_a_real_that_depends_on_too_many() -> None:
    switches = [f"on{i}" for i in range(12)]
    near, away = (
        ConditionalQuadratic.squared_distance(1.0, [1.0], target) for target in (2.0, -1.9)
    )
    graph = FactorGraph.build(
        dict.fromkeys(switches, boolean) | {"height": real},
        [(ConditionalQuadratic.switch([near, away]), [[name, "height"] for name in switches])],
    )

    found = infer(graph, Exact(max_entries=2**12), tasks=["map"], rewrite=False).map()

    assert found.energy == pytest.approx(0.0, abs=1e-12)
    assert found["height"] == pytest.approx(2.0) or found["height"] == pytest.approx(-1.9)
    assert found.kind == "estimate"


@pytest.mark.parametrize("seconds", [0.0, -1.0, np.nan])
def test_a_time_without_meaning_is_refused(seconds: float) -> None:
    with pytest.raises(UnsupportedError, match="map_seconds must be positive"):
        Exact(map_seconds=seconds)


def test_marginals_of_a_graph_too_wide_for_tables_are_refused_as_before() -> None:
    with pytest.raises(IntractableError, match="Observe some of the variables"):
        infer(spins(12), Exact(max_entries=2**11), tasks=["logz"])
