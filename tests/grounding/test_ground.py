"""Grounded models against the slow evaluator, grounding by grounding."""

from __future__ import annotations

import pytest

from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import Soft
from hylift.grounding import World, ground, ground_world, size_estimate
from hylift.language import ModelWarning, parse
from slow_grounding import agree

pytestmark = pytest.mark.filterwarnings("ignore::hylift.language.report.ModelWarning")

PEOPLE = """
person = {Ann, Bob, Cid}
Smokes(person)
Friends(person, person)
Cancer(person)
age(person): real
"""

OPEN = {
    "implication": "1.5 Smokes(x) => Cancer(x)",
    "two of a kind": "1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))",
    "transitive": "0.7 Friends(x, y) ^ Friends(y, z) => Friends(x, z)",
    "where": "0.7 Friends(x, y) where x != y",
    "where less": "0.7 Friends(x, y) where x < y, y != Cid",
    "where equal": "0.7 Friends(x, y) ^ Smokes(z) where x = y",
    "comparison inside": "0.7 Friends(x, y) ^ x != y => Smokes(y)",
    "comparison that guards nothing": "0.7 (x = y) <=> Friends(x, y)",
    "constant": "2 Friends(Ann, x) ^ Smokes(Bob)",
    "exists": "0.4 EXIST y Friends(x, y)",
    "forall": "0.4 FORALL y (Friends(x, y) => Smokes(y))",
    "exists other": "0.4 EXIST y (y != x ^ Friends(x, y))",
    "numeric": "0.3 age(x) = 2.5",
    "products": "0.3 Friends(x, y) * (age(x) = age(y)) + Smokes(x) * age(x)",
    "function": "0.3 Smokes(x) * exp(-age(x)^2) + abs(age(x) - 1)",
    "inequality": "0.3 age(x) > age(y)  where x != y",
    "slope": "0.3 (age(x) > 0.5; slope=3)",
    "gaussian": "gaussian(age(x), age(y); mean=[1, 2], cov=[[2, 0.5], [0.5, 1]]) where x < y",
    "normal": "normal(age(x) | 2*Smokes(x) - 1, 1 + 3*Cancer(x))",
    "neighbour": "normal(age(x+1) | 0.9*age(x), 0.5)",
    "neighbours": "0.5 Smokes(x) ^ Smokes(x+1) => Smokes(x+2)",
    "weights per constant": "{Ann: 0.5, *: -0.25} Smokes(+x)",
    "weights per pair": "{(Ann, Bob): 0.5, (Bob, Cid): 2, *: 1} Friends(+x, +y) ^ Smokes(x)",
    "plus with one weight": "0.5 Smokes(+x)",
    "symmetric difference": "0.3 age(x)*age(y)",
}


@pytest.mark.parametrize("rule", OPEN.values(), ids=OPEN)
def test_open_worlds_ground_to_the_density_of_the_rules(rule):
    agree(PEOPLE + rule + "\n")


TRUE = [
    ("Friends", "Ann", "Bob"),
    ("Friends", "Bob", "Cid"),
    ("Friends", "Cid", "Cid"),
    ("Smokes", "Bob"),
]

CLOSED = {
    "guard of an implication": "1.1 Friends(x, y) ^ Smokes(x) => Cancer(y)",
    "product": "0.3 Friends(x, y) * (age(x) = age(y))",
    "product with a constant": "0.3 1 + Friends(x, y) * (age(x) = age(y))",
    "negated guard": "0.8 !Friends(x, y) ^ Cancer(x)",
    "consequent": "0.8 Cancer(x) ^ Cancer(y) => Friends(x, y)",
    "two guards of one table": "0.7 Friends(x, y) ^ Friends(y, z) => Cancer(z)",
    "guards with two constants": "0.7 Smokes(x) => (Friends(x, y) ^ Cancer(y))",
    "no guard": "0.7 Cancer(x) <=> Smokes(x)",
    "no guard of two": "0.7 (Cancer(x) <=> Friends(x, y)) v Smokes(y)",
    "nothing open": "0.7 Smokes(x) <=> Friends(x, y)",
    "nothing open, a guard": "0.7 Smokes(x) => Friends(x, y)",
    "where": "0.7 Cancer(x) => Cancer(y) where Friends(x, y)",
    "where not": "0.7 Cancer(x) => Cancer(y) where !Friends(x, y), x != y",
    "where and plus": "{Ann: 1, *: 2} Friends(+x, y) => Cancer(y)",
    "plus and condition": "{Ann: 1, *: 2} Friends(+x, y) => Cancer(y) where x != y",
    "constants in guards": "0.9 Friends(Ann, y) ^ Smokes(Bob) => Cancer(y)",
    "shifted guard": "0.9 Friends(x, x+1) => Cancer(x)",
    "exists closed": "0.9 (EXIST y Friends(x, y)) => Cancer(x)",
    "forall mixed": "0.9 FORALL y (Friends(x, y) => Cancer(y))",
    "gated function": "0.3 Friends(x, y) * exp(-(age(x) - age(y))^2)",
}


@pytest.mark.parametrize("rule", CLOSED.values(), ids=CLOSED)
def test_closed_worlds_ground_to_the_density_of_the_rules(rule):
    agree(PEOPLE + rule + "\n", true_atoms=TRUE, closed=["Friends", "Smokes"])


KINDS = """
segment = {S1, S2, S3}
kind = {Wall, Door, Other}
Kind(segment, kind!)
Near(segment, segment)
size(segment): real
"""

CATEGORICAL = {
    "one state": "0.5 Kind(s, Door)",
    "all states": "0.5 Kind(s, k)",
    "weights per state": "{Wall: 1, Door: 2, Other: 3} Kind(s, +k)",
    "two of one variable": "0.5 Kind(s, k) v Kind(s, l) where k != l",
    "two variables": "0.5 Near(s, t) ^ Kind(s, k) => Kind(t, k)",
    "numeric": "0.5 Kind(s, Door) * (size(s) = 0.1) + Kind(s, Wall) * (size(s) = 2)",
    "exists": "0.5 EXIST k (Kind(s, k) ^ k != Wall)",
    "function": "0.5 Kind(s, k) * exp(-size(s)^2)",
}


@pytest.mark.parametrize("rule", CATEGORICAL.values(), ids=CATEGORICAL)
def test_categorical_predicates_ground_to_the_density_of_the_rules(rule):
    agree(KINDS + rule + "\n")


def test_a_closed_guard_keeps_only_its_true_rows():
    grounding = agree(
        PEOPLE + "0.7 Friends(x, y) * (age(x) = age(y))\n", true_atoms=TRUE, closed=["Friends"]
    )

    assert grounding.graph.num_factors == 3
    assert grounding.statistics().num_groundings == 9


def test_atoms_that_no_factor_uses_are_no_variables():
    graph = agree(PEOPLE + "0.7 Friends(x, y) where x != y\n").graph

    assert graph.num_variables == 6
    assert graph.variables.names.render().to_pylist()[:2] == [
        "Friends(Ann,Bob)",
        "Friends(Ann,Cid)",
    ]


def test_neighbours_of_numbers_with_gaps_are_refused():
    model = parse("level(year): real\nnormal(level(y+1) | level(y), 1)\n0.1 level(y) = 0\n")

    with pytest.raises(ModelError) as refusal:
        ground(model, {"level": [(1990, 1.0), (1992, 2.0)]})

    assert str(refusal.value).splitlines() == [
        "<text>:2:14: 'y+1' asks for neighbours in the type 'year', but its numbers have gaps: "
        "1992 follows 1990. List the type as a range, such as year = {1990, ..., 1992}",
        "    normal(level(y+1) | level(y), 1)",
        "                 ^^^",
    ]


def test_an_open_predicate_after_where_is_refused():
    model = parse(PEOPLE + "0.7 Cancer(x) where Friends(x, y)\n")

    with pytest.raises(
        ModelError, match=r"'where Friends\(x, y\)' requires a closed-world predicate"
    ):
        ground(model)


def test_observations_of_atoms_in_no_rule_are_noted():
    model = parse(PEOPLE + "0.7 Friends(x, y) where x != y\n")
    world = World.of(model, {"Friends(Ann, Ann)": True, "Friends(Ann, Bob)": True})

    grounding = ground_world(world)

    assert grounding.notes[0] == (
        "Friends: 1 of its 2 observed atoms is in no ground rule, e.g. Friends(Ann,Ann)"
    )
    assert len(grounding.graph.evidence) == 1


ATTENDANCE = """
    At(student, day)
    score(student, day): real
    skill(student): real
    normal(skill(s) | 0, 1)
    At(s, d) * normal(score(s, d) | skill(s), 1)
"""
PRESENT = [(105, "2023-06-11"), (106, "2023-06-11"), (106, "2023-06-12")]


def test_evidence_of_which_no_atom_stands_in_a_rule_is_doubted():
    scores = [(106, "11Jun2023", 2.0), (106, "12Jun2023", 3.0)]

    with pytest.warns(ModelWarning) as told:
        graph = ground(parse(ATTENDANCE), {"At": PRESENT, "score": scores}, closed=["At"])

    assert [str(warning.message) for warning in told] == [
        "score: none of its 2 observed atoms is in a ground rule, e.g. score(106,11Jun2023); "
        "rules about it have e.g. score(106,2023-06-11): do the keys of the tables agree?"
    ]
    assert len(graph.evidence) == 0


def test_the_only_observation_is_doubted_if_no_rule_has_it():
    scores = [(106, "11/06/2023", 2.0)]

    with pytest.warns(
        ModelWarning,
        match=r"^score: its only observed atom, score\(106,11/06/2023\), is in no ",
    ):
        ground(parse(ATTENDANCE), {"At": PRESENT, "score": scores}, closed=["At"])


def test_evidence_is_doubted_if_tables_that_rules_join_do_not_match():
    model = parse("At(student, day)\nExam(day)\nGood(student)\n1 At(s, d) ^ Exam(d) => Good(s)\n")
    evidence = {"At": PRESENT, "Good": [(105,), (106,)], "Exam": [("11Jun2023",)]}

    with pytest.warns(ModelWarning) as told:
        ground(model, evidence, closed=["At", "Exam"])

    assert [str(warning.message) for warning in told] == [
        "Good: none of its 2 observed atoms is in a ground rule, e.g. Good(105); rules about "
        "it have no groundings: do the keys of the tables agree?"
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rules", "exams"),
    [
        ("1 At(s, d) ^ Exam(d) => Good(s)\n", []),  # no exams at all
        ("1 At(s, d) ^ Exam(d) => Fine(s)\n", [("2023-06-11",)]),  # no rule about Good
    ],
)
def test_evidence_on_which_no_rule_bears_is_noted_only(rules, exams):
    model = parse(f"At(student, day)\nExam(day)\nGood(student)\nFine(student)\n{rules}")
    evidence = {"At": PRESENT, "Good": [(105,), (106,)], "Exam": exams}

    grounding = ground_world(World.of(model, evidence, closed=["At", "Exam"]))

    assert grounding.notes == (
        "Good: none of its 2 observed atoms is in a ground rule, e.g. Good(105)",
    )


def test_states_that_are_excluded_are_evidence_like_others():
    model = parse("At(room)\nMode(room, mode!)\n1 At(r) ^ Mode(r, On)\n1 At(r) ^ Mode(r, Off)\n")
    modes = [("a", "On", False), ("c", "On", False), ("c", "Eco", False)]

    grounding = ground_world(World.of(model, {"At": ["a"], "Mode": modes}, closed=["At"]))

    assert grounding.notes == (
        "Mode: 1 of its 2 observed atoms is in no ground rule, e.g. Mode(c)",
    )


def test_a_value_that_lacks_the_error_which_others_have_is_doubted():
    model = parse("condition(house): real\nnormal(condition(h) | 0, 1)\n")
    rows = [(105, 1.0, 0.5), (106, 2.0, None), (107, None, None)]

    with pytest.warns(ModelWarning) as told:
        graph = ground(model, {"condition": rows})

    assert [str(warning.message) for warning in told] == [
        "condition: 1 of its rows has no sd, and counts as exact (condition(106)): fill in the "
        "sd, or leave the row out"
    ]
    assert (graph.evidence.num_observed, graph.evidence.num_measured) == (1, 1)


def test_values_that_lack_errors_are_counted():
    model = parse("condition(house): real\nnormal(condition(h) | 0, 1)\n")
    rows = [(105, 1.0, 0.5), (106, 2.0, None), (107, 3.0, None)]

    with pytest.warns(
        ModelWarning,
        match=r"2 of its rows have no sd, and count as exact \(the first is condition\(106\)\): "
        "fill in the sd, or leave the rows out$",
    ):
        ground(model, {"condition": rows})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "evidence",
    [
        {"condition(105)": Soft(1.0, var=0.25), "condition(106)": 2.0},
        [{"condition": [(105, 1.0, 0.5)]}, {"condition": [(106, 2.0)]}],
        {"condition": [(105, 1.0, 0.5), (106, 2.0, 0.0)]},
    ],
)
def test_a_value_that_is_meant_as_exact_is_not_doubted(evidence):
    model = parse("condition(house): real\nnormal(condition(h) | 0, 1)\n")

    graph = ground(model, evidence)

    assert (graph.evidence.num_observed, graph.evidence.num_measured) == (1, 1)


def test_evidence_that_breaks_a_hard_rule_is_refused():
    model = parse(PEOPLE + "Smokes(x) => Friends(x, x).\n0.5 Cancer(x)\n")

    with pytest.raises(ImpossibleEvidenceError, match="in 1 of its groundings"):
        ground(model, {"Smokes(Ann)": True}, closed=["Smokes", "Friends"])


def test_size_estimates_count_factors_before_they_are_made():
    model = parse(PEOPLE + "0.7 Friends(x, y) * (age(x) = age(y))\n0.1 age(x) = 1\n")
    evidence = {"Friends(Ann, Bob)": True, "Friends(Bob, Cid)": True}

    size = size_estimate(model, evidence, closed=["Friends"])

    graph = ground(model, evidence, closed=["Friends"])
    assert size.num_factors == graph.num_factors == 5
    assert str(size) == f"3 variables, 5 factors, {size.num_bytes} bytes"
    assert graph.size_estimate().num_variables == 3


@pytest.mark.parametrize(
    ("rules", "true_atoms", "count"),
    [
        ("1 Cancer(x) ^ Friends(x, Ann)\n1 Cancer(x) ^ Friends(Ann, x)\n", (), 5),
        ("1 Cancer(x) ^ Friends(x, y) where x != y\n", (), 6),
        ("1 Cancer(x) where Friends(x, y)\n", [("Friends", "Ann", "Bob")], 1),
        ("1 Cancer(x) v EXIST y Friends(x, y)\n", (), 9),
        ("1 Cancer(x) ^ Friends(x, x+1)\n", (), 2),
    ],
)
def test_atoms_of_closed_predicates_are_counted(rules, true_atoms, count):
    grounding = agree(PEOPLE + rules, true_atoms=true_atoms, closed=["Friends"])

    counts = {p.name: p.num_atoms for p in grounding.statistics().predicates}
    assert counts["Friends"] == count


def test_a_constant_that_only_a_rule_has_is_doubted_if_the_data_has_one_like_it():
    model = parse("F(person, person)\nS(person)\n1 F(x, Robert) => S(x)\n")

    with pytest.warns(
        ModelWarning,
        match="the constant 'Robert' of type 'person' is in a rule, but in no table. "
        "Did you mean 'Rober'?",
    ):
        ground(model, {"F": [("Ann", "Rober")]})


def test_an_open_predicate_with_true_evidence_only_is_noted():
    model = parse(PEOPLE + "1 Friends(x, y) => Smokes(x)\n")

    grounding = ground_world(World.of(model, {"Friends(Ann, Bob)": True}))

    assert grounding.notes == (
        "'Friends' is open: the evidence names true atoms only, and all others (8) are hidden; "
        "closed=['Friends'] makes them false",
    )


@pytest.mark.filterwarnings("error")
def test_reals_that_are_all_observed_need_not_be_held():
    model = parse("age(person): real\nSick(person)\n0.02 Sick(x) * age(x)\n")

    graph = ground(model, {"age": [("Ann", 50), ("Bob", 20)]})

    assert graph.num_factors == 2


def test_a_variable_named_like_a_constant_of_the_data_is_doubted():
    model = parse("Is(day, weather)\nHappy(day)\n2 Is(d, sunny) => Happy(d)\n")

    with pytest.warns(ModelWarning, match="'sunny' is a variable here, although type 'weather'"):
        ground(model, {"Is": [("d1", "sunny"), ("d2", "rainy")]}, closed=["Is"])
