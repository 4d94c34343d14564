"""Names by id and by name, what unknown ones suggest, and that none is stored as a string."""

import re
import tracemalloc
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.errors import ModelError, UnknownNameError
from hylift.graph import (
    Atoms,
    FactorGraph,
    Listed,
    Names,
    Numbered,
    Variables,
    boolean,
    categorical,
    real,
    without_repeats,
)

MARKETS, BANKS = ["c0", "c1", "c2"], ["b0", "b1"]
SPARSE = np.array([[2, 0], [0, 1], [1, 1]], dtype=np.int32)

BLOCKS = {
    "numbered": (Numbered("x", 3), ["x0", "x1", "x2"]),
    "listed": (Listed(pa.array(["rain", "sun"])), ["rain", "sun"]),
    "proposition": (Atoms("recession", ()), ["recession"]),
    "one argument": (Atoms("market", (MARKETS,)), ["market(c0)", "market(c1)", "market(c2)"]),
    "dense": (
        Atoms("loss", (MARKETS, BANKS)),
        [f"loss({c},{b})" for c in MARKETS for b in BANKS],
    ),
    "sparse": (
        Atoms("lends", (MARKETS, BANKS), SPARSE),
        ["lends(c2,b0)", "lends(c0,b1)", "lends(c1,b1)"],
    ),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_finds_the_names_it_makes(kind: str) -> None:
    block, expected = BLOCKS[kind]
    names = Names((block,))

    assert len(names) == len(expected)
    assert names.render().to_pylist() == expected
    assert [names[i] for i in range(len(names))] == expected
    assert [names.id(name) for name in expected] == list(range(len(expected)))


def all_blocks() -> tuple[Names, list[str]]:
    names = Names(tuple(block for block, _ in BLOCKS.values()))
    return names, [name for _, made in BLOCKS.values() for name in made]


def test_blocks_follow_one_another() -> None:
    names, expected = all_blocks()

    assert names.render().to_pylist() == expected
    assert [names.id(name) for name in expected] == list(range(len(expected)))
    assert names.offsets.tolist() == [0, 3, 5, 6, 9, 15, 18]


def test_one_name_of_many_blocks_is_found_by_id() -> None:
    names, expected = all_blocks()

    assert [names[i] for i in range(len(expected))] == expected


@given(st.lists(st.integers(0, 13)))
def test_names_come_in_the_order_of_the_ids(ids: list[int]) -> None:
    blocks = [BLOCKS[kind] for kind in ("numbered", "dense", "sparse", "listed")]
    names = Names(tuple(block for block, _ in blocks))
    every = [name for _, made in blocks for name in made]

    assert names.render(np.array(ids, dtype=np.int64)).to_pylist() == [every[i] for i in ids]


def test_an_empty_block_among_others_is_passed_over() -> None:
    names = Names((Numbered("x", 2), Atoms("p", ([],)), Numbered("y", 2)))

    assert names.render().to_pylist() == ["x0", "x1", "y0", "y1"]
    assert names.id("y1") == 3


def test_spaces_around_arguments_do_not_matter() -> None:
    names = Names((BLOCKS["dense"][0],))

    assert names.id("loss(c1, b0)") == names.id("loss( c1 ,b0 )") == 2


@pytest.mark.parametrize("name", ["x3", "x-1", "x01", "x", "x1.0", "y0", "x１", ""])
def test_what_only_looks_like_a_numbered_name_is_unknown(name: str) -> None:
    with pytest.raises(UnknownNameError, match="Names here are x0 to x2"):
        Names.numbered(3).id(name)


def test_selected_names_keep_their_order() -> None:
    names, every = all_blocks()
    ids = np.array([1, 4, 7, 10, 16])

    selected = names.take(ids)

    assert len(selected) == 5
    assert selected.render(np.arange(5)).to_pylist() == [every[i] for i in ids]
    assert [selected.id(every[i]) for i in ids] == list(range(5))
    assert selected.take(np.array([1, 3])).id(every[10]) == 1


@pytest.mark.parametrize(
    ("names", "asked", "text"),
    [
        (
            Names.listed(["Rain", "Sun"]),
            "Rian",
            "there is no variable 'Rian'. Did you mean 'Rain'?",
        ),
        (Names.listed(["Rain", "Sun"]), "qqq", "there is no variable 'qqq'."),
        (Names.numbered(4), "x9", "there is no variable 'x9'. Names here are x0 to x3."),
        (
            Names((Atoms("market", (MARKETS,)),)),
            "markte(c0)",
            "there is no variable 'markte(c0)'. Did you mean 'market'?",
        ),
        (
            Names((Atoms("loss", (MARKETS, BANKS)),)),
            "loss(c1)",
            "there is no variable 'loss(c1)'. 'loss' takes 2 arguments, not 1.",
        ),
        (
            Names((Atoms("city", (["paris", "london"],)),)),
            "city(lodnon)",
            "there is no variable 'city(lodnon)'. 'lodnon' is not a constant of argument 1 of it. "
            "Did you mean 'london'?",
        ),
        (
            Names((Atoms("lends", (MARKETS, BANKS), SPARSE),)),
            "lends(c0,b0)",
            "there is no variable 'lends(c0,b0)'. No factor mentions it; atoms of closed-world "
            "predicates are data, not variables.",
        ),
        (
            Names((Atoms("wet", (), np.zeros((0, 0), np.int32)), Atoms("market", (MARKETS,)))),
            "wet",
            "there is no variable 'wet'. No factor mentions it; atoms of closed-world predicates "
            "are data, not variables.",
        ),
        (
            Names.listed(["a", "b"]).take(np.array([1])),
            "a",
            "there is no variable 'a'. It is observed or otherwise left out here.",
        ),
        (
            Names((Atoms("rain", ()), Atoms("market", (MARKETS,)))),
            "rian",
            "there is no variable 'rian'. Did you mean 'rain'?",
        ),
    ],
)
def test_an_unknown_name_suggests_the_closest(names: Names, asked: str, text: str) -> None:
    with pytest.raises(UnknownNameError) as refusal:
        names.id(asked)

    assert str(refusal.value) == text
    assert isinstance(refusal.value, KeyError)


def test_two_variables_cannot_have_one_name() -> None:
    with pytest.raises(ModelError, match="two variables are named 'b'"):
        Names.listed(["a", "b", "c", "b"])


def test_arguments_need_a_column_per_argument() -> None:
    with pytest.raises(ModelError, match="the arguments of 'lends' must be an array"):
        Atoms("lends", (MARKETS, BANKS), np.array([[0], [1]]))


def test_a_constant_may_hold_a_comma() -> None:
    names = Names((Atoms("author", (["Smith, J.", "Jones"],)),))

    assert names.id(names[0]) == 0


WORDS = st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True)


@given(WORDS, WORDS)
def test_a_constant_may_be_any_text(first: list[str], second: list[str]) -> None:
    names = Names((Atoms("wrote", (first, second)),))

    assert [names.id(name) for name in names.render().to_pylist()] == list(range(len(names)))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("loss(*)", [0, 1, 2, 3, 4, 5]),
        ("loss(*,b1)", [1, 3, 5]),
        ("loss(c2,*)", [4, 5]),
        ("loss(*,*)", [0, 1, 2, 3, 4, 5]),
        ("l*c?,b0*", [0, 2, 4]),
        ("loss(c1,b0)", [2]),
        ("*", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, expected: list[int]) -> None:
    names = Names((BLOCKS["dense"][0],))

    assert names.matching(pattern).tolist() == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("level(Shop*)", [0, 1]),
        ('level("Shop*)', [0, 1]),
        ("level(Shop (?),*)", [0, 1]),
        ("level(*, week 1)", [0, 2, 4]),
        ("level(a, b,*)", [2, 3]),
        ('level(say "hi"*)', [4, 5]),
        ("level(*)", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_pattern_finds_constants_in_quotes(pattern: str, expected: list[int]) -> None:
    names = Names((Atoms("level", (["Shop (1)", "a, b", 'say "hi"'], ["week 1", "week 2"])),))

    assert names.matching(pattern).tolist() == expected


def test_a_predicate_stands_for_all_its_atoms() -> None:
    names, every = all_blocks()
    some = names.take(np.array([5, 7, 8, 16]))

    assert names.render(names.matching("market")).to_pylist() == BLOCKS["one argument"][1]
    assert names.render(names.matching("lends")).to_pylist() == BLOCKS["sparse"][1]
    assert names.matching("recession").tolist() == [every.index("recession")]
    assert some.render(some.matching("market")).to_pylist() == ["market(c1)", "market(c2)"]


def test_a_variable_that_is_named_like_a_predicate_is_meant_itself() -> None:
    names = Names((Atoms("market", (MARKETS,)), Listed(pa.array(["market", "rain"]))))

    assert names.matching("market").tolist() == [3]
    assert names.matching("market(*)").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("los", "there is no variable 'los'. Did you mean 'loss'?"),
        ("loss(c1)", "there is no variable 'loss(c1)'. 'loss' takes 2 arguments, not 1."),
        (
            "gone",
            "'gone' has no variables. No factor mentions it; atoms of closed-world predicates "
            "are data, not variables.",
        ),
    ],
)
def test_a_predicate_without_atoms_is_no_pattern(pattern: str, text: str) -> None:
    gone = Atoms("gone", (MARKETS,), np.zeros((0, 1), np.int32))
    names = Names((BLOCKS["dense"][0], gone))

    with pytest.raises(UnknownNameError) as refusal:
        names.matching(pattern)

    assert str(refusal.value) == text


def test_a_name_with_brackets_is_no_pattern() -> None:
    names = Names.listed(["x[0]", "x[1]", "x.0"])

    assert names.matching("x[1]").tolist() == [1]
    assert names.matching("x[?]").tolist() == [0, 1]
    assert names.matching("x.*").tolist() == [2]


def test_a_pattern_without_a_match_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match=r"no variable matches 'gain\(\*\)'"):
        Names((BLOCKS["dense"][0],)).matching("gain(*)")


def test_a_million_names_are_not_a_million_strings() -> None:
    people = [f"p{i}" for i in range(1000)]

    tracemalloc.start()
    names = Names((Atoms("friends", (people, people)),))
    found, made = names.id("friends(p17,p999)"), names[999_999]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(names) == 1_000_000
    assert found == 17_999
    assert made == "friends(p999,p999)"
    assert peak < 2**20  # a million strings would take some 60 MB


def test_a_graph_of_a_million_variables_is_only_arrays() -> None:
    people = [f"p{i}" for i in range(1000)]
    names = Names((Atoms("friends", (people, people)),))

    tracemalloc.start()
    graph = FactorGraph(Variables.uniform(boolean, 1_000_000, names), ())
    hidden = graph.observe({"friends(p0,p1)": True, "friends(p3,p0)": False}).condition()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert hidden.num_variables == 999_998
    assert hidden.variables.names[1] == "friends(p0,p2)"
    assert hidden.variables.names.id("friends(p3,p1)") == 2999
    # Two graphs: domain ids (4 MB) and multiplicities (8 MB) each, and the ids kept (8 MB).
    assert kept < 36e6


def test_taking_names_of_a_million_variables_costs_only_ids() -> None:
    people = [f"p{i}" for i in range(1000)]
    names = Names((Atoms("friends", (people, people)),))
    ids = np.arange(0, 1_000_000, 2)

    tracemalloc.start()
    some = names.take(ids)
    made, found = some[1], some.id("friends(p1,p0)")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (made, found) == ("friends(p0,p2)", 500)
    assert peak < 2**20


def test_many_names_are_found_at_once() -> None:
    names, every = all_blocks()

    ids = names.ids(every[::-1])

    assert ids.tolist() == list(range(len(every)))[::-1]


def test_blocks_that_could_hold_the_same_name_are_refused() -> None:
    with pytest.raises(ModelError, match=r"two blocks of names have the prefix 'p\('"):
        Names((Atoms("p", (["a"],)), Atoms("p", (["b"],))))


def test_an_argument_without_constant_is_refused() -> None:
    with pytest.raises(ModelError, match="an atom of 'p' has 2 as argument 1, which has 2"):
        Atoms("p", (["a", "b"],), np.array([[0], [2]], dtype=np.int32))


@pytest.mark.parametrize(
    ("constants", "text"),
    [
        (["r0", "r1"], "the constants of 'p' must be one list per argument"),
        ([["a", "a"]], "argument 1 of 'p' has a constant twice"),
    ],
)
def test_constants_that_make_no_names_are_refused(constants: list, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        Atoms("p", constants)


def test_names_are_listed_in_the_order_of_the_variables():
    names = Names((Numbered("x", 30_000), Atoms("loss", (MARKETS, BANKS))))

    listed = list(names)

    assert len(listed) == len(names)
    assert listed[29_999:30_002] == ["x29999", "loss(c0,b0)", "loss(c0,b1)"]


def test_arguments_have_their_types_in_tables_and_are_text_in_names() -> None:
    types = (pa.int64(), pa.timestamp("us"))
    atoms = Atoms("x", (["7", "12"], ["2024-03-01", "2024-03-02T10:00:00"]), types=types)

    columns = atoms.argument_columns()

    assert columns["arg1"].to_pylist() == [7, 7, 12, 12]
    assert columns["arg2"].to_pylist()[:2] == [datetime(2024, 3, 1), datetime(2024, 3, 2, 10)]
    assert Names((atoms,))[1] == "x(7,2024-03-02T10:00:00)"
    with pytest.raises(ModelError, match="'x' has 1 arguments, but 2 types"):
        Atoms("x", (["7"],), types=types)


def test_a_predicate_is_known_among_the_names_of_some_variables() -> None:
    names = Names(
        (
            Numbered("v", 3),
            Atoms("loss", (MARKETS, BANKS), labels=("market", "bank")),
            Atoms("rain", ()),
            Atoms("lends", (MARKETS, BANKS), SPARSE),
        )
    )
    every = list(names)
    some = names.take(np.array([1, 4, 6, 9, 10])).take(np.array([1, 2, 3, 4]))

    for predicate in ("loss", "rain", "lends"):
        ids, atoms = some.predicate(predicate)

        assert some.render(ids).to_pylist() == Names((atoms,)).render().to_pylist()
    assert list(some) == [every[4], every[6], every[9], every[10]]
    assert some.predicate("loss")[1].argument_columns()["market"].to_pylist() == ["c0", "c1"]
    with pytest.raises(UnknownNameError, match=r"no predicate 'los'\. Did you mean 'loss'"):
        some.predicate("los")
    with pytest.raises(UnknownNameError, match=r"'rain' has no variables\. It is observed"):
        some.take(np.array([0])).predicate("rain")


def test_a_predicate_with_arguments_suggests_the_one_without() -> None:
    names = Names((Atoms("x", (MARKETS,)),))

    with pytest.raises(UnknownNameError) as refusal:
        names.predicate("x(*)")

    assert str(refusal.value) == "there is no predicate 'x(*)'. Did you mean 'x'?"


SOILS = Variables.in_blocks(
    [
        (Atoms("Soil", (["2", "a,b"],)), categorical(["chalk", "clay"])),
        (Atoms("Mode", ()), categorical(["hot", "cold"])),
        (Atoms("Wet", (["2"],)), boolean),
        (Atoms("depth", (["2"],)), real),
    ]
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "Soil(2,chalk)",
            "A state is not part of a name: 'Soil(2)' is the variable; its states are chalk, clay.",
        ),
        (
            'Soil("a,b", chlak)',
            "A state is not part of a name: 'Soil(\"a,b\")' is the variable; its "
            "states are chalk, clay.",
        ),
        (
            "Mode(hot)",
            "A state is not part of a name: 'Mode' is the variable; its states are hot, cold.",
        ),
        ("Soil(3,chalk)", "'Soil' takes 1 argument, not 2."),
        ("Soil(2,105)", "'Soil' takes 1 argument, not 2."),
        ("Wet(2,3)", "'Wet' takes 1 argument, not 2."),
        ("depth(2,3)", "'depth' takes 1 argument, not 2."),
        ("Soil", "'Soil' takes 1 argument, not 0."),
    ],
)
def test_a_name_with_a_state_in_it_is_told_the_variable(name: str, text: str) -> None:
    with pytest.raises(UnknownNameError) as refusal:
        SOILS.id(name)

    assert str(refusal.value) == f"there is no variable '{name}'. {text}"
    if name != "Soil":
        with pytest.raises(UnknownNameError, match=re.escape(text)):
            SOILS.matching(name)
        with pytest.raises(UnknownNameError, match=re.escape(text)):
            FactorGraph(SOILS, ()).observe({name: True})


def test_a_comma_in_the_only_argument_needs_no_quotes() -> None:
    names = SOILS.names

    assert names.id("Soil(a,b)") == names.id('Soil("a,b")') == 1
    with pytest.raises(UnknownNameError, match="a constant with a comma stands in double quotes"):
        Names((Atoms("loss", (MARKETS, ["a,b"])),)).id("loss(c1, a,b)")


def test_patterns_are_answered_in_their_order_and_may_repeat() -> None:
    found = SOILS.matching(["depth", "Soil(2)", "Soil"])

    assert SOILS.names.render(found).to_pylist() == [
        "depth(2)",
        "Soil(2)",
        "Soil(2)",
        'Soil("a,b")',
    ]
    assert without_repeats(found).tolist() == [4, 0, 1]
    assert SOILS.matching([]).tolist() == []


def test_a_predicate_stands_for_its_atoms_that_are_not_observed() -> None:
    every = np.arange(len(SOILS))

    def asked(atoms: list[str], seen: list[int]) -> list[int]:
        return SOILS.matching(atoms, np.isin(every, seen)).tolist()

    assert asked(["Soil"], seen=[0]) == [1]
    assert asked(["Soil"], seen=[0, 1]) == [0, 1]
    assert asked(["Mode"], seen=[2]) == [2]
    assert asked(["Soil(*)", "Soil", "Soil(2)"], seen=[0]) == [0, 1, 1, 0]


def test_names_of_one_question_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names((Atoms("x", ([str(i) for i in range(100)],)),))
    looked_up: list[int] = []
    find = Atoms.find

    def counting(self: Atoms, asked: list[str]) -> object:
        looked_up.append(len(asked))
        return find(self, asked)

    monkeypatch.setattr(Atoms, "find", counting)
    found = names.matching(["x(7)", "x(1?)", *(f"x({i})" for i in range(99, 49, -1))])

    assert found.tolist() == [7, *range(10, 20), *range(99, 49, -1)]
    assert looked_up == [51]


def test_what_is_no_text_matches_nothing() -> None:
    with pytest.raises(UnknownNameError, match=r"a variable name must be a string, not \['x'\]"):
        SOILS.matching([["x"]])  # type: ignore[list-item]


def test_a_predicate_without_variables_is_said_to_be_data() -> None:
    names = Names((Atoms("lends", (MARKETS, BANKS), np.zeros((0, 2), np.int32)),))

    with pytest.raises(UnknownNameError) as refusal:
        names.predicate("lends")

    assert str(refusal.value) == (
        "'lends' has no variables. No factor mentions it; atoms of closed-world predicates are "
        "data, not variables."
    )
