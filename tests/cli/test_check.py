"""`hylift check` says all that is wrong with a model of rules, and where."""

from pathlib import Path

import pytest

from cli.conftest import Run
from cli.test_bad_input import assert_refused
from hylift.language import parse, read_model

WRONG = """\
person = {Ann, Bob}
Smokes(person)
Age(person): real
const Limit = Limt
1.5  Smoke(x)
1.5  Smokes(x, y)
Smokes(x)
0.5  Smokes(x) ^ Age(x)
1.5  Smokes(Carl)
"""

ERRORS = """\
hylift: wrong.mln:4:15: unknown constant 'Limt'.
    const Limit = Limt
                  ^^^^

wrong.mln:5:6: unknown predicate 'Smoke'. Did you mean 'Smokes'?
    1.5  Smoke(x)
         ^^^^^

wrong.mln:6:6: 'Smokes' takes 1 argument (person), not 2
    1.5  Smokes(x, y)
         ^^^^^^

wrong.mln:7:1: the rule needs a weight, or a period at its end to be hard
    Smokes(x)
    ^^^^^^

wrong.mln:8:18: 'Age(x)' is real, but '^' needs a truth value: compare it with a number, and \
multiply by that comparison
    0.5  Smokes(x) ^ Age(x)
                     ^^^

wrong.mln:9:13: type 'person' has no constant 'Carl'.
    1.5  Smokes(Carl)
                ^^^^
"""

DOUBTFUL = """\
person = {Ann, Bob}
Smokes(person)
Age(person): real
Tall(person)
0  Smokes(x)
1  Age(x)
"""

WARNINGS = """\
hylift: warning: doubtful.mln:3:1: the density may be improper in 'Age': none of its rules has a \
negative square of it; give it bounds or add a rule such as '-0.01 Age(p)^2'
    Age(person): real
    ^^^
hylift: warning: doubtful.mln:4:1: no rule uses 'Tall'
    Tall(person)
    ^^^^
hylift: warning: doubtful.mln:5:1: a rule of weight 0 has no effect
    0  Smokes(x)
    ^
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("papers.mln", "papers.mln: 2 types, 3 predicates, 3 rules; no errors\n"),
        ("smokers.mln", "smokers.mln: 1 type, 2 predicates, 1 rule; no errors\n"),
        ("empty.mln", "empty.mln: 0 types, 0 predicates, 0 rules; no errors\n"),
    ],
)
def test_a_sound_model_is_counted(name: str, said: str, run: Run, folder: Path) -> None:
    (folder / "empty.mln").write_text("")

    ended = run("check", name)

    assert (ended.code, ended.out, ended.err) == (0, said, "")


@pytest.mark.parametrize("option", [[], ["--format"]])
def test_all_errors_are_told_at_once_with_their_places(
    option: list[str], run: Run, folder: Path
) -> None:
    (folder / "wrong.mln").write_text(WRONG)

    ended = run("check", "wrong.mln", *option)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == ERRORS


def test_warnings_do_not_fail_the_check(run: Run, folder: Path) -> None:
    (folder / "doubtful.mln").write_text(DOUBTFUL)

    ended = run("check", "doubtful.mln")

    assert ended.code == 0
    assert ended.out == "doubtful.mln: 1 type, 3 predicates, 2 rules; 3 warnings\n"
    assert ended.err == WARNINGS


def test_one_warning_is_one(run: Run, folder: Path) -> None:
    (folder / "one.mln").write_text("P(t)\n0 P(x)\n")

    ended = run("check", "one.mln")

    assert (ended.code, ended.out) == (0, "one.mln: 1 type, 1 predicate, 1 rule; 1 warning\n")


@pytest.mark.parametrize("name", ["papers.mln", "smokers.mln", "top.mln", "doubtful.mln"])
def test_the_canonical_form_is_the_same_model(name: str, run: Run, folder: Path) -> None:
    (folder / "top.mln").write_text('#include "smokers.mln"\n2   Smokes( Ann )\n')
    (folder / "doubtful.mln").write_text(DOUBTFUL)

    ended = run("check", name, "--format")

    assert ended.code == 0
    assert parse(ended.out) == read_model(name)
    (folder / "again.mln").write_text(ended.out, encoding="utf-8")
    assert run("check", "again.mln", "--format").out == ended.out


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_marks_and_ends_of_lines_make_no_difference(
    mark: str, end: str, run: Run, folder: Path
) -> None:
    text = mark + (folder / "smokers.mln").read_text().replace("\n", end)
    (folder / "other.mln").write_bytes(text.encode())

    ended = run("check", "other.mln")

    assert (ended.code, ended.err) == (0, "")
    assert read_model("other.mln") == read_model("smokers.mln")


REFUSED = {
    "missing": ("nowhere.mln", "nowhere.mln: no such file"),
    "folder": ("folder.mln", "folder.mln: is a directory, not a file"),
    "binary": ("binary.mln", "binary.mln:2:3: not a text file: byte 0x9c is not UTF-8"),
    "UTF-16": ("wide.mln", "wide.mln:1:1: not a text file: byte 0xff is not UTF-8"),
    "tables": ("model.uai", "model.uai: only models of rules (.mln) are checked"),
    "facts": ("facts.db", "facts.db: models are read from files that end in .mln or .uai"),
}


@pytest.mark.parametrize(("name", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_model_of_rules_is_refused_in_one_line(
    name: str, expected: str, run: Run, folder: Path
) -> None:
    (folder / "folder.mln").mkdir()
    (folder / "binary.mln").write_bytes(b"P(t)\n1 \x9c\x00\xff")
    (folder / "wide.mln").write_bytes("P(t)\n".encode("utf-16"))

    ended = run("check", name)

    assert_refused(ended)
    assert ended.err == f"hylift: {expected}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '#include "nowhere.mln"\n',
            "wrong.mln:1:10: 'nowhere.mln' cannot be included: no such file\n"
            '    #include "nowhere.mln"\n'
            "             ^^^^^^^^^^^^^\n",
        ),
        (
            '#include "part.mln"\n',
            "part.mln:1:8: '&' is not allowed here; 'and' is written '^'\n"
            "    1 A(x) & B(x)\n"
            "           ^\n",
        ),
        (
            "P(t)\n1 P(x) ^\n",
            "wrong.mln:2:9: expected a formula after '^', not the end of the line\n"
            "    1 P(x) ^\n"
            "            ^\n",
        ),
        ("P(\x00)\n", "wrong.mln:1:3: '\\x00' is not allowed here\n    P( )\n      ^\n"),
    ],
    ids=["missing include", "error in an include", "cut short", "zero byte"],
)
def test_a_text_that_cannot_be_read_is_shown_with_a_caret(
    text: str, expected: str, run: Run, folder: Path
) -> None:
    (folder / "wrong.mln").write_text(text)
    (folder / "part.mln").write_text("1 A(x) & B(x)\n")

    ended = run("check", "wrong.mln")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"hylift: {expected}"


def test_a_syntax_error_is_told_before_all_others(run: Run, folder: Path) -> None:
    (folder / "wrong.mln").write_text(f"{WRONG}1.5 Smokes(x) ^^ Smokes(y)\n")

    ended = run("check", "wrong.mln")

    assert ended.code == 2
    assert ended.err.splitlines()[0] == (
        "hylift: wrong.mln:10:16: expected a formula after '^', not '^'"
    )


def test_a_bounded_bethe_free_energy_is_told_with_densities(run: Run, folder: Path) -> None:
    ended = run("check", "papers.mln", "--bethe", "--evidence", "facts.db")

    first, sentence, *rest = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert first == "papers.mln: Bethe free energy bounded below"
    assert sentence.startswith("The Bethe free energy of this model is bounded below by ")
    assert sentence.endswith("so BVI cannot diverge, for any number of components.")
    assert [line.split(",")[0] for line in rest[2:]] == [
        "  Popularity(P2): Gaussian",
        "  Trend(T1): Gaussian",
        "  Trend(T2): Gaussian",
    ]


def test_tables_have_a_bounded_bethe_free_energy(run: Run, folder: Path) -> None:
    ended = run("check", "model.uai", "--bethe", "--evidence", "model.uai.evid")

    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 2)
    assert ended.out.startswith("model.uai: Bethe free energy bounded below\n")


LOOSE = """\
person = {Ann, Bob}
Tall(person)
height(person): real
1  Tall(p) * (height(p) = 190)
"""


def test_a_real_that_is_let_go_is_named_with_its_state(run: Run, folder: Path) -> None:
    (folder / "loose.mln").write_text(LOOSE)

    ended = run("check", "loose.mln", "--bethe")

    assert ended.code == 0
    assert ended.out == (
        "loose.mln: Bethe free energy not bounded below\n"
        "The Bethe free energy of this model is not bounded below: the density is improper in "
        "'height(Ann)' where Tall(Ann) is false. BVI may diverge with any number of components, "
        "and no other method has a right answer; give it bounds or add a rule such as "
        "'-0.01 height(Ann)^2'.\n"
        "Also, the density is improper in 'height(Bob)' where Tall(Bob) is false.\n"
    )
    assert "warning: loose.mln:3:1: the density may be improper in 'height'" in ended.err


def test_evidence_may_hold_what_the_rules_let_go(run: Run, folder: Path) -> None:
    (folder / "loose.mln").write_text(LOOSE)
    (folder / "tall.db").write_text("Tall(Ann)\nTall(Bob)\n")

    ended = run("check", "loose.mln", "--bethe", "--evidence", "tall.db")

    assert ended.out.startswith("loose.mln: Bethe free energy bounded below\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--format", "--bethe"], "--format and --bethe ask for different things: choose one"),
        (["-e", "facts.db"], "--evidence, --closed, --only-rows and --unmatched go with --bethe"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], expected: str, run: Run, folder: Path
) -> None:
    ended = run("check", "papers.mln", *options)

    assert_refused(ended)
    assert ended.err == f"hylift: {expected}\n"
