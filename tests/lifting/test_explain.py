"""What an explanation counts, measures and says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import instances
from hylift.graph import Evidence, FactorGraph, FactorGroup, Names, Soft, Variables, boolean, real
from hylift.graph.names import Predicates
from hylift.lifting import Lifting, coarse_to_fine, lift
from hylift.lifting.explanation import Explanation, Size
from hylift.lifting.explanation_text import alone
from hylift.numerics.quadrature import nodes_per_slot
from hylift.potentials import ConditionalQuadratic, Function, Table
from random_models import symmetric_graphs
from zoo import ZOO, ZooModel, friends_and_smokers, mixed_cardinality_loop, toy_hybrid_mln


def papers(data_dir: Path) -> FactorGraph:
    return instances.papers.published(data_dir, 0, "paper").graph


def rgm(data_dir: Path) -> FactorGraph:
    return instances.rgm.published(data_dir, 0).graph


def with_evidence(graph: FactorGraph, evidence: Evidence) -> FactorGraph:
    """The graph with this evidence in place of its own."""
    return FactorGraph(graph.variables, graph.groups, evidence, graph.log_constant)


def of_predicate(graph: FactorGraph, predicate: str | None) -> np.ndarray:
    """bool (observation,); None: all."""
    predicates = Predicates.of(graph.variables.names)
    of_observation = predicates.of_variable[graph.evidence.variable].tolist()
    return np.array([predicate in (None, predicates.names[p]) for p in of_observation], dtype=bool)


def num_shared_classes(graph: FactorGraph, lifting: Lifting) -> int:
    """Classes of a graph, counted among the variables that are hidden in a lifting."""
    other = lift(graph)
    class_of = dict(zip(other.hidden.tolist(), other.variable_to_class.tolist(), strict=True))
    return len({class_of[variable] for variable in lifting.hidden.tolist()})


def num_without(lifting: Lifting, predicate: str | None) -> int:
    """Classes of the hidden variables without the evidence on a predicate."""
    graph, given = lifting.source, lifting.source.evidence
    keep = ~of_predicate(graph, predicate)
    fewer = Evidence(given.variable[keep], given.value[keep], given.var[keep])
    return num_shared_classes(with_evidence(graph, fewer), lifting)


def num_alike(lifting: Lifting, predicate: str | None) -> int:
    """Classes of the hidden variables if each predicate's reals had been observed at their mean."""
    graph, given = lifting.source, lifting.source.evidence
    value = given.value.copy()
    is_real = graph.variables.num_states[given.variable] == 0
    names = Predicates.of(graph.variables.names).names
    for name in names if predicate is None else [predicate]:
        chosen = is_real & of_predicate(graph, name)
        value[chosen] = value[chosen].mean() if chosen.any() else 0.0
    same = Evidence(given.variable, value, given.var)
    return num_shared_classes(with_evidence(graph, same), lifting)


def slow_grid_points(graph: FactorGraph) -> int:
    """Terms of the objective in a set, each with its grid."""
    num_states = graph.variables.num_states.tolist()
    scopes = {(variable,) for variable in range(graph.num_variables)}
    scopes |= {tuple(sorted(scope)) for group in graph.groups for scope in group.scope.tolist()}
    total = 0
    for scope in scopes:
        states = [num_states[variable] for variable in scope]
        nodes = nodes_per_slot(states.count(0))
        total += int(np.prod([count or nodes for count in states]))
    return total


def test_the_evidence_that_breaks_most_symmetry_is_named(data_dir: Path) -> None:
    lifting = lift(papers(data_dir))
    observed = ["PaperPopularity", "TopicPopularity", "PaperIn"]

    explanation = lifting.explain()

    single = {name: num_without(lifting, name) for name in observed}
    first = explanation.effects[0].predicate
    assert first is not None
    assert single[first] == min(single.values())
    assert (
        f"Of all predicates, the evidence on {first} breaks most symmetry: without it there would "
        f"be {single[first]:,} classes, not {lifting.num_classes:,}."
    ) in " ".join(str(explanation).split())
    assert {effect.predicate: effect.num_without for effect in explanation.effects} == {
        **single,
        None: num_without(lifting, None),
    }
    broken = [effect.num_broken for effect in explanation.effects[:-1]]
    assert broken == sorted(broken, reverse=True)
    assert all(e.num_broken == lifting.num_classes - e.num_without for e in explanation.effects)


@pytest.mark.parametrize("make", [papers, rgm], ids=lambda make: make.__name__)
def test_values_are_told_from_who_is_observed(make, data_dir: Path) -> None:
    lifting = lift(make(data_dir))

    explanation = lifting.explain()

    first_level = next(iter(coarse_to_fine(lifting.source)))
    assert explanation.num_coarsest == first_level.lifting.num_classes
    for effect in explanation.effects:
        if effect.predicate == "PaperIn":
            assert effect.num_alike is None
        else:
            assert effect.num_alike == num_alike(lifting, effect.predicate)


@given(symmetric_graphs(), st.sampled_from(["x", "abc"]))
def test_effects_are_those_of_lifting_again(graph: FactorGraph, letters: str) -> None:
    names = [f"{letters[i % len(letters)]}({i})" for i in range(graph.num_variables)]
    old = graph.variables
    variables = Variables(old.domains, old.domain_id, Names.listed(names), old.multiplicity)
    graph = FactorGraph(variables, graph.groups, graph.evidence, graph.log_constant)
    lifting = lift(graph)

    explanation = lifting.explain()

    for effect in explanation.effects:
        assert effect.num_without == num_without(lifting, effect.predicate)
        chosen = of_predicate(graph, effect.predicate)
        times = chosen * old.multiplicity[graph.evidence.variable]
        assert effect.num_observed + effect.num_measured == times.sum()
        assert effect.num_measured == times[graph.evidence.var > 0].sum()
    if explanation.num_coarsest is not None:
        first_level = next(iter(coarse_to_fine(graph)))
        assert explanation.num_coarsest == first_level.lifting.num_classes
    assert sum(effect.predicate is None for effect in explanation.effects) == (
        len(explanation.effects) > 1
    )


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_grid_points_are_those_of_distinct_scopes(model: ZooModel) -> None:
    lifting = lift(model.graph())

    for graph in (lifting.ground, lifting.graph):
        assert Size.of(graph).num_grid_points == slow_grid_points(graph)


@given(symmetric_graphs(evidence=False))
def test_grid_points_of_random_graphs(graph: FactorGraph) -> None:
    graph = graph.condition()

    assert Size.of(graph).num_grid_points == slow_grid_points(graph)


def test_scopes_of_the_same_variables_are_one_term_whatever_their_order() -> None:
    variables = {"d": boolean, "x": real, "y": real}
    pair = ConditionalQuadratic.product(-0.1)
    gated = pair.times([0.0, 1.0])
    once = [(pair, ["x", "y"]), (gated, ["d", "x", "y"])]
    again = [(pair, ["y", "x"]), (gated, ["d", "y", "x"])]

    few = Size.of(FactorGraph.build(variables, once)).num_grid_points
    many = Size.of(FactorGraph.build(variables, [*once, *again])).num_grid_points

    assert few == many == 2 + 12 + 12 + 5 * 5 + 2 * 5 * 5


def test_a_slot_of_any_size_counts_the_states_of_its_variable() -> None:
    agree = Function(lambda a, b: -1.0 * (a != b), num_discrete=2)
    graph = mixed_cardinality_loop()
    group = FactorGroup(agree, np.array([[0, 1], [1, 2], [0, 3]]))  # 2 x 3, 3 x 4, 2 x 2
    with_function = FactorGraph(graph.variables, (group,))

    found = Size.of(with_function).num_grid_points

    assert found == 2 + 3 + 4 + 2 + 3 + 6 + 12 + 4


def test_a_graph_without_evidence_is_explained_by_its_classes() -> None:
    explanation = lift(toy_hybrid_mln()).explain()

    assert (explanation.ground.num_variables, explanation.lifted.num_variables) == (21, 5)
    assert (explanation.ground.num_factors, explanation.lifted.num_factors) == (24, 3)
    assert explanation.ground.num_grid_points == 16 * 2 + 5 * 12 + 12 * 8 + 6 * 50 + 6 * 25
    assert explanation.lifted.num_grid_points == 3 * 2 + 2 * 12 + 8 + 50 + 25
    sizes = {one.predicate: one.num_variables for one in explanation.largest}
    assert sizes == {"AInBox": 4, "BInBox": 6, "attractedTo": 6, "posA": 2, "posB": 3}
    assert explanation.largest[-1].examples == ("posA(a0)", "posA(a1)")
    assert (explanation.num_alone, explanation.effects) == (0, ())
    text = " ".join(str(explanation).split())
    assert "A step of variational inference on the lifted graph should be about 5.6 times" in text
    assert repr(explanation) == "Explanation(21 variables in 5 classes, speed-up 5.65)"


def test_classes_of_one_size_are_counted_together() -> None:
    graph = friends_and_smokers(6).observe({"Smokes(p0)": True, "Smokes(p1)": False})

    explanation = lift(graph).explain()

    sizes = [(one.predicate, one.num_classes, one.num_variables) for one in explanation.largest]
    # Friendships with p0 and with p1, whoever is named first, and the two between them.
    friends = [("Friends", 1, 12), ("Friends", 2, 8), ("Friends", 1, 2)]
    assert sizes == [*friends[:2], ("Smokes", 1, 4), ("Cancer", 1, 4), friends[2]]
    assert "2 of 40 variables are alone in their class." in str(explanation)


def test_a_model_without_look_alikes_is_said_to_be_one() -> None:
    explanation = lift(mixed_cardinality_loop()).explain()

    assert explanation.speed_up == 1
    assert not explanation.helps
    text = " ".join(str(explanation).split())
    assert "Lifting does not help here: by its grid points a step of variational" in text
    assert "hardly any look-alike variables: 5 classes of 5 variables." in text


def test_evidence_is_not_blamed_for_a_model_without_look_alikes() -> None:
    explanation = lift(mixed_cardinality_loop().observe({"a": True})).explain()

    text = " ".join(str(explanation).split())
    assert "without any evidence there are still 4 classes of 4 variables" in text
    assert "coarse-to-fine" not in text


def chain_of_reals(num_reals: int) -> FactorGraph:
    """A ring, each real with a measurement that follows it."""
    ring = range(num_reals)
    variables = {f"x({i})": real for i in ring} | {f"seen({i})": real for i in ring}
    return FactorGraph.build(
        variables,
        [
            (ConditionalQuadratic.square(-0.5), [[f"x({i})"] for i in ring]),
            (
                ConditionalQuadratic.product(0.1),
                [[f"x({i})", f"x({(i + 1) % num_reals})"] for i in ring],
            ),
            (
                ConditionalQuadratic.linear_gaussian([1.0], 1.0),
                [[f"seen({i})", f"x({i})"] for i in ring],
            ),
        ],
    )


def test_different_values_are_a_reason_to_go_from_coarse_to_fine() -> None:
    graph = chain_of_reals(10).observe({f"seen({i})": i**2 for i in range(10)})

    explanation = lift(graph).explain()

    (effect,) = explanation.effects
    assert (effect.predicate, effect.num_observed) == ("seen", 10)
    assert (effect.num_without, effect.num_broken, effect.num_alike) == (1, 9, 1)
    text = " ".join(str(explanation).split())
    assert "Lifting does not help here" in text
    assert "Most of it is broken by values that differ, not by who is observed" in text
    assert "begins with 1 class." in text


def test_who_is_observed_is_no_reason_to_go_from_coarse_to_fine() -> None:
    graph = chain_of_reals(10).observe({"seen(0)": 1.0, "seen(1)": 1.5, "seen(3)": 2.0})

    explanation = lift(graph).explain()

    (effect,) = explanation.effects
    assert (effect.num_without, effect.num_alike) == (2, 17)
    text = " ".join(str(explanation).split())
    assert "It is broken by who is observed, not by the values" in text
    assert "coarse-to-fine lifting does not help, it would begin with 17 classes." in text


def test_evidence_that_each_breaks_all_symmetry_is_blamed_together() -> None:
    values = {f"seen({i})": i**2 for i in range(10)}
    measured = {f"x({i})": Soft(np.sqrt(i), 0.5) for i in range(10)}
    graph = chain_of_reals(10).observe(values | measured)

    explanation = lift(graph).explain()

    assert [effect.num_without for effect in explanation.effects] == [10, 10, 1]
    assert (explanation.num_observed, explanation.num_measured) == (10, 10)
    assert [effect.num_observed for effect in explanation.effects] == [0, 10, 10]
    assert [effect.num_measured for effect in explanation.effects] == [10, 0, 10]
    text = " ".join(str(explanation).split())
    assert (
        "Evidence on several predicates breaks symmetry: without any there would be 1 class, not "
        "10; without that on a single predicate there would still be 10 or more."
    ) in text


def test_evidence_may_restore_symmetry() -> None:
    graph = FactorGraph.build(
        {"hub(0)": boolean, "hub(1)": boolean} | {f"x({i})": boolean for i in range(4)},
        [
            (Table.shared([0.1, 0.7]), ["hub(0)"]),
            (
                Table.shared([[0.0, 0.3], [0.5, 0.2]]),
                [["hub(0)", "x(0)"], ["hub(0)", "x(1)"], ["hub(1)", "x(2)"], ["hub(1)", "x(3)"]],
            ),
        ],
    ).observe({"hub(0)": True, "hub(1)": True})

    explanation = lift(graph).explain()

    (effect,) = explanation.effects
    assert (effect.num_without, effect.num_broken, effect.num_alike) == (2, -1, None)
    assert "The evidence breaks no symmetry." in str(explanation)


def test_nothing_is_left_to_lift_when_all_is_observed() -> None:
    graph = FactorGraph.build({"a": boolean, "b": boolean}, []).observe({"a": True, "b": False})

    explanation = lift(graph).explain()

    assert "All variables are observed: there is nothing to lift." in str(explanation)
    assert explanation.effects == ()


def test_a_model_without_variables_is_said_to_be_one() -> None:
    explanation = lift(FactorGraph.build({}, [])).explain()

    assert (explanation.speed_up, explanation.helps) == (1, False)
    assert str(explanation).endswith("\n\nThe model has no variables.")
    assert ["variables", "0", "0", "1.00"] in [x.split() for x in str(explanation).splitlines()]


def test_one_is_one_variable_in_one_class() -> None:
    graph = FactorGraph.build({"a": boolean}, [])

    lifting = lift(graph)

    assert repr(lifting) == "Lifting(1 hidden variable in 1 class, 0 factors in 0, exact)"
    assert "hardly any look-alike variables: 1 class of 1 variable." in str(lifting.explain())
    assert "1 of 1 variable is alone in its class." in alone(lifting.explain())


def test_evidence_that_breaks_equally_much_is_named_together() -> None:
    each = range(6)
    follows = ConditionalQuadratic.linear_gaussian([1.0], 1.0)
    graph = FactorGraph.build(
        {f"{name}({i})": real for name in ("x", "y", "seen_x", "seen_y") for i in each},
        [
            (ConditionalQuadratic.square(-0.5), [[f"x({i})"] for i in each]),
            (ConditionalQuadratic.square(-0.7), [[f"y({i})"] for i in each]),
            (follows, [[f"seen_{name}({i})", f"{name}({i})"] for name in "xy" for i in each]),
        ],
    ).observe({f"seen_{name}({i})": float(i) for name in "xy" for i in each})

    explanation = lift(graph).explain()

    assert [effect.num_broken for effect in explanation.effects] == [5, 5, 10]
    text = " ".join(str(explanation).split())
    assert (
        "The evidence on seen_x and seen_y breaks most symmetry, on each of them as much: without "
        "that on one of them there would be 7 classes, not 12."
    ) in text


def test_the_only_evidence_is_not_compared_with_others() -> None:
    graph = chain_of_reals(10).observe({f"seen({i})": i**2 for i in range(10)})

    text = " ".join(str(lift(graph).explain()).split())

    assert (
        "The evidence on seen breaks symmetry: without it there would be 1 class, not 10." in text
    )


def test_variables_that_merge_do_not_help_where_wide_factors_do_not() -> None:
    alike = [f"a({i})" for i in range(4)]
    wide = [f"b({i})" for i in range(6)]
    table = Table.shared(np.random.default_rng(0).normal(size=(2,) * 6))
    graph = FactorGraph.build(
        dict.fromkeys([*alike, *wide], boolean),
        [(Table.shared([0.1, 0.2]), [[name] for name in alike]), (table, wide)],
    )

    explanation = lift(graph).explain()

    assert (explanation.ground.num_joint_points, explanation.lifted.num_joint_points) == (64, 64)
    assert explanation.speed_up == pytest.approx(84 / 78)
    text = " ".join(str(explanation).split())
    assert (
        "Variables merge, 10 into 7 classes, but 76% of the grid points are of factors with "
        "several variables, and few of these merge."
    ) in text


def test_a_coarse_lifting_is_explained_without_judging_evidence() -> None:
    graph = chain_of_reals(6).observe({f"seen({i})": float(i) for i in range(6)})
    coarsest = next(iter(coarse_to_fine(graph))).lifting

    explanation = coarsest.explain()

    assert (explanation.is_exact, explanation.effects) == (False, ())
    assert explanation.lifted.num_variables == 1
    assert "measured for exact liftings" in str(explanation)


def test_an_explanation_is_numbers_that_json_takes(data_dir: Path) -> None:
    explanation = lift(rgm(data_dir)).explain()

    result = json.loads(json.dumps(explanation.to_dict()))

    assert result == explanation.to_dict()
    assert result["speed_up"] == pytest.approx(
        result["ground"]["num_grid_points"] / result["lifted"]["num_grid_points"]
    )
    assert [effect["predicate"] for effect in result["evidence"]] == [
        "loss",
        "market",
        "revenue",
        None,
    ]


def paper_explanations(data_dir: Path) -> dict[str, Explanation]:
    sources = {
        "toy": instances.toy.instance().graph,
        "papers": papers(data_dir),
        "rgm": rgm(data_dir),
        "tree": instances.kalman.published(data_dir, "tree", 0, "paper").graph,
        "cycle": instances.kalman.published(data_dir, "cycle", 0, "paper").graph,
    }
    return {name: lift(graph).explain() for name, graph in sources.items()}


def test_texts_fit_a_terminal(data_dir: Path) -> None:
    for explanation in paper_explanations(data_dir).values():
        lines = str(explanation).splitlines()

        assert len(lines) <= 30
        assert max(map(len, lines)) <= 80
        assert not any(line.endswith(" ") for line in lines)


def test_progress_goes_from_nothing_to_all(data_dir: Path) -> None:
    told: list[tuple[float, str]] = []

    lift(papers(data_dir)).explain(progress=lambda share, what: told.append((share, what)))

    shares = [share for share, _ in told]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert all(a <= b for a, b in itertools.pairwise(shares))
    assert any("without the evidence on PaperIn" in what for _, what in told)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["posA(a)", "posA(b)", "on", "posB(a)", "posB(b)", "posA(c)"], ["posA", "on", "posB"]),
        (["x1", "x2", "y1", "y2"], ["x", "y"]),
        (["cold", "wet", "windy"], ["variables"]),
        (["1", "2", "3", "4"], ["variables"]),
    ],
)
def test_predicates_are_read_off_names_given_one_by_one(
    names: list[str], expected: list[str]
) -> None:
    found = Predicates.of(Names.listed(names))

    assert list(found.names) == expected
    assert len(found.of_variable) == len(names)
    for name, place in zip(names, found.of_variable.tolist(), strict=True):
        assert found.names[place] in (name.partition("(")[0].rstrip("0123456789"), "variables")


def test_predicates_of_some_variables_are_those_of_all() -> None:
    names = friends_and_smokers(4).variables.names
    ids = np.array([0, 3, 5, 9, 17])

    found = Predicates.of(names.take(ids))

    assert [found.names[place] for place in found.of_variable.tolist()] == [
        "Smokes",
        "Smokes",
        "Cancer",
        "Friends",
        "Friends",
    ]


def test_numbered_names_are_one_predicate() -> None:
    found = Predicates.of(Names.numbered(3))

    assert (found.names, found.of_variable.tolist()) == (("x",), [0, 0, 0])
