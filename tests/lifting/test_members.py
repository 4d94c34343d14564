"""Classes of a lifting, by number and by name, and how a lifting shows itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hylift.errors import ModelError
from hylift.graph import FactorGraph, boolean, real
from hylift.lifting import Lifting, lift
from hylift.potentials import ConditionalQuadratic
from zoo import friends_and_smokers


def smokers() -> Lifting:
    return lift(friends_and_smokers(4).observe({"Smokes(p0)": True}))


def test_members_are_hidden_variables_with_names() -> None:
    lifting = smokers()
    number = lifting.class_of("Smokes(p2)")

    members = lifting.members(number)

    names = ["Smokes(p1)", "Smokes(p2)", "Smokes(p3)"]
    assert lifting.member_names(number).to_pylist() == names
    assert lifting.ground.variables.names.render(members).to_pylist() == names
    in_source = lifting.source.variables.names.render(lifting.hidden[members])
    assert in_source.to_pylist() == names


def test_a_class_may_be_a_number_of_numpy() -> None:
    lifting = smokers()

    np.testing.assert_array_equal(lifting.members(np.int32(1)), lifting.members(1))


@pytest.mark.parametrize("number", [1.5, "a", None, -1, 99])
def test_what_is_no_class_is_refused(number: Any) -> None:
    lifting = smokers()
    last = lifting.num_classes - 1

    for ask in (lifting.members, lifting.member_names):
        with pytest.raises(ModelError, match=f"does not exist: classes are 0 to {last}"):
            ask(number)


def test_without_classes_none_can_be_asked_for() -> None:
    with pytest.raises(ModelError, match="class 0 does not exist: there are no classes"):
        lift(FactorGraph.build({}, [])).members(0)


def test_there_is_one_value_per_class() -> None:
    lifting = smokers()

    with pytest.raises(ModelError, match=r"one value per class, \d+ in all, not .* shape \(2,\)"):
        lifting.spread([1.0, 2.0])


@pytest.mark.parametrize("tolerance", ["a", None, 1j, 1.0, -0.1, float("nan")])
def test_a_tolerance_is_a_number(tolerance: Any) -> None:
    with pytest.raises(ModelError, match="tolerance must be at least 0 and less than 1"):
        lift(friends_and_smokers(2), tolerance=tolerance)


def test_a_loose_lifting_is_not_called_exact() -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [
            (ConditionalQuadratic.square(-1.0), ["x"]),
            (ConditionalQuadratic.square(-1.5), ["y"]),
        ],
    )

    assert "in 2 classes, 2 factors in 2, exact)" in repr(lift(graph))
    loose = repr(lift(graph, tolerance=0.9))
    assert loose == "Lifting(2 hidden variables in 1 class, 2 factors in 1, equal to 0.9)"


def test_one_variable_is_not_variables() -> None:
    lifting = lift(FactorGraph.build({"a": boolean}, []))

    assert repr(lifting) == "Lifting(1 hidden variable in 1 class, 0 factors in 0, exact)"
