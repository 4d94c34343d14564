"""Conditional probability tables against sums over all joint states."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import hylift as hl
from hylift.errors import EvidenceError, ModelError

SKIES = ["Clear", "Grey", "Black"]
RULES = """
sky = {Clear, Grey, Black}
Rain(day)
Sky(day, sky!)
Wet(day)

P: table
Q: table

categorical(Sky(d) | {Clear: 0.6, Grey: 0.3, Black: 0.1})
categorical(Rain(d) | P, Sky(d))
categorical(Wet(d) | Q, Sky(d), Rain(d))
"""


def table(rng: np.random.Generator, **columns: list) -> pd.DataFrame:
    """A random table, whose last column is the value."""
    shape = tuple(map(len, columns.values()))
    numbers = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    rows = [
        (*states, p)
        for states, p in zip(itertools.product(*columns.values()), numbers.ravel(), strict=True)
    ]
    return pd.DataFrame(rows, columns=[*columns, "probability"]).sample(frac=1, random_state=1)


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(4)
    return {
        "P": table(rng, sky=SKIES, Rain=[True, False]),
        "Q": table(rng, sky=SKIES, Rain=["no", "yes"], Wet=[0, 1])[
            ["Rain", "Wet", "sky", "probability"]
        ],
    }


def joint(tables: dict[str, pd.DataFrame]) -> np.ndarray:
    """(sky, rain, wet), the slow way."""
    p = {(sky, bool(rain)): prob for sky, rain, prob in tables["P"].itertuples(index=False)}
    q = {
        (sky, rain == "yes", bool(wet)): prob
        for rain, wet, sky, prob in tables["Q"].itertuples(index=False)
    }
    states = itertools.product(enumerate(SKIES), (False, True), (False, True))
    found = np.zeros((3, 2, 2))
    for (s, sky), rain, wet in states:
        found[s, int(rain), int(wet)] = (0.6, 0.3, 0.1)[s] * p[sky, rain] * q[sky, rain, wet]
    return found


@pytest.mark.parametrize("lift", ["none", "exact"])
def test_tables_are_those_of_enumeration(tables, lift: str) -> None:
    graph = hl.ground(hl.parse(RULES), {**tables, "Wet": [("mon", True), ("tue", True)]})
    posterior = hl.infer(graph, hl.Exact(), lift=lift)

    expected = joint(tables)[..., 1]
    assert posterior.log_partition.value == pytest.approx(2 * np.log(expected.sum()), abs=1e-12)
    sky, rain = posterior.marginal("Sky(mon)").probs, posterior.marginal("Rain(tue)").probs
    np.testing.assert_allclose(sky, expected.sum(1) / expected.sum(), atol=1e-12)
    np.testing.assert_allclose(rain, expected.sum(0) / expected.sum(), atol=1e-12)


def test_an_observed_world_has_the_probability_of_its_states(tables) -> None:
    world = {"Sky(mon)": "Grey", "Rain(mon)": True, "Wet(mon)": False}
    constant = hl.ground(hl.parse(RULES), [tables, world]).condition().log_constant
    assert constant == pytest.approx(np.log(joint(tables)[1, 1, 0]), abs=1e-12)


def test_closed_conditions_choose_rows(tables) -> None:
    evidence = {**tables, "Rain": ["mon"], "Sky(mon)": "Grey", "Sky(tue)": "Grey"}
    posterior = hl.infer(hl.ground(hl.parse(RULES), evidence, closed=["Rain"]))
    given = joint(tables)[1]
    for day, rain in (("mon", 1), ("tue", 0)):
        expected = given[rain] / given[rain].sum()
        np.testing.assert_allclose(posterior.marginal(f"Wet({day})").probs, expected, atol=1e-12)


def test_columns_without_the_names_are_in_the_order_of_the_sentence() -> None:
    rules = """
        sky = {Clear, Grey, Black}
        day = {0, ..., 3}
        Sky(day, sky!)
        Next: table
        categorical(Sky(t+1) | Next, Sky(t))
        0.5 Sky(t, Black)
    """
    chain = table(np.random.default_rng(5), before=SKIES, after=SKIES)
    posterior = hl.infer(hl.ground(hl.parse(rules), {"Next": chain, "Sky(0)": "Grey"}))

    step = chain.pivot(index="before", columns="after", values="probability")
    step = step.loc[SKIES, SKIES].to_numpy() * np.exp([0, 0, 0.5])
    message = np.linalg.matrix_power(step, 3)[1]
    np.testing.assert_allclose(
        posterior.marginal("Sky(3)").probs, message / message.sum(), atol=1e-12
    )


def test_a_variable_is_a_condition_too() -> None:
    rules = """
        Truth(item, state!)
        Says(worker, item, state!)
        Confusion: table
        categorical(Says(w, i) | Confusion, w, Truth(i))
    """
    states, workers = ["a", "b", "c"], ["Ann", "Bob"]
    rng = np.random.default_rng(6)
    confusion = table(rng, worker=workers, Truth=states, Says=states)
    said = [("Ann", "i1", "b"), ("Bob", "i1", "c")]
    posterior = hl.infer(hl.ground(hl.parse(rules), {"Confusion": confusion, "Says": said}))

    known = confusion.set_index(["worker", "Truth", "Says"])["probability"]
    expected = np.array([known["Ann", s, "b"] * known["Bob", s, "c"] for s in states])
    found = posterior.marginal("Truth(i1)").probs
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_states_and_tables_of_one_variable_stand_in_one_formula() -> None:
    rules = """
        Kind(x, kind!)
        z(x): real
        normal(z(x) | 0, 1)
        categorical(Kind(x) | {A: 0.2, B: 0.8}) * (1 + Kind(x, B)) + 0.5*Kind(x, A)*z(x)
    """
    graph = hl.ground(hl.parse(rules), {"x": ["1"]})
    odds = np.array([0.2 * np.exp(0.125), 0.8**2])
    np.testing.assert_allclose(
        hl.infer(graph).marginal("Kind(1)").probs, odds / odds.sum(), atol=1e-9
    )


def test_written_tables_may_have_truth_values_and_conditions() -> None:
    rules = """
        A(x)
        B(x)
        categorical(B(x) | {(true, true): 0.9, (true, false): 0.1, (false, true): 0.2,
                            (false, false): 0.8}, A(x))
    """
    model = hl.parse(rules)
    posterior = hl.infer(hl.ground(model, {"B": ["1"]}))
    np.testing.assert_allclose(posterior.marginal("A(1)").probs, [0.2 / 1.1, 0.9 / 1.1], atol=1e-12)
    assert hl.parse(hl.format_model(model)) == model


def test_python_says_the_same() -> None:
    m = hl.ModelBuilder()
    day, sky = m.type("day"), m.type("sky")
    rain, wet = m.predicate("Rain", day), m.predicate("Wet", day)
    skies = m.predicate("Sky", day, sky, unique=sky)
    p, q = m.table("P"), m.table("Q")
    d = m.variable("d")
    prior = {"Clear": 0.6, "Grey": 0.3, "Black": 0.1}
    m.rule(None, hl.density("categorical", skies(d), prior))
    m.rule(None, hl.density("categorical", rain(d), p, skies(d)))
    m.rule(None, hl.density("categorical", wet(d), q, skies(d), rain(d)))
    parsed = hl.parse(RULES)
    assert m.build().rules == parsed.rules
    assert hl.parse(hl.format_model(parsed)) == parsed


def attempt(tables, rules: str = RULES) -> str:
    with pytest.raises((EvidenceError, ModelError)) as caught:
        hl.ground(hl.parse(rules), {**tables, "day": ["mon"]})
    return str(caught.value)


def test_incomplete_and_wrong_tables_are_refused(tables) -> None:
    p = tables["P"].sort_values(["sky", "Rain"], ignore_index=True)

    def said(changed: pd.DataFrame) -> str:
        return attempt({**tables, "P": changed})

    assert said(p.drop(index=1)) == (
        "evidence['P']: the table 'P' has no row for Sky Black and Rain true: add it, with "
        "probability 0 if it is impossible"
    )
    assert said(p.assign(probability=[-0.1, *p.probability[1:]])) == (
        "evidence['P'], row 1: the probability is -0.1, which is not a number from 0 to 1"
    )
    assert said(p.assign(probability=["n/a", *p.probability[1:]])) == (
        "evidence['P'], row 1: the probability is 'n/a', which is not a number from 0 to 1"
    )
    assert said(p.assign(probability=[0.5, 0.4, *p.probability[2:]])) == (
        "evidence['P']: the probabilities of Rain given Sky Black sum to 0.9, not to 1"
    )
    assert said(pd.concat([p, p[1:2]])) == (
        "evidence['P'], row 7: Sky Black and Rain true repeats row 2: df.drop_duplicates() drops "
        "repeated rows"
    )
    assert said(p.assign(Rain=["maybe", *p.Rain[1:]])) == (
        "evidence['P'], row 1: Rain is 'maybe', which is neither true nor false"
    )
    assert said(p.assign(sky=[None, *p.sky[1:]])) == (
        "evidence['P'], row 1: the state of Sky is missing"
    )
    assert said(p.rename(columns={"sky": "Rain", "Rain": "sky"})[["Rain", "sky", "probability"]])
    assert said(p[["sky", "probability"]]) == (
        "evidence['P']: the table 'P' has the columns Sky, Rain, probability, in this order or "
        "with these names; this one has sky, probability."
    )
    assert said(p.set_index("sky")) == (
        "evidence['P']: the table 'P' has the columns Sky, Rain, probability, in this order or "
        "with these names; this one has Rain, probability (its index, sky, is not a column: "
        "reset_index() makes it one)."
    )
    assert attempt({"Q": tables["Q"]}) == (
        "the table 'P' of categorical has no rows: pass them as evidence, with the columns Sky, "
        "Rain, probability: evidence={'P': df}"
    )


def test_states_that_a_type_does_not_list_are_refused(tables) -> None:
    said = attempt(tables, RULES.replace(", Black}", "}"))
    assert "'Black' is not a constant of type 'sky', which has Clear, Grey" in said


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "categorical(Sky(d) | {Clear: 0.6, Grey: 0.3, Black: 0.3})",
            "the probabilities of Sky sum to 1.2, not to 1",
        ),
        (
            "categorical(Sky(d) | {Clear: 0.6, Grey: 0.4})",
            "the table has no probability of Black: add it",
        ),
        (
            "categorical(Sky(d) | {Clear: 0.6, *: 0.4})",
            "a table of probabilities has no '*': write all states",
        ),
        (
            "categorical(Sky(d) | {Clear: 1.6, Grey: 0.4})",
            "a probability is a number from 0 to 1, not 1.6",
        ),
        (
            "categorical(Sky(d) | {(Clear, Grey): 0.6})",
            "a key of this table has a state of each of (Sky(d)), not 2",
        ),
        (
            "categorical(Sky(d, s) | P)",
            "'Sky(d, s)' in categorical is written without the argument marked '!', as 'Sky(day)'",
        ),
        (
            "categorical(Sky(d) | R, Rain(d))",
            "there is no table 'R': declare it as 'R: table', and give its rows as evidence.",
        ),
        (
            "categorical(x(d) | P, Rain(d))",
            "the value of categorical is an atom that is true or false or has states, not 'x(d)'",
        ),
        (
            "categorical(Rain(d) | P, x(d))",
            "a condition of categorical is an atom that is true or false or has states, or a "
            "variable, not 'x(d)'",
        ),
        ("1 Sky(d)", "'Sky' takes 2 arguments (day, sky), not 1"),
        (
            "categorical(Rain(d) | 0.3)",
            "the table of categorical is the name of one, declared as 'P: table', or written out, "
            "as in '{A: 0.7, B: 0.3}'",
        ),
        ("bernoulli(Rain(d) | {A: 0.3})", "only 'categorical' takes a table, not 'bernoulli'"),
        (
            "EXACTLY 1 d: Rain(d) * categorical(Rain(e) | P, d)",
            "'d' is bound by a quantifier",
        ),
    ],
)
def test_bad_sentences_say_what_to_do(tables, rule: str, message: str) -> None:
    said = attempt(tables, RULES + "x(day): real\nnormal(x(d) | 0, 1)\n" + rule)
    assert message in said


def test_a_table_has_no_arguments() -> None:
    with pytest.raises(ModelError, match="a table is declared without arguments, as 'P: table'"):
        hl.parse("P(day): table")


def test_tables_of_databases_and_files_are_taken(tables, tmp_path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "tables.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for name, frame in tables.items():
            frame.to_sql(name, connection, index=False)
    tables["P"].to_csv(tmp_path / "p.csv", index=False)
    expected = hl.infer(hl.ground(hl.parse(RULES), {**tables, "Wet": ["mon"]}))
    for source in (
        [path, {"Wet": ["mon"]}],
        {"P": tmp_path / "p.csv", "Q": tables["Q"], "Wet": ["mon"]},
    ):
        found = hl.infer(hl.ground(hl.parse(RULES), source))
        assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-12)
