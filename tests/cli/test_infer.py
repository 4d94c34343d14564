"""`hylift infer` answers what it is asked, and writes what others can read."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.conftest import CHAIN, Run
from hylift.formats.uai import read_evidence, read_marginals, read_uai
from hylift.inference import infer
from hylift.posterior import Posterior


@pytest.fixture
def answer(folder: Path) -> Posterior:
    """What the library says about the model and its evidence."""
    graph = read_uai(folder / "model.uai")
    evidence = read_evidence(folder / "model.uai.evid", graph.variables.num_states)
    return infer(graph.observe(evidence), tasks=("marginals", "logz", "map"))


def solved(run: Run, *arguments: object) -> dict[str, Any]:
    """The JSON that a run on the model and its evidence prints."""
    ended = run("infer", "model.uai", "-e", "model.uai.evid", *arguments, "-o", "-")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_the_default_is_marginals_and_log_z(run: Run, answer: Posterior) -> None:
    result = solved(run)

    assert set(result) == {
        "model",
        "method",
        "seed",
        "log_partition",
        "marginals",
        "trust",
        "solution",
    }
    assert (result["model"], result["method"], result["seed"]) == ("model.uai", "exact", 0)
    assert result["log_partition"]["kind"] == "exact"
    assert result["log_partition"]["value"] == pytest.approx(answer.log_partition.value, abs=1e-10)
    assert list(result["marginals"]) == [f"x{i}" for i in range(1, CHAIN)]
    for name, marginal in result["marginals"].items():
        assert marginal["states"] == ["0", "1"]
        assert marginal["probs"] == pytest.approx(answer.marginal(name).probs, abs=1e-10)


def test_exact_inference_can_be_ruled_out(run: Run, folder: Path) -> None:
    found = solved(run, "--no-exact")
    refused = run("infer", "model.uai", "--no-exact", "--method", "bvi")

    assert found["method"] != "exact"
    assert refused.code != 0
    assert "--no-exact is for --method auto, not for bvi" in refused.err


def test_how_the_solver_ended_is_part_of_the_result(run: Run, folder: Path) -> None:
    solution = solved(run, "--seed", 7)["solution"]

    assert solution["result"] == "converged"
    assert isinstance(solution["steps"], int)
    assert solution["seconds"] >= 0
    assert isinstance(solution["objective"], float)


def test_map_gives_the_best_states_and_their_energy(run: Run, answer: Posterior) -> None:
    found = solved(run, "--task", "map")["map"]

    assert found["energy"] == pytest.approx(answer.map().energy, abs=1e-10)
    assert found["assignment"] == answer.map().to_dict()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--task", "marginals"], {"marginals"}),
        (["--task", "logz"], {"log_partition"}),
        (["--task", "map"], {"map"}),
        (["--task", "map", "--task", "logz"], {"map", "log_partition"}),
        (["--task", "map,logz"], {"map", "log_partition"}),
        (["-t", "map, marginals", "-t", "logz"], {"map", "marginals", "log_partition"}),
        (["-t", "map", "-t", "map"], {"map"}),
    ],
)
def test_only_what_is_asked_for_is_in_the_result(
    arguments: list[str], expected: set[str], run: Run, folder: Path
) -> None:
    result = solved(run, *arguments)

    assert set(result) == {"model", "method", "seed", "trust", "solution"} | expected


def test_the_seed_is_in_the_result(run: Run, folder: Path) -> None:
    assert solved(run, "--seed", 7)["seed"] == 7


def test_both_dialects_of_evidence_give_one_answer(run: Run, folder: Path) -> None:
    first = solved(run)["marginals"]
    (folder / "model.uai.evid").write_text("1\n1\n0 1\n")

    assert solved(run)["marginals"] == first


def test_when_everything_is_observed_the_answer_is_empty_but_there(run: Run, folder: Path) -> None:
    pairs = " ".join(f"{i} 1" for i in range(CHAIN))
    (folder / "model.uai.evid").write_text(f"{CHAIN} {pairs}")

    result = solved(run, "--task", "marginals,logz,map")

    log_density = np.log(0.6) + (CHAIN - 1) * np.log(3)
    assert result["log_partition"]["value"] == pytest.approx(log_density)
    assert result["marginals"] == {}
    assert result["map"]["assignment"] == {}
    assert result["map"]["energy"] == pytest.approx(-log_density)


def test_a_doubtful_answer_is_told_even_when_quiet(run: Run, folder: Path) -> None:
    rules = "n = {0, ..., 9}\nR(n)\nS(n)\n2 R(x) v S(y)\n"
    (folder / "two.mln").write_text(rules)

    ended = run("infer", "two.mln", "-m", "mean-field", "-o", "out.parquet", "--quiet")

    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("hylift: doubtful: This answer may be off: by a short run of SMC")
    assert ended.err.endswith("A check, --check, or the default method, may have a better answer, "
                              "and more --seconds may help.\n")  # fmt: skip
    assert set(pq.read_table(folder / "out.parquet")["verdict"].to_pylist()) == {"doubtful"}


@pytest.mark.parametrize("task", ["marginals", "map"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_table_still_has_its_columns(
    ending: str, task: str, run: Run, folder: Path
) -> None:
    pairs = " ".join(f"{i} 1" for i in range(CHAIN))
    (folder / "model.uai.evid").write_text(f"{CHAIN} {pairs}")

    ended = run(
        "infer", "model.uai", "-e", "model.uai.evid", "-t", task, "-o", f"out.{ending}", "--quiet"
    )

    assert (ended.code, ended.err) == (0, "")
    if ending == "csv":
        assert (folder / "out.csv").read_text().startswith('"atom","state",')
    else:
        assert pq.read_table(folder / "out.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (["x3"], ["x3"]),
        (["x1*"], ["x1", "x10", "x11"]),
        (["x?"], [f"x{i}" for i in range(10)]),
        (["x11", "x2", "x11"], ["x11", "x2"]),
        (["ask.query"], ["x5", "x4"]),
        (["ask.query", "x0", "x5"], ["x5", "x4", "x0"]),
        (["none.query"], []),
    ],
)
def test_a_query_chooses_what_is_shown_and_in_which_order(
    query: list[str], expected: list[str], run: Run, folder: Path
) -> None:
    (folder / "ask.query").write_text("2\n5 4\n")
    (folder / "none.query").write_text("0\n")
    arguments = [word for pattern in query for word in ("--query", pattern)]

    result = solved(run, *arguments, "--task", "marginals,map")

    assert list(result["marginals"]) == expected
    assert list(result["map"]["assignment"]) == expected


def test_an_observed_variable_can_be_queried(run: Run, folder: Path) -> None:
    result = solved(run, "--query", "x0", "--task", "marginals,map")

    assert result["marginals"]["x0"]["probs"] == [0.0, 1.0]
    assert result["map"]["assignment"] == {"x0": "1"}


def write(run: Run, name: str, *arguments: str) -> None:
    ended = run("infer", "model.uai", "-e", "model.uai.evid", *arguments, "-o", name, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_json_file_holds_what_is_printed(run: Run, folder: Path) -> None:
    write(run, "out.json")

    written = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    printed = solved(run)
    for result in (written, printed):
        del result["solution"]["seconds"]
    assert written == printed


def test_a_csv_file_has_one_row_per_state(run: Run, folder: Path, answer: Posterior) -> None:
    write(run, "out.csv")

    with (folder / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * (CHAIN - 1)
    for row in rows:
        expected = answer.marginal(row["atom"]).prob(row["state"])
        assert float(row["prob"]) == pytest.approx(expected, abs=1e-10)


def test_a_csv_file_holds_the_assignment_where_only_that_is_asked_for(
    run: Run, folder: Path, answer: Posterior
) -> None:
    write(run, "out.csv", "--task", "map")

    with (folder / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["atom"]: row["state"] for row in rows} == answer.map().to_dict()


def test_a_parquet_file_has_one_row_per_variable(run: Run, folder: Path, answer: Posterior) -> None:
    write(run, "out.parquet")

    assert pq.read_table(folder / "out.parquet").equals(answer.marginals())


def test_a_mar_file_holds_all_variables_even_observed_ones(
    run: Run, folder: Path, answer: Posterior
) -> None:
    write(run, "out.MAR")

    found = read_marginals(folder / "out.MAR")
    expected = answer.marginals(observed=True)["probs"].to_pylist()
    assert len(found) == CHAIN
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-10)


def test_a_pr_file_holds_the_logarithm_to_base_ten(
    run: Run, folder: Path, answer: Posterior
) -> None:
    write(run, "out.PR")

    kind, number = (folder / "out.PR").read_text().split()
    assert kind == "PR"
    assert float(number) * np.log(10) == pytest.approx(answer.log_partition.value, abs=1e-10)


def test_an_mpe_file_holds_all_states(run: Run, folder: Path, answer: Posterior) -> None:
    write(run, "out.MPE")

    kind, count, *states = (folder / "out.MPE").read_text().split()
    assert (kind, int(count)) == ("MPE", CHAIN)
    assert list(map(float, states)) == answer.map().values.tolist()


@pytest.mark.parametrize("name", ["OUT.JSON", "out.mar", "out.Pr", "out.mpe", "out.CSV"])
def test_the_case_of_an_ending_does_not_matter(name: str, run: Run, folder: Path) -> None:
    write(run, name)

    assert (folder / name).stat().st_size > 0


def test_an_output_says_on_the_screen_where_it_is(run: Run, folder: Path) -> None:
    deep = folder / "/".join(["a folder with a rather long name"] * 4)
    deep.mkdir(parents=True)

    ended = run("infer", "model.uai", "-o", deep / "out.json")

    assert ended.code == 0
    assert ended.out.splitlines()[-1] == f"Written to {deep / 'out.json'}"


def test_the_screen_shows_numbers_in_whole_lines_without_colours(run: Run, folder: Path) -> None:
    ended = run("infer", "model.uai", "-e", "model.uai.evid", "-t", "marginals,logz,map")

    first, second, *rest = ended.out.splitlines()
    assert first.startswith("model.uai: 12 variables, 1 observed; method exact, ")
    assert second.startswith("log Z = ")
    assert second.endswith(" (exact)")
    assert any(line.split()[0:2] == ["x1", "0"] for line in rest)
    assert any(line.startswith("MAP energy = ") for line in rest)
    assert "\x1b" not in ended.out + ended.err
    assert ended.err == ""


def test_a_long_list_is_cut_on_the_screen(run: Run, folder: Path) -> None:
    (folder / "many.uai").write_text(f"MARKOV 50 {'2 ' * 50} 0")

    ended = run("infer", "many.uai")

    assert "… and 30 more (--query or --top choose some, --output has all)" in ended.out


def test_many_states_are_cut_but_stay_on_one_line(run: Run, folder: Path) -> None:
    states = 200
    (folder / "wide.uai").write_text(f"MARKOV 1 {states} 1 1 0 {states} " + "0.123 " * states)

    ended = run("infer", "wide.uai")

    assert any(line.rstrip(" ✓").endswith("(+196 states)") for line in ended.out.splitlines())


def test_quiet_prints_nothing(run: Run, folder: Path) -> None:
    ended = run("infer", "model.uai", "--quiet")

    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_names_of_files_are_shown_as_they_are(run: Run, folder: Path) -> None:
    (folder / "model.uai").rename(folder / ":dog: [bold]x.uai")

    ended = run("infer", ":dog: [bold]x.uai", "-o", ":cat:[i].json")

    assert ended.code == 0
    assert ended.out.startswith(":dog: [bold]x.uai: 12 variables")
    assert ended.out.splitlines()[-1] == "Written to :cat:[i].json"


def test_a_published_model_gives_its_published_answers(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    model = data_dir / "uai" / "Pedigree_11.uai"
    if not model.exists():
        pytest.skip(f"there is no published model {model}")
    asked = ["infer", model, "--evidence", f"{model}.evid", "--quiet", "--output"]

    for name in ("out.MAR", "out.PR"):
        assert run(*asked, tmp_path / name).code == 0

    found, expected = read_marginals(tmp_path / "out.MAR"), read_marginals(Path(f"{model}.MAR"))
    # The published numbers have six digits.
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), rtol=0, atol=1e-5)
    log10_z = float((tmp_path / "out.PR").read_text().split()[1])
    assert log10_z == pytest.approx(-17.215494, abs=1e-5)


PAPERS = ("infer", "papers.mln", "-e", "facts.db")


def test_a_predicate_asks_for_its_atoms_that_are_not_observed(run: Run, folder: Path) -> None:
    hidden = run(*PAPERS, "-q", "Popularity", "-o", "-")
    every = run(*PAPERS, "-q", "Popularity(*)", "-o", "-")

    assert list(json.loads(hidden.out)["marginals"]) == ["Popularity(P2)"]
    assert list(json.loads(every.out)["marginals"]) == ["Popularity(P1)", "Popularity(P2)"]


@pytest.mark.parametrize("first", ["Trend", "In(*)"])
def test_the_kind_that_is_asked_for_first_is_shown_first(
    first: str, run: Run, folder: Path
) -> None:
    second = "In(*)" if first == "Trend" else "Trend"

    out = run(*PAPERS, "-q", first, "-q", second).out

    assert (out.index("Trend(") < out.index("In(")) == (first == "Trend")


def test_observed_variables_are_marked_on_the_screen(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "-q", "In(*)", "-q", "Popularity(*)", "-t", "marginals,map")

    ends = {}
    for line in ended.out.splitlines():
        name = line.split()[0] if line.split() else ""
        if "(P" in name:
            ends.setdefault(name, []).append(line.rstrip().endswith("observed"))
    for name in ("In(P1,T1)", "In(P2,T1)", "In(P2,T2)", "Popularity(P1)"):
        assert ends[name] == [True, True], name
    for name in ("In(P1,T2)", "Popularity(P2)"):
        assert ends[name] == [False, False], name
