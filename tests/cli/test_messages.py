"""What the library says in terms of Python, the command line says in terms of options."""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hylift
from cli.conftest import Run
from hylift.errors import UnsupportedError
from hylift.grounding.evidence.facts import Origin
from hylift.words import Wording, method_call, option, worded


@pytest.mark.parametrize(
    ("text", "python", "cli"),
    [
        (option("warm_up"), "warm_up", "--warm-up"),
        (option("unmatched", "ignore"), "unmatched='ignore'", "--unmatched ignore"),
        (option("components", 5), "components=5", "--components 5"),
        (method_call("Exact"), "Exact()", "--method exact"),
        (method_call("Gibbs", draws=9), "Gibbs(draws=9)", "--method gibbs --draws 9"),
        (
            method_call("BVI", merge_factors=True),
            "BVI(merge_factors=True)",
            "--method bvi --merge-factors",
        ),
        (
            worded("use ", method_call("BVI"), " or ", option("lift", "none")),
            "use BVI() or lift='none'",
            "use --method bvi or --lift none",
        ),
        (
            Origin("a=b.csv", file="a=b.csv").selection("In", ["pa per", "to,pic"]),
            "df[['pa per', 'to,pic']]",
            "--evidence 'In=a=b.csv[pa per,\"to,pic\"]'",
        ),
        (
            Origin("x.csv", file="x.csv").selection("In", ["it's", "a\\b", "…", 'c "d"']),
            "df[[\"it's\", 'a\\\\b', …, 'c \"d\"']]",
            """--evidence 'In=x.csv[it'"'"'s,a\\b,…,"c ""d\"""]'""",
        ),
        (
            Origin("x.db, table 'in'", file="x.db").selection("In", ["paper", "…"]),
            "df[['paper', …]]",
            "--evidence 'In=x.db[paper,…]'",
        ),
    ],
)
def test_arguments_of_functions_are_options(text: Wording, python: str, cli: str) -> None:
    assert (text, text.python, text.cli) == (python, python, cli)


def test_an_error_carries_its_remedy_in_both_wordings() -> None:
    remedy = worded("use ", method_call("BVI"), " or ", method_call("EPBP"))

    error = pickle.loads(pickle.dumps(UnsupportedError("Gibbs has no functions", remedy)))

    assert (error.remedy.python, error.remedy.cli) == (remedy.python, remedy.cli)
    assert str(error) == "Gibbs has no functions: use BVI() or EPBP()"
    assert error.cli == "Gibbs has no functions: use --method bvi or --method epbp"


def test_every_file_of_evidence_names_itself_in_remedies(run: Run, folder: Path) -> None:
    (folder / "wide.csv").write_text("paper,year,topic\np1,1999,t1\n")

    ended = run("infer", "papers.mln", "-e", "In=wide.csv")

    assert ended.code == 2
    assert "choose columns of it (--evidence 'In=wide.csv[paper,topic]')" in ended.err


def test_errors_speak_of_options(run: Run, folder: Path) -> None:
    ended = run("infer", "papers.mln")

    assert ended.code == 2
    assert "pass --evidence paper=FILE, or evidence on In or Popularity\n" in ended.err


def test_notes_on_the_screen_speak_of_options(run: Run, folder: Path) -> None:
    size = 40
    rows = " ".join(f"2 {a} {b}" for a in range(size) for b in range(a))
    pairs = size * (size - 1) // 2
    tables = " ".join(f"4 1 2 {2 + b / 100} 1" for a in range(size) for b in range(a))
    (folder / "wide.uai").write_text(f"MARKOV {size} {'2 ' * size} {pairs} {rows} {tables}")

    ended = run("infer", "wide.uai", "--seconds", 1)

    assert ended.code == 0
    assert " was chosen, because exact" in ended.out
    assert "max_entries" not in ended.out


SPELLING = re.compile(
    r"\b[a-z_]\w*=[^\s=]"  # an argument
    r"|\b[A-Z]\w+\((?!s\)|\d+\))"  # a class; BVI(3) is a name
    r"|\bhl\.|\w\(…\)"  # a function
    r"|\b[a-z]+_[a-z_]+\b"  # a name
)
"""What only Python has; options have two dashes in front, and dashes in between."""

OF_FILES_AND_RULES = (
    *("SELECT ", "PRAGMA ", "SET ", "CAST("),  # queries
    *(
        "cov=5 of gaussian",
        "mean=[",
        "cov=[[…]]",
        "5 is a function: write 5(…)",
        "slope=5",
        "'Smokes(?x)'",
        "is written 'bernoulli_",
    ),  # rules
)
"""Other languages."""

OF_PYTHON = (
    *("not a value of type", "not of a value of type", "a domain is boolean", "reset_index()"),
    *("max_entries must", "map_seconds must", "natural_steps must", "max_classes must"),
    *("optimiser must be a value", "a method is a value", "a function takes at least one slot"),
    *("unique=5:", "unique='5':", "read it with 'read_model'"),
    *("plot_classes draws", "plot_race draws", "see best_map"),
    *("given(…)", "sample(…)", "expect(…)", "pdf(…)", "compare(…)", "kalman_filter needs"),
    *("expected_counts() needs", "mean=5, std=5", "only_rows must be a list"),
)
"""Of values that only programs pass, and of questions that only programs ask."""


def test_no_text_of_the_library_speaks_of_python_at_the_terminal() -> None:
    spoken = set(library_texts())

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
    """The texts below a node of the syntax tree, except docstrings and what is for Python only."""
    match node:
        case ast.Call(func=ast.Name("Wording"), args=[_, cli]):
            yield from sentences(cli)
        case ast.Expr(value=ast.Constant()) | ast.FunctionDef(name="__repr__"):
            return
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "5" for part in parts)
        case ast.Constant(value=str(text)):
            yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from sentences(child)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("box.mln -m bvi --reals gaussian", "--reals beta keeps them inside"),
        ("twins.mln -m epbp", "--method epbp --merge-factors makes them one"),
        ("twins.mln -m bvi", "--method bvi --merge-factors counts it once"),
        ("stiff.mln -m gibbs --draws 8 --warm-up 1", "use more draws, or a longer --warm-up"),
        ("papers.mln -e facts.db -m bvi -k 2 --start five.npz", "ask for --components 5"),
        ("papers.mln -e facts.db -m gibbs --draws 0", "--draws must be an integer"),
        ("papers.mln -e facts.db -m gibbs --warm-up -1", "--warm-up must be an integer"),
        ("papers.mln -e facts.db -m bvi --max-steps 0", "--max-steps must be an integer"),
        ("papers.mln -e facts.db -m bp --damping 2", "--damping"),
        ("smokers.mln -m bp --lift coarse-to-fine", "--lift exact or --lift none"),
        ("papers.mln -e facts.db -m bvi --merge-factors --lift coarse-to-fine", "--merge-factors"),
        ("papers.mln -e facts.db --closed Inn", "--closed names 'Inn'"),
        ("papers.mln -e facts.db --unmatched skip", "--unmatched must be 'error' or 'ignore'"),
        ("papers.mln -e facts.db -m maxwalksat -o draws.nc", "--task marginals"),
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
