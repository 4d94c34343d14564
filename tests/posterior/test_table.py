"""Marginals by predicate, with a column per argument."""

from __future__ import annotations

import pytest

from hylift.errors import UnknownNameError
from hylift.grounding import ground
from hylift.inference import infer
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

    assert table.column_names == ["person1", "person2", "prob"]
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


def test_a_categorical_variable_has_a_column_per_state(posterior):
    table = posterior.table("Kind")

    assert table.column_names == ["person", "A", "B", "C"]
    assert table.to_pylist()[0]["B"] == posterior.marginal("Kind(Ann)").prob("B")


def test_a_real_has_mean_deviation_and_quantiles(posterior):
    table = posterior.table("age")

    assert table.column_names == ["person", "mean", "std", "q05", "q50", "q95"]
    assert table["std"].to_pylist()[1] == pytest.approx(
        posterior.marginal('age("Bob, jr")').std, rel=1e-12
    )


def test_a_predicate_without_arguments_is_one_row(posterior):
    assert posterior.table("rain").column_names == ["prob"]
    assert posterior.table("rain").num_rows == 1


def test_an_unknown_predicate_suggests_the_closest(posterior):
    with pytest.raises(UnknownNameError, match="there is no predicate 'ages'"):
        posterior.table("ages")
