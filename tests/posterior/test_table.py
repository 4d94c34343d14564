"""Marginals by predicate, with a column per argument."""

from __future__ import annotations

import json

import pytest

from hylift.errors import ArgumentError, UnknownNameError
from hylift.grounding import ground
from hylift.inference import BVI, infer
from hylift.language import parse

MODEL = """
person = {Ann, "Bob, jr"}
kind = {A, B, C}
Friends(person, person)
Kind(person, kind!)
age(person): real
rain: boolean
1.1   Friends(x, y) => Kind(x, A)
0.3   rain * (age(x) = 3)
-0.1  age(x)^2
"""


@pytest.fixture(scope="module")
def posterior():
    return infer(ground(parse(MODEL), {'Friends(Ann, "Bob, jr")': True}))


def test_a_boolean_has_its_arguments_and_a_probability(posterior):
    table = posterior.table("Friends")

    assert table.column_names == ["person1", "person2", "prob", "verdict"]
    rows = table.to_pylist()
    assert [(row["person1"], row["person2"]) for row in rows] == [
        ("Ann", "Ann"),
        ("Bob, jr", "Ann"),
        ("Bob, jr", "Bob, jr"),
    ]
    assert rows[0]["prob"] == posterior.marginal("Friends(Ann,Ann)").prob("true")


def test_observed_atoms_are_there_when_asked_for(posterior):
    table = posterior.table("Friends", observed=True)

    assert table["prob"].to_pylist()[1] == 1.0
    assert table.num_rows == 4


def test_a_predicate_means_the_same_atoms_in_every_question(posterior):
    hidden = ["Friends(Ann,Ann)", 'Friends("Bob, jr",Ann)', 'Friends("Bob, jr","Bob, jr")']

    assert posterior.marginals("Friends")["atom"].to_pylist() == hidden
    assert posterior.marginals(["Friends"])["atom"].to_pylist() == hidden
    assert posterior.compare(posterior, "Friends").to_arrow().num_rows == 3
    assert len(posterior.to_pandas("Friends")) == 3
    assert posterior.marginals("Friends(*)").num_rows == 4
    assert posterior.marginals(["Friends(Ann,*)", "Friends"]).num_rows == 4


def test_a_predicate_that_is_all_observed_stands_for_all_its_atoms():
    seen = {f"Friends({x}, {y})": True for x in ("Ann", '"Bob, jr"') for y in ("Ann", '"Bob, jr"')}
    posterior = infer(ground(parse(MODEL), seen))

    assert posterior.marginals("Friends").num_rows == 4
    assert posterior.table("Friends")["prob"].to_pylist() == [1.0] * 4
    assert posterior.marginals()["atom"].to_pylist().count("Friends(Ann,Ann)") == 0


def test_joint_questions_about_a_predicate_leave_out_what_is_observed():
    seen = {"age(Ann)": 3.0}
    posterior = infer(ground(parse(MODEL), seen), BVI(1))

    assert posterior.sample(3, seed=0, atoms="age").column_names == ['age("Bob, jr")']
    assert posterior.joint("age").atoms == ('age("Bob, jr")',)
    assert posterior.joint("age(*)").atoms == ("age(Ann)", 'age("Bob, jr")')


def test_a_categorical_variable_has_a_column_per_state(posterior):
    table = posterior.table("Kind")

    assert table.column_names == ["person", "A", "B", "C", "verdict"]
    assert table.to_pylist()[0]["B"] == posterior.marginal("Kind(Ann)").prob("B")


def test_a_real_has_mean_deviation_and_quantiles(posterior):
    table = posterior.table("age")

    assert table.column_names == ["person", "mean", "std", "q05", "q50", "q95", "verdict"]
    assert table["std"].to_pylist()[1] == pytest.approx(
        posterior.marginal('age("Bob, jr")').std, rel=1e-12
    )


def test_a_predicate_without_arguments_is_one_row(posterior):
    assert posterior.table("rain").column_names == ["prob", "verdict"]
    assert posterior.table("rain").num_rows == 1


def test_the_deviation_is_that_of_the_marginals(posterior):
    marginals = posterior.marginals("age")

    assert posterior.table("age")["std"] == marginals["std"]
    assert marginals["atom"].to_pylist() == ["age(Ann)", 'age("Bob, jr")']


def test_a_predicate_asks_for_all_its_atoms_in_the_order_of_the_question(posterior, tmp_path):
    atoms = ["rain", "age", "Kind(*)", "age(Ann)"]

    posterior.write(tmp_path / "answers.json", atoms)

    written = json.loads((tmp_path / "answers.json").read_text())["marginals"]
    expected = ["rain", "age(Ann)", 'age("Bob, jr")', "Kind(Ann)", 'Kind("Bob, jr")']
    assert posterior.marginals(atoms)["atom"].to_pylist() == expected
    assert list(written) == expected
    figures = ["mean", "std", "mode", "quantiles"]
    assert list(written["age(Ann)"]) == [*figures, "verdict", "mean_error", "std_factor"]
    assert posterior.compare(posterior, "age").to_arrow().num_rows == 2


def test_a_state_is_not_asked_for_by_name(posterior):
    with pytest.raises(UnknownNameError) as refusal:
        posterior.marginal("Kind(Ann, A)")

    assert str(refusal.value) == (
        "there is no variable 'Kind(Ann, A)'. A state is not part of a name: 'Kind(Ann)' is the "
        "variable; its states are A, B, C."
    )


def test_an_unknown_predicate_suggests_the_closest(posterior):
    with pytest.raises(UnknownNameError, match="there is no predicate 'ages'"):
        posterior.table("ages")
    with pytest.raises(UnknownNameError, match=r"predicate 'age\(\*\)'. Did you mean 'age'\?"):
        posterior.table("age(*)")


def test_a_list_of_predicates_is_refused_by_its_value() -> None:
    graph = ground(parse("P(x)\nQ(x)\n1 P(x) ^ Q(x)"), {"x": ["a"]})

    with pytest.raises(ArgumentError, match=r"a predicate is a name, .* not \['P', 'Q'\]"):
        infer(graph).to_pandas(["P", "Q"])
