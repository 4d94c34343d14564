"""What the library says in terms of Python, the command line says in terms of options."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import hylift
from cli.conftest import Run
from hylift.cli.messages import SETTINGS, in_options
from hylift.cli.method import MethodOptions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass unmatched='ignore' to go on", "pass --unmatched ignore to go on"),
        ("use lift='exact' or lift='none'", "use --lift exact or --lift none"),
        ("name it in closed=… (--closed In), or", "name it in --closed In, or"),
        ("hidden; closed=['In'] (--closed In) makes", "hidden; --closed In makes"),
        ("The limit is 9 numbers (Exact(max_entries=…)).", "The limit is 9 numbers."),
        ("Exact() can tell; use BVI() or MeanField()", "--method exact can tell; use --method bvi "
         "or --method mean-field"),
        ("pass evidence={'paper': […]}, or", "pass --evidence paper=FILE, or"),
        ("a=b.csv: a table of 'In' has x; this one has y: leave 'z' out (df[['pa per', 'to,pic']])",
         "a=b.csv: a table of 'In' has x; this one has y: leave 'z' out "
         "(--evidence 'In=a=b.csv[pa per,\"to,pic\"]')"),
        ("x.csv: a table of 'In' has x: choose (df[[\"it's\", 'a\\\\b', …, 'c \"d\"']])",
         "x.csv: a table of 'In' has x: choose "
         """(--evidence 'In=x.csv[it'"'"'s,a\\b,…,"c ""d\"""]')"""),
        ("x.db, table 'in': a table of 'In' has x: choose columns of it (df[['paper', …]])",
         "x.db, table 'in': a table of 'In' has x: choose columns of it "
         "(--evidence 'In=x.db[paper,…]')"),
        ("method BVI(3), by name", "method BVI(3), by name"),
        ("infer with Gibbs(draws=1,000)", "infer with --method gibbs --draws 1,000"),
        ("BVI(merge_factors=True); reals='beta'.", "--method bvi --merge-factors; --reals beta."),
        ("m.mln:1:1: bad\n    1 reals='beta'\n    ^", "m.mln:1:1: bad\n    1 reals='beta'\n    ^"),
    ],
)  # fmt: skip
def test_arguments_of_functions_become_options(text: str, expected: str) -> None:
    assert in_options(text) == expected


def test_errors_speak_of_options(run: Run, folder: Path) -> None:
    ended = run("infer", "papers.mln")

    assert ended.code == 2
    assert "pass --evidence paper=FILE, or evidence on In or Popularity\n" in ended.err


def test_notes_on_the_screen_speak_of_options(run: Run, folder: Path) -> None:
    size = 40
    rows = " ".join(f"2 {a} {b}" for a in range(size) for b in range(a))
    pairs = size * (size - 1) // 2
    tables = "4 1 2 2 1 " * pairs
    (folder / "wide.uai").write_text(f"MARKOV {size} {'2 ' * size} {pairs} {rows} {tables}")

    ended = run("infer", "wide.uai", "--seconds", 1)

    assert ended.code == 0
    assert "Note: BVI(3) was chosen" in ended.out
    assert "max_entries" not in ended.out


SPELLING = re.compile(
    r"\b[a-z_]\w*=[^\s=]"  # an argument
    r"|\b[A-Z]\w+\((?!s\)|\d+\))"  # a class; BVI(3) is a name
    r"|\bhl\.|\w\(…\)"  # a function
    r"|\b[a-z]+_[a-z_]+\b"  # a name
)
"""What only Python has; options have two dashes in front, and dashes in between."""

OF_FILES_AND_RULES = (
    *("SELECT ", "PRAGMA ", "SET "),  # queries
    *(
        "cov=5 of gaussian",
        "mean=[",
        "cov=[[…]]",
        "5 is a function: write 5(…)",
        "slope=5",
    ),  # rules
)
"""Other languages."""

OF_PYTHON = (
    *("not a value of type", "not of a value of type", "a domain is boolean", "reset_index()"),
    *("max_entries must", "map_seconds must", "natural_steps is", "max_classes is"),
    *("an optimiser is a value", "a method is a value", "a function takes at least one slot"),
    *("unique=5:", "unique='5':", "read it with 'read_model'"),
    *("plot_classes draws", "plot_race draws", "see best_map"),
    *("given(…)", "sample(…)", "expectation(…)", "pdf(…)"),
)
"""Of values that only programs pass, and of questions that only programs ask."""


def test_no_text_of_the_library_speaks_of_python_at_the_terminal() -> None:
    spoken = {in_options(text) for text in library_texts()}

    slips = sorted(
        text
        for text in spoken
        if SPELLING.search(text)
        and not any(known in text for known in (*OF_FILES_AND_RULES, *OF_PYTHON))
    )

    assert len(spoken) > 500
    assert slips == []


def library_texts() -> Iterator[str]:
    """Every sentence in the source that is not a docstring; 5 stands for what is filled in."""
    folder = Path(hylift.__file__).parent
    for path in folder.rglob("*.py"):
        inner = path.relative_to(folder).parts
        if "cli" in inner or "kernels" in inner or inner == ("warm_up.py",):
            continue
        yield from (text for text in sentences(ast.parse(path.read_text("utf-8"))) if " " in text)


def sentences(node: ast.AST) -> Iterator[str]:
    """The texts below a node of the syntax tree, except docstrings and what `repr` says."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.FunctionDef(name="__repr__"):
            return
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "5" for part in parts)
        case ast.Constant(value=str(text)):
            yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from sentences(child)


def test_every_setting_of_a_method_is_an_option() -> None:
    settings = {field.name for field in fields(MethodOptions)} - {"method"}

    assert settings | {"closed", "unmatched"} == set(SETTINGS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("box.mln -m bvi --reals gaussian", "--reals beta keeps them inside"),
        ("twins.mln -m epbp", "--method epbp --merge-factors makes them one"),
        ("twins.mln -m bvi", "--method bvi --merge-factors counts it once"),
        ("stiff.mln -m gibbs --draws 20 --warm-up 1", "more draws, or a longer --warm-up"),
        ("papers.mln -e facts.db -m bvi -k 2 --start five.npz", "ask for --components 5"),
        ("papers.mln -e facts.db -m gibbs --draws 0", "--draws is a whole number"),
        ("papers.mln -e facts.db -m gibbs --warm-up -1", "--warm-up is a whole number"),
        ("papers.mln -e facts.db -m bvi --max-steps 0", "--max-steps is a whole number"),
        ("papers.mln -e facts.db -m bp --damping 2", "--damping"),
        ("smokers.mln -m bp --lift coarse-to-fine", "--lift exact or --lift none"),
        ("papers.mln -e facts.db -m bvi --merge-factors --lift coarse-to-fine", "--merge-factors"),
        ("papers.mln -e facts.db --closed Inn", "--closed names 'Inn'"),
        ("papers.mln -e facts.db --unmatched skip", "--unmatched is 'error' or 'ignore'"),
        ("papers.mln -e facts.db -m exact -o draws.nc", "--method bvi or --method gibbs"),
    ],
)  # fmt: skip
def test_what_reaches_the_terminal_speaks_of_options(
    arguments: str, expected: str, run: Run, folder: Path
) -> None:
    for name, text in RULES.items():
        (folder / f"{name}.mln").write_text(text)
    if "five.npz" in arguments:
        run("infer", "papers.mln", "-e", "facts.db", "-m", "bvi", "-k", 5, "--save", "five.npz")

    ended = run("infer", *arguments.split())

    told = re.findall("^(?:Note|hylift): .*", ended.out + ended.err, re.MULTILINE)
    said = " ".join(re.sub("'[^']+'", "", line) for line in told)  # without quoted names
    assert expected in " ".join(told)
    assert not SPELLING.search(said)


RULES = {
    "box": "x: real [0, 1]\n-3 x\n",
    "twins": "A\nx: real\n1 A * x\n1 A * (x = 2)\n-0.5 x^2\n",
    "stiff": "A\nx: real\nnormal(x | 10*A, 0.01)\n-0.001 (x - 5)^2\n",
}
"""Models that notes and errors are about."""
