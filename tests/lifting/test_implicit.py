"""Lifted graphs of rules are those that grounding and lifting would have made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hylift as hl
from grounding.random_rules import RandomRules
from hylift.errors import EvidenceError, HyliftError, IntractableError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.lifting import Lifting, lift
from hylift.lifting.implicit import ground as implicit
from hylift.lifting.implicit import listed
from lifting.rule_models import RandomModel

pytestmark = pytest.mark.filterwarnings("ignore::hylift.HyliftWarning")

SMOKERS = """
    person = {P0, ..., P6}
    Friends(person, person)
    Smokes(person)
    mood(person): real
    0.4   Friends(x, y) ^ Smokes(x) => Smokes(y)  where x != y
    0.3   Friends(x, y) ^ !Friends(y, x)
    -1.4  Smokes(x)
    -0.5  mood(x)^2
    -0.1  Smokes(x) * (mood(x) - mood(y))^2  where x != y
"""
FACTS = {
    "Smokes": [("P1", True), ("P2", False)],
    "Friends": [("P3", "P4", True), ("P1", "P4", False)],
    "mood": [("P5", 1.5)],
}


def assert_same_lifting(ground: FactorGraph, classes: FactorGraph, seed: int) -> None:
    """Classes of the same atoms, with factors of the same sizes and parameters."""
    expected, actual = lift(ground), lift(classes)
    names = expected.ground.variables.names.render().to_pylist()
    at = actual.variable_to_class[actual.ground.variables.ids(names)]
    pairs = set(zip(expected.variable_to_class.tolist(), at.tolist(), strict=True))
    assert len(pairs) == expected.num_classes == actual.num_classes
    to_actual = np.array([other for _, other in sorted(pairs)], dtype=np.int64)
    ours, theirs = actual.graph, expected.graph
    assert ours.variables.multiplicity[to_actual].tolist() == theirs.variables.multiplicity.tolist()
    assert counted_factors(actual, np.arange(len(to_actual))) == counted_factors(
        expected, to_actual
    )
    rng = np.random.default_rng(seed)
    for _ in range(3):
        states = ours.variables.num_states
        drawn = rng.integers(0, np.maximum(states, 1)), rng.normal(size=len(states))
        values = np.where(states > 0, *drawn)
        density = theirs.log_density(values[to_actual])
        assert ours.log_density(values) == pytest.approx(density, rel=1e-10, abs=1e-10)


def counted_factors(lifting: Lifting, number: Any) -> Counter[Any]:
    """How often there are factors of these classes, of this multiplicity."""
    found: Counter[Any] = Counter()
    for group in lifting.graph.groups:
        scopes = np.sort(number[group.scope], axis=1).tolist()
        for scope, times in zip(scopes, group.multiplicity.tolist(), strict=True):
            found[group.potential.signature, tuple(scope), times] += 1
    return found


def check(model: hl.Model, evidence: Any, closed: Any, seed: int) -> bool:
    """Compare the ground graph with that of classes; False where both are refused."""
    found: list[Any] = []
    for make in (hl.ground, hl.ground_lifted):
        try:
            found.append(make(model, evidence, closed=closed))
        except HyliftError as error:
            found.append(str(error))
    if not isinstance(found[0], FactorGraph):
        assert found[0] == found[1]
        return False
    assert_same_lifting(*found, seed)
    return found[1].num_variables < found[0].num_variables


def check_random(seed: int) -> bool:
    random = RandomModel(seed)
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:  # rules that compare the order of constants are seldom small
            patch.setattr(listed, "MOST_LISTED", 0)
        return check(random.parsed(), random.evidence, random.closed, seed)


def test_random_models_are_lifted_as_after_grounding() -> None:
    smaller = [check_random(seed) for seed in range(20)]

    assert sum(smaller) > 5


@pytest.mark.slow
def test_thousands_of_models_are_lifted_as_after_grounding() -> None:
    smaller = [check_random(seed) for seed in range(3200)]

    assert sum(smaller) > 1000


@pytest.mark.slow
def test_models_of_every_construct_are_lifted_as_after_grounding() -> None:
    """Counts, sums, neighbours, comparisons, weights for each constant; grounded where they must
    be."""
    for seed in range(600):
        case = RandomRules(seed).case()
        check(case.model, case.evidence(), case.closed, seed)


@pytest.mark.parametrize("method", [hl.MeanField(), hl.EPBP(30)])
def test_answers_are_those_of_the_ground_graph(method: hl.MeanField | hl.EPBP) -> None:
    ground, classes = (make(hl.parse(SMOKERS), FACTS) for make in (hl.ground, hl.ground_lifted))
    names = ground.variables.names.render().to_pylist()

    expected = hl.infer(ground, method, check=False)
    actual = hl.infer(classes, method, check=False)

    assert actual.log_partition is not None
    assert expected.log_partition is not None
    assert actual.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-6)
    assert actual.marginals(names)["atom"].to_pylist() == names
    for name in names:
        one, other = actual.marginal(name), expected.marginal(name)
        if hasattr(one, "probs"):
            assert one.probs == pytest.approx(other.probs, abs=1e-6)
        else:
            assert (one.mean, one.var) == pytest.approx((other.mean, other.var), abs=1e-6)


def test_expected_counts_are_those_of_the_ground_graph() -> None:
    ground, classes = (make(hl.parse(SMOKERS), FACTS) for make in (hl.ground, hl.ground_lifted))

    expected = hl.infer(ground, hl.MeanField(), check=False).expected_counts().to_pylist()
    actual = hl.infer(classes, hl.MeanField(), check=False).expected_counts().to_pylist()

    for one, other in zip(actual, expected, strict=True):
        assert one["rule"] == other["rule"]
        assert one["expected"] == pytest.approx(other["expected"], abs=1e-6)


def test_an_explanation_counts_what_grounding_would_have_made() -> None:
    ground, classes = (make(hl.parse(SMOKERS), FACTS) for make in (hl.ground, hl.ground_lifted))

    expected, actual = lift(ground).explain(), lift(classes).explain()

    assert actual.ground.num_variables == expected.ground.num_variables
    assert actual.ground.num_factors == expected.ground.num_factors
    assert actual.lifted == expected.lifted
    assert actual.effects == expected.effects
    assert [one.num_variables for one in actual.largest] == [
        one.num_variables for one in expected.largest
    ]


def test_a_million_people_are_a_few_variables() -> None:
    model = hl.parse(SMOKERS.replace("P6", "P999999"))

    graph = hl.ground_lifted(model, FACTS)

    assert graph.num_variables < 100
    assert graph.variables.multiplicity.sum() == 10**12 + 2 * 10**6
    assert repr(graph).startswith(
        f"FactorGraph({graph.num_variables} variables for 1,000,002,000,0"
    )


@pytest.fixture(scope="module")
def posterior() -> hl.Posterior:
    return hl.infer(hl.ground_lifted(hl.parse(SMOKERS), FACTS), hl.MeanField(), check=False)


def test_a_predicate_is_a_table_of_classes_with_their_sizes(posterior: hl.Posterior) -> None:
    table = posterior.table("Smokes")

    assert table.column_names == ["person", "prob", "size", "verdict"]
    assert sum(table["size"].to_pylist()) == 5
    assert sum(posterior.marginals("Friends")["size"].to_pylist()) == 47
    assert posterior.marginals("Smokes").num_rows == table.num_rows


def test_patterns_name_every_atom(posterior: hl.Posterior) -> None:
    table = posterior.marginals(["Friends(P0,*)", "Friends(P6,P0)", "Smokes(P?)"])

    names = table["atom"].to_pylist()
    assert names[:7] == [f"Friends(P0,P{i})" for i in range(7)]
    assert names[7:] == ["Friends(P6,P0)", *(f"Smokes(P{i})" for i in range(7))]
    assert posterior.marginals("*").num_rows == 49 + 7 + 7
    with pytest.raises(HyliftError, match=r"no variable matches 'Friends\(Q\*\)'"):
        posterior.marginals("Friends(Q*)")


def test_all_atoms_are_refused_where_they_are_too_many() -> None:
    model = hl.parse(SMOKERS.replace("P6", "P1999"))
    posterior = hl.infer(hl.ground_lifted(model), hl.MeanField(), check=False)

    with pytest.raises(
        IntractableError,
        match=r"'Friends\(\*\)' names 4,000,000 atoms, and at most 1,000,000 have a row each: ask "
        r"for 'Friends', which has a row for each of its 2 classes, or for fewer atoms, such as "
        r"'Friends\(P0,P0\)'",
    ):
        posterior.marginals("Friends(*)")


def test_members_of_a_class_have_no_joint_distribution(posterior: hl.Posterior) -> None:
    alone = r"'Smokes\(P0\)' stands for a class of \d atoms in this lifted graph"

    with pytest.raises(UnsupportedError, match=alone):
        posterior.prob("Smokes(P0) ^ Smokes(P6)")
    with pytest.raises(UnsupportedError, match=alone):
        posterior.joint(["Smokes(P0)", "Smokes(P3)"])
    with pytest.raises(UnsupportedError, match=alone):
        posterior.given({"Smokes(P0)": True})
    with pytest.raises(UnsupportedError, match=alone):
        hl.ground_lifted(hl.parse(SMOKERS), FACTS).observe({"Smokes(P6)": True})
    assert posterior.prob("Smokes(P6)").value == posterior.marginal("Smokes(P0)").prob(True)


def test_a_saved_posterior_knows_every_name(posterior: hl.Posterior, tmp_path: Path) -> None:
    posterior.save(tmp_path / "saved")

    loaded = hl.Posterior.load(tmp_path / "saved")

    name = "Friends(P6,P0)"
    assert loaded.marginal(name).probs.tolist() == posterior.marginal(name).probs.tolist()
    assert loaded.table("Friends").equals(posterior.table("Friends"))


def test_tables_list_groundings_of_three_variables_beside_others() -> None:
    """Groundings that a table lists, and atoms of the same predicate that none does."""
    text = SMOKERS.replace("mood(person)", "Met(person, person)\n    mood(person)")
    text += "    0.7  Met(x, y) ^ Met(y, z) ^ Friends(x, y) => Friends(x, z)\n"
    met = [("P0", "P1"), ("P1", "P2"), ("P4", "P5"), ("P5", "P6"), ("P3", "P3")]

    assert check(hl.parse(text.replace("P6", "P20")), FACTS | {"Met": met}, ["Met"], seed=0)
    large = hl.parse(text.replace("P6", "P999999"))
    assert hl.ground_lifted(large, {"Met": met}, closed=["Met"]).num_variables < 300


THREE = "person = {P0, ..., P99}\nF(person, person)\n1 F(x, y) ^ F(y, z) => F(x, z)"
ORDER = "step = {1, ..., 99}\nOn(step)\n1 On(s) => On(t) where s < t"


@pytest.mark.parametrize(
    ("text", "evidence", "message"),
    [
        (THREE, None, r"as '1 F\(x, y\) ^ F\(y, z\) => F\(x, z\)' has 3 variables; and that makes "
         r"10,000 variables, 1,000,000 factors"),
        (ORDER, None, r"its 99 constants of type 'step' are of 99 kinds, most of them by the rule "
         r"'1 On\(s\) => On\(t\) where s < t', in which each 'step' has a place of its own "
         r"\(99 alone\), and at most 20 are paired; and that makes 99 variables, 4,851 factors"),
        (SMOKERS.replace("P6", "P30"), FACTS | {"mood": [(f"P{i}", i / 7) for i in range(25)]},
         r"most of them by the evidence on 'mood' \(26 alone\)"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_said(
    text: str, evidence: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hl.parse(text)
    assert hl.ground_lifted(model, evidence).num_factors > 0

    monkeypatch.setattr(implicit, "MOST_CELLS", 400)
    monkeypatch.setattr(listed, "MOST_LISTED", 1000)
    monkeypatch.setattr(implicit, "free_memory", lambda: 1000)

    with pytest.raises(IntractableError, match=message.replace("^", r"\^")):
        hl.ground_lifted(model, evidence)


def test_what_is_too_large_to_ground_names_the_way_out() -> None:
    with pytest.raises(IntractableError, match=r"hl\.ground_lifted\(model, evidence\)"):
        hl.ground(hl.parse(SMOKERS.replace("P6", "P9999999")))


def test_a_graph_that_is_ground_after_all_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "MOST_LISTED", 1000)

    graph = hl.ground_lifted(hl.parse(THREE))

    assert graph.is_ground
    assert graph.notes == (
        "This is the ground graph, as '1 F(x, y) ^ F(y, z) => F(x, z)' has 3 variables.",
    )


def test_constants_that_do_not_exist_are_refused_as_in_grounding() -> None:
    model = hl.parse(SMOKERS)
    empty = hl.parse("R(thing)\n1 R(x)")

    with pytest.raises(EvidenceError, match="'P7' is not a constant of type 'person'"):
        hl.ground_lifted(model, {"Smokes": [("P7", True)]})
    errors = []
    for make in (hl.ground, hl.ground_lifted):
        with pytest.raises(HyliftError) as caught:
            make(empty)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
