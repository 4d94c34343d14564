"""The examples run, and the commands that go with them give the exact answers."""

import io
import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from hylift.cli import main
from hylift.language import check, read_model

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
MODELS = sorted((EXAMPLES / "models").glob("*.mln"))


@dataclass(frozen=True, slots=True)
class Run:
    """What a script printed, and the folder in which it was run."""

    printed: str
    complaints: str
    folder: Path

    def numbers(self, line: str) -> list[float]:
        """Those behind the words with which a printed line begins."""
        (rest,) = re.findall(rf"^{re.escape(line)}(.*)$", self.printed, re.MULTILINE)
        numbers = re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", rest)
        return [float(number.replace(",", "")) for number in numbers]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Runs a script in a folder of its own, once for all tests."""

    @cache
    def of(name: str) -> Run:
        folder = tmp_path_factory.mktemp(name)
        printed, complaints = io.StringIO(), io.StringIO()
        with chdir(folder), redirect_stdout(printed), redirect_stderr(complaints):
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return Run(printed.getvalue(), complaints.getvalue(), folder)

    return of


every_script = pytest.mark.parametrize("name", [path.stem for path in SCRIPTS])


@every_script
def test_a_script_prints_numbers_and_no_complaints(name: str, run: Callable[[str], Run]) -> None:
    found = run(name)

    assert any(letter.isdigit() for letter in found.printed)
    assert not re.search(r"\b(nan|inf)\b", found.printed.lower())
    assert found.complaints == ""


@every_script
def test_a_script_writes_one_picture_of_its_name(name: str, run: Callable[[str], Run]) -> None:
    found = run(name)

    assert [path.name for path in found.folder.iterdir()] == [f"{name}.png"]
    picture = matplotlib.image.imread(found.folder / f"{name}.png")
    height, width, _ = picture.shape
    assert 300 <= height <= 2400
    assert 600 <= width <= 2400
    assert picture[:, :, :3].std() > 0.05  # something is drawn on it


@every_script
def test_a_script_is_a_notebook_that_begins_with_its_title(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")

    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    assert cells[0] == ""
    assert cells[1].startswith(" [markdown]\n# # ")
    for cell in cells[1:]:
        words, _, body = cell.partition("\n")
        assert words in ("", " [markdown]")
        if words:
            assert all(line.startswith("#") for line in body.split("\n") if line)


def test_broken_sensors_are_found_and_rooms_are_told_better_than_by_means(
    run: Callable[[str], Run],
) -> None:
    found = run("sensors")

    (model,) = found.numbers("error of the model:")
    of_mean, of_median = found.numbers("error of means, medians:")
    held, num_rooms = found.numbers("90 % intervals that hold:")
    caught, num_broken = found.numbers("broken sensors found:")
    assert found.printed.count("converged\n") == 1
    assert model < 0.5 * min(of_mean, of_median)
    assert held >= 0.8 * num_rooms  # 90 % are expected; three deviations of 40 rooms are 14 %
    assert caught >= 0.6 * num_broken  # a fifth of them sent nothing, and cannot be found
    assert found.numbers("false alarms:") <= [2]


def test_ratings_and_topics_together_tell_more_than_ratings(run: Callable[[str], Run]) -> None:
    found = run("popularity")

    for what in ("topics", "rated papers", "unrated papers"):
        model, spreadsheet = found.numbers(f"{what} ")
        assert model < spreadsheet
    topics, num_topics, papers, num_papers = found.numbers("90 % intervals that hold:")
    assert "method exact" in found.printed
    assert topics >= 0.7 * num_topics  # 90 % are expected, give or take 9 % in twelve
    assert abs(papers / num_papers - 0.9) < 0.06  # two deviations are 4 %; papers share topics


def test_a_few_losses_tell_of_a_recession_and_of_silent_banks(run: Callable[[str], Run]) -> None:
    found = run("recession")

    mean_before, sd_before, mean, sd = found.numbers("recession   ")
    silent_before, _, silent, _ = found.numbers("revenue(Maple)")
    assert (mean_before, sd_before, silent_before) == (0.0, 1.0, 0.0)
    assert abs(mean - 1.5) < 2 * sd < 1  # the truth is 1.5
    assert silent < -1
    lifted, one_by_one, exact = (
        found.numbers(label)
        for label in ("messages, lifted", "messages, one by one", "exact, one by one")
    )
    assert lifted[1:] == pytest.approx(one_by_one[1:], abs=2e-6)  # six digits are printed
    assert lifted[1] == pytest.approx(exact[1], abs=2e-6)
    num_variables, num_classes, *_ = found.numbers("Lifting(")
    assert num_classes < 0.01 * num_variables


def test_all_shops_together_tell_the_slumps_that_one_does_not(run: Callable[[str], Run]) -> None:
    found = run("regimes")

    _, brier_of_one, *_ = found.numbers("one shop")
    right, brier, drop, sd, *_ = found.numbers("all, Gibbs")
    assert right >= 90
    assert brier < 0.25 * brier_of_one
    assert abs(drop - 0.6) < 2 * sd < 0.6  # the truth is 0.6


def test_edges_make_a_picture_sharper_than_smoothing_does(run: Callable[[str], Run]) -> None:
    found = run("denoising")

    noisy, *_ = found.numbers("noisy picture: RMSE")
    smooth, *_ = found.numbers("without edges, exact: RMSE")
    sharp, *_ = found.numbers("with edges, Gibbs: RMSE")
    assert sharp < 0.8 * smooth < noisy


@pytest.mark.parametrize("what", ["readings", "gaps"])
def test_a_filter_tells_next_month_better_than_the_last_reading(
    what: str, run: Callable[[str], Run]
) -> None:
    found = run("wells")

    _, error, of_last, held, _ = found.numbers(what)
    assert error < of_last
    assert 85 <= held <= 95  # 90 % are expected; wells that move together err together


def test_levels_of_shops_are_told_better_than_by_medians(run: Callable[[str], Run]) -> None:
    found = run("shops")

    model, of_mean, of_median = found.numbers("error of model, mean, median:")
    held, num_shops = found.numbers("90 % intervals that hold:")
    caught, num_odd = found.numbers("odd weeks found:")
    low, high, truth = found.numbers("variance of ordinary weeks:")
    assert "method exact" in found.printed
    assert model < of_median < of_mean
    assert held >= 0.7 * num_shops  # 90 % are expected, give or take 9 % in ten
    assert caught >= 0.4 * num_odd  # the others are within two deviations of ordinary weeks
    assert found.numbers("false alarms:") <= [3]
    assert low < truth < high


def test_votes_that_are_weighed_tell_more_than_a_majority(run: Callable[[str], Run]) -> None:
    found = run("skills")

    (model,), (majority,) = found.numbers("right about"), found.numbers("majority of votes:")
    right, num_sure = found.numbers("sure and right:")
    assert ", checked" in found.printed
    assert model > majority
    assert num_sure >= 60  # of 80 people and voters
    assert right >= 0.9 * num_sure


def test_sums_over_segments_tell_roads_and_slow_drivers_apart(run: Callable[[str], Run]) -> None:
    found = run("deliveries")

    (model,) = found.numbers("error of model:")
    (spreadsheet,) = found.numbers("error of spreadsheet:")
    held, num_segments = found.numbers("90 % intervals that hold:")
    right, num_drivers = found.numbers("drivers judged right:")
    assert ", certified" in found.printed
    assert model < 0.85 * spreadsheet
    assert held >= 0.8 * num_segments  # 90 % are expected; two deviations of 40 are 10 %
    assert right == num_drivers


def test_answers_weighed_by_question_tell_more_than_scores(run: Callable[[str], Run]) -> None:
    found = run("abilities")

    (model,), (scores,) = found.numbers("error of model:"), found.numbers("error of scores:")
    held, num_reals = found.numbers("90 % intervals that hold:")
    assert "method EP" in found.printed
    assert model < 0.95 * scores
    assert 0.8 * num_reals <= held < num_reals  # 90 % are expected; students share questions


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_has_neither_errors_nor_warnings(path: Path) -> None:
    assert list(check(read_model(path))) == []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with the examples in it."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder / "examples")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def published(project: Path, data_dir: Path) -> None:
    """The published data as a folder `data` to read from."""
    (project / "data").symlink_to(data_dir, target_is_directory=True)


def answer(command: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The JSON that a command writes into the file it names last."""
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    result: dict[str, Any] = json.loads(Path(words[-1]).read_text(encoding="utf-8"))
    return result


def test_the_toy_has_its_exact_marginals(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/toy.mln --task marginals --output toy.json", monkeypatch
    )

    assert len(result["marginals"]) == 21
    for atom in ("posA(a0)", "posA(a1)"):
        assert result["marginals"][atom]["mean"] == pytest.approx(-0.486916, abs=1e-6)
        assert result["marginals"][atom]["std"] ** 2 == pytest.approx(6.013026, abs=1e-6)


@pytest.mark.usefixtures("published")
def test_the_recession_has_its_exact_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/rgm.mln --evidence data/rgm/evidence_0.csv --output rgm.json",
        monkeypatch,
    )

    assert result["marginals"]["recession"]["mean"] == pytest.approx(0.164827734, abs=1e-8)
    assert result["log_partition"]["kind"] == "exact"


@pytest.mark.usefixtures("published")
def test_the_papers_have_their_exact_map(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answer(
        "hylift infer examples/models/papers.mln --evidence data/papers/evidence_0.csv "
        "--unmatched ignore --task map --output papers.json",
        monkeypatch,
    )

    assert result["map"]["energy"] == pytest.approx(7425.860899, abs=1e-6)
    assert result["map"]["kind"] == "exact"
    assert capsys.readouterr().err == (
        "hylift: note: data/papers/evidence_0.csv: 100 rows left out; the first, row "
        "1135: SameSession(t212, t275): 't212' is not a constant of type 'topic', which has t0 to "
        "t9\n"
    )


@pytest.mark.usefixtures("published")
def test_the_robot_has_its_exact_map(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/robot.mln --evidence data/robot/robot-map.db "
        "--closed Aligned --unmatched ignore --task map --output robot.json",
        monkeypatch,
    )

    best = result["map"]["assignment"]
    assert result["map"]["energy"] == pytest.approx(-5020.526558, abs=1e-6)
    assert result["map"]["kind"] == "exact"
    # Kinds of the segments: 34 walls, no doors, 3 others.
    kinds = [atom[-2] for atom, value in best.items() if atom[:7] == "SegType" and value == "true"]
    assert {kind: kinds.count(kind) for kind in "WDO"} == {"W": 34, "D": 0, "O": 3}
