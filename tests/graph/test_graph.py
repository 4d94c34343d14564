"""Domains, variables, groups and graphs: what they hold, and what they refuse at construction."""

import dataclasses

import numpy as np
import pytest

import hylift as hl
import zoo
from hylift.errors import HyliftError, ModelError, UnknownNameError
from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Soft,
    Variables,
    boolean,
    categorical,
    interval,
    merge_groups,
    real,
)
from hylift.potentials import ConditionalQuadratic, Function, Table

PAIR = Table.shared([[0.0, 1.0], [2.0, 3.0]])


# Domains


def test_domains_say_what_they_are() -> None:
    assert boolean.states == ("false", "true")
    assert categorical(3).states == ("0", "1", "2")
    assert categorical(["red", "green"]).num_states == 2
    assert (real.is_discrete, real.lower, real.upper, real.num_states) == (
        False,
        -np.inf,
        np.inf,
        0,
    )
    assert (interval(0, 1).lower, interval(0, 1).upper) == (0.0, 1.0)
    assert (interval(0, np.inf).lower, interval(0, np.inf).upper) == (0.0, np.inf)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: categorical([]), "a categorical variable needs at least one state"),
        (lambda: categorical(0), "a categorical variable has 1 to 1000000 states, not 0"),
        (
            lambda: categorical(["a", "b", "a"]),
            "states must differ from each other: ['a', 'b', 'a']",
        ),
        (lambda: interval(1, 1), "an interval needs lower < upper, not [1.0, 1.0]"),
        (lambda: interval(2, 1), "an interval needs lower < upper, not [2.0, 1.0]"),
        (lambda: interval(np.nan, 1), "an interval needs lower < upper, not [nan, 1.0]"),
    ],
)
def test_an_empty_domain_is_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


def test_a_number_of_states_may_be_any_integer() -> None:
    assert categorical(np.int64(3)).states == ("0", "1", "2")


# Variables


def test_variables_share_domains() -> None:
    variables = Variables.named({"a": boolean, "b": categorical(3), "c": boolean, "x": real})

    assert len(variables) == 4
    assert len(variables.domains) == 3
    assert variables.num_states.tolist() == [2, 3, 2, 0]
    assert variables.domain(2) == boolean
    assert variables.lower.tolist() == [-np.inf] * 4


def test_some_variables_keep_names_domains_and_multiplicities() -> None:
    variables = Variables((boolean, real), [0, 1, 0], Names.listed(["a", "x", "b"]), [1, 2, 3])

    some = variables.take(np.array([1, 2]))

    assert some.names.render().to_pylist() == ["x", "b"]
    assert some.num_states.tolist() == [0, 2]
    assert some.multiplicity.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Variables((boolean,), [0, 0], Names.numbered(3), [1, 1]),
            "2 domains, 3 names and 2 multiplicities: there must be one of each",
        ),
        (
            lambda: Variables((boolean,), [0, 1], Names.numbered(2), [1, 1]),
            "variable 'x1' has domain 1, but there are 1 domains",
        ),
        (
            lambda: Variables((boolean,), [0, 0], Names.numbered(2), [1, 0]),
            "variable 'x1' has multiplicity 0.0: it must be positive",
        ),
        (
            lambda: Variables((boolean,), [0], Names.numbered(1), [np.nan]),
            "variable 'x0' has multiplicity nan: it must be positive",
        ),
        (
            lambda: Variables((boolean,), [0.0], Names.numbered(1), [1.0]),
            "ids must be integers, not float64",
        ),
    ],
)
def test_variables_that_do_not_hold_together_are_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


# Groups


def test_factors_share_one_row_or_have_one_each() -> None:
    shared = FactorGroup(PAIR, [[0, 1], [1, 2]])
    own = FactorGroup(Table(np.zeros((2, 2))), [[0], [1]])

    assert shared.row.tolist() == [0, 0]
    assert own.row.tolist() == [0, 1]
    assert shared.multiplicity.tolist() == [1.0, 1.0]
    assert (len(shared), shared.arity) == (2, 2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: FactorGroup(PAIR, [[0], [1]], label="rule 7"),
            "group 'rule 7': the potential has 2 slots, so its scope is an array (factor, 2), "
            "not one of shape (2, 1)",
        ),
        (lambda: FactorGroup(PAIR, [0, 1]), "a group without label: the potential has 2 slots"),
        (
            lambda: FactorGroup(PAIR, [[0, 1]], row=[1]),
            "factor 0 of a group without label uses parameter row 1, but the potential has 1",
        ),
        (lambda: FactorGroup(PAIR, [[0, 1]], row=[-1]), "uses parameter row -1"),
        (
            lambda: FactorGroup(PAIR, [[0, 1]], row=[0, 0]),
            "1 factors need one row each, not an array of shape (2,)",
        ),
        (
            lambda: FactorGroup(Table(np.zeros((3, 2))), [[0], [1]]),
            "2 factors and 3 parameter rows: give one row for all, one per factor, or say",
        ),
        (
            lambda: FactorGroup(PAIR, [[0, 1]], multiplicity=[1.0, 1.0]),
            "1 factors need one multiplicity each, not an array of shape (2,)",
        ),
        (
            lambda: FactorGroup(PAIR, [[0, 1], [1, 2]], multiplicity=[1.0, -2.0]),
            "factor 1 of a group without label has multiplicity -2.0: it must be positive",
        ),
        (
            lambda: FactorGroup(PAIR, [[0, 1]], multiplicity=[np.inf]),
            "has multiplicity inf: it must be positive",
        ),
        (lambda: FactorGroup(PAIR, [[0.0, 1.0]]), "ids must be integers, not float64"),
        (lambda: FactorGroup(PAIR, [[0, 2**40]]), "ids must fit int32"),
    ],
)
def test_a_group_that_does_not_hold_together_is_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


def test_merging_groups_keeps_the_density() -> None:
    rng = np.random.default_rng(0)
    groups = [
        FactorGroup(Table(rng.normal(size=(2, 2))), [[0], [1]], multiplicity=[1.0, 2.0], label="a"),
        FactorGroup(PAIR, [[0, 1]], label="b"),
        FactorGroup(Table(rng.normal(size=(3, 2))), [[1], [2]], row=[2, 0], label="c"),
    ]
    variables = Variables.uniform(boolean, 3)

    merged = merge_groups(groups)

    assert [group.label for group in merged] == ["a + c", "b"]
    for values in ([0, 0, 0], [1, 0, 1], [0, 1, 1]):
        before = FactorGraph(variables, tuple(groups)).log_density(np.array(values))
        after = FactorGraph(variables, merged).log_density(np.array(values))
        assert after == pytest.approx(before, abs=1e-12)


# Graphs


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: FactorGraph(
                Variables.uniform(boolean, 2), (FactorGroup(PAIR, [[0, 1], [1, 2]], label="r"),)
            ),
            "factor 1 of group 'r': slot 1 is variable 2, but the graph has 2 variables",
        ),
        (
            lambda: FactorGraph(Variables.uniform(boolean, 2), (FactorGroup(PAIR, [[0, -1]]),)),
            "slot 1 is variable -1, but the graph has 2 variables",
        ),
        (
            lambda: FactorGraph.build({"a": boolean, "b": categorical(3)}, [(PAIR, ["a", "b"])]),
            "factor 0 of group 'factors 0': slot 1 takes a variable of 2 states, "
            "but 'b' is a variable of 3 states",
        ),
        (
            lambda: FactorGraph.build({"a": boolean, "x": real}, [(PAIR, ["x", "a"])]),
            "slot 0 takes a variable of 2 states, but 'x' is a real",
        ),
        (
            lambda: FactorGraph.build({"a": boolean}, [(ConditionalQuadratic.square(-1.0), ["a"])]),
            "slot 0 takes a real, but 'a' is a variable of 2 states",
        ),
        (
            lambda: FactorGraph.build({"a": boolean, "b": boolean}, [(PAIR, ["b", "b"])]),
            "'b' is in slots 0 and 1; a factor may have a variable only once",
        ),
        (
            lambda: FactorGraph.build(
                {"a": boolean, "b": boolean}, [(PAIR, [["a", "b"], ["a"]])]
            ),
            "the scopes of factors 0 have different lengths: [['a', 'b'], ['a']]",
        ),
    ],
)  # fmt: skip
def test_a_graph_that_does_not_hold_together_is_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


def test_an_unknown_name_in_a_scope_suggests_the_closest() -> None:
    with pytest.raises(UnknownNameError, match=r"no variable 'rian'\. Did you mean 'rain'\?"):
        FactorGraph.build({"rain": boolean}, [(Table.shared([0.0, 0.0]), ["rian"])])


def test_a_class_of_several_may_stand_twice_in_a_factor() -> None:
    variables = Variables((boolean,), [0], Names.numbered(1), [3.0])

    graph = FactorGraph(variables, (FactorGroup(PAIR, [[0, 0]], multiplicity=[6.0]),))

    assert graph.num_factors == 1


def test_a_function_takes_discrete_variables_of_any_size_and_then_reals() -> None:
    potential = Function(lambda a, x: a * x, num_discrete=1, num_reals=1)

    graph = FactorGraph.build({"a": categorical(3), "x": real}, [(potential, ["a", "x"])])

    assert graph.log_density(np.array([2.0, 1.5])) == 3.0
    with pytest.raises(ModelError, match="slot 0 takes a discrete variable, but 'x' is a real"):
        FactorGraph.build({"a": boolean, "x": real}, [(potential, ["x", "a"])])


def test_a_graph_by_names_is_the_graph_by_ids() -> None:
    by_name = FactorGraph.build({"a": boolean, "b": boolean}, [(PAIR, [["a", "b"], ["b", "a"]])])

    assert by_name.groups[0].scope.tolist() == [[0, 1], [1, 0]]
    assert (by_name.num_variables, by_name.num_factors) == (2, 2)
    assert repr(by_name) == "FactorGraph(2 variables, 2 factors in 1 group, 0 observed)"


def test_the_log_density_is_the_weighted_sum_of_factors_and_the_constant() -> None:
    variables = Variables.named({"a": boolean, "b": boolean, "x": real})
    groups = (
        FactorGroup(PAIR, [[0, 1], [1, 0]], multiplicity=[2.0, 0.5]),
        FactorGroup(ConditionalQuadratic.square(-0.5), [[2]]),
    )
    graph = FactorGraph(variables, groups, log_constant=10.0)

    assert graph.log_density(np.array([0, 1, 3.0])) == pytest.approx(10 + 2 * 1 + 0.5 * 2 - 4.5)


def test_an_impossible_assignment_has_log_density_minus_infinity() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.weighted(np.inf, [0, 1]), ["a"])])

    assert graph.log_density(np.array([0.0])) == -np.inf


def test_the_log_density_needs_a_value_per_variable() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 1.0]), ["a"])])

    with pytest.raises(ModelError, match=r"an assignment to 1 variables must have as many values"):
        graph.log_density(np.zeros(2))


@pytest.mark.parametrize("state", [-1.0, 0.5, 2.0, np.nan])
def test_the_log_density_of_what_is_no_state_is_refused(state: float) -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 7.0]), ["a"])])

    with pytest.raises(HyliftError):
        graph.log_density(np.array([state]))


# Degree


def test_the_degree_counts_factors_at_a_variable() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [(PAIR, [["a", "b"], ["b", "a"], ["a", "b"]]), (Table.shared([0.0, 1.0]), ["b"])],
    )

    assert graph.degree.tolist() == [3.0, 4.0, 0.0]
    assert graph.degree.dtype == np.float64
    assert FactorGraph.build({}, []).degree.tolist() == []


def test_the_degree_of_a_class_is_the_average_of_its_members() -> None:
    rng = np.random.default_rng(0)
    scope = np.stack([rng.permutation(20)[:2] for _ in range(60)])
    ground = FactorGraph(Variables.uniform(boolean, 20), (FactorGroup(PAIR, scope),))
    variable_to_class = rng.integers(0, 4, 20)
    size = np.bincount(variable_to_class)
    pairs, times = np.unique(variable_to_class[scope], axis=0, return_counts=True)
    classes = Variables((boolean,), np.zeros(4, dtype=np.int32), Names.numbered(4), size)
    lifted = FactorGraph(classes, (FactorGroup(PAIR, pairs, multiplicity=times),))

    average = np.bincount(variable_to_class, ground.degree) / size

    np.testing.assert_allclose(lifted.degree, average, rtol=1e-10)


# Immutability


def test_arrays_cannot_be_written() -> None:
    graph = zoo.toy_hybrid_mln().observe({"posA(a0)": Soft(1.0, 0.5)})
    arrays = [graph.variables.domain_id, graph.variables.multiplicity]
    arrays += [graph.evidence.variable, graph.evidence.value, graph.evidence.var]
    for group in graph.groups:
        arrays += [group.scope, group.row, group.multiplicity]

    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_attributes_cannot_be_set() -> None:
    graph = zoo.hard_clause()

    for thing, field in [
        (graph, "groups"),
        (graph.groups[0], "scope"),
        (graph.variables, "names"),
        (graph.evidence, "value"),
        (graph.groups[0].potential, "log_table"),
        (boolean, "states"),
    ]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, None)


def test_making_a_graph_leaves_the_given_arrays_writable() -> None:
    scope, multiplicity = np.array([[0, 1]], dtype=np.int32), np.ones(1)

    FactorGroup(PAIR, scope, multiplicity=multiplicity)

    scope[0, 0] = 1
    multiplicity[0] = 2.0


def test_observing_leaves_the_graph_as_it_was() -> None:
    graph = zoo.hard_clause()

    observed = graph.observe({"H": True})

    assert len(graph.evidence) == 0
    assert len(observed.evidence) == 1
    assert Evidence.none().variable.dtype == np.int32


@pytest.mark.parametrize(
    ("lower", "upper", "reason"),
    [
        (0.0, 1e-300, r"interval \[0, 1e-300\] is narrower than 1e-60: give it another unit"),
        (-1e308, 1e308, r"interval \[-1e\+308, 1e\+308\] has a bound beyond 1e\+60: leave it out"),
        (1e200, np.inf, r"interval \[1e\+200, inf\] has a bound beyond 1e\+60: leave it out"),
    ],
)
def test_intervals_whose_powers_have_no_digits_are_refused(
    lower: float, upper: float, reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        interval(lower, upper)


@pytest.mark.parametrize("scale", [1e-58, 1e58])
@pytest.mark.parametrize("method", ["exact", "mean-field", "ep", "smc", "epbp"])
def test_intervals_of_any_unit_have_answers(method: str, scale: float) -> None:
    graph = FactorGraph.build({"x": interval(0.0, scale)}, [])

    found = hl.infer(graph, method, check=False).marginal("x")

    assert found.mean / scale == pytest.approx(0.5, rel=1e-6)
    assert found.std / scale == pytest.approx(12**-0.5, rel=1e-6)


def test_an_extreme_interval_of_a_model_is_refused_at_its_place() -> None:
    with pytest.raises(ModelError, match=r"<text>:1:9: the interval \[0, 1e-300\] is narrower"):
        hl.parse("r: real[0, 1e-300]\n-1 r^2")
