"""The entry to inference: its name, its tasks, its progress."""

import subprocess
import sys

import pytest

import hylift as hl
import zoo
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph, boolean, real
from hylift.inference import BP, EPBP, Exact, GaBP, Gibbs, Method, infer
from hylift.inference.capabilities import METHODS, MethodInfo
from hylift.inference.method import method_by_key, named_method
from hylift.potentials import ConditionalQuadratic


@pytest.mark.parametrize("first", ["hylift.Exact", "import_module('hylift.inference')"])
def test_the_function_is_not_hidden_by_the_package_of_the_same_name(first: str) -> None:
    """What users import first makes no difference."""
    code = f"import hylift; from importlib import import_module; {first}; print(hylift.infer)"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.startswith("<function infer")


def test_an_unknown_task_suggests_the_closest() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        infer(zoo.hard_clause(), tasks=["marginal"])

    assert str(refusal.value) == (
        "there is no task 'marginal': choose among marginals, logz, map. Did you mean 'marginals'?"
    )


def test_tasks_decide_what_is_there() -> None:
    graph = zoo.hard_clause()

    only_map = infer(graph, tasks="map")
    only_log_z = infer(graph, tasks=["logz"])

    assert only_map.log_partition is None
    assert only_map.all_marginals is None
    assert only_map.assignment is not None
    assert only_log_z.log_partition is not None
    assert only_log_z.all_marginals is None
    assert only_log_z.assignment is None


def test_progress_runs_from_nothing_to_all() -> None:
    told = []

    infer(zoo.friends_and_smokers(), progress=lambda share, what: told.append((share, what)))

    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] == pytest.approx(1.0)
    assert all(what for _, what in told)


@pytest.mark.parametrize("method", [Gibbs(), Exact(), BP(), GaBP(), EPBP()], ids=lambda m: m.name)
def test_a_method_that_begins_in_its_own_way_refuses_a_start(method: Method) -> None:
    reals = FactorGraph.build({"x": real}, [(ConditionalQuadratic.gaussian([0.0], 1.0), ["x"])])
    graph = reals if isinstance(method, GaBP) else zoo.hard_clause()
    earlier = infer(graph)

    with pytest.raises(UnsupportedError) as refusal:
        infer(graph, method, start=earlier)

    assert str(refusal.value).endswith(
        "cannot start from an earlier posterior: leave start out, or use MeanField(), "
        "BVI(), NPVI(), SMC() or MaxWalkSAT()"
    )
    assert str(refusal.value).lower().startswith(method.name.lower()[:2])


def test_an_error_of_the_caller_stops_the_work() -> None:
    def stop(share: float, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer(zoo.friends_and_smokers(), progress=stop)


@pytest.mark.parametrize("method", [3, Exact])
def test_what_is_no_method_is_refused(method: object) -> None:
    graph = FactorGraph.build({"a": boolean}, [])

    with pytest.raises(UnsupportedError, match=r"or a name such as 'bvi', not "):
        infer(graph, method)


@pytest.mark.parametrize("info", METHODS, ids=lambda info: info.key)
def test_a_method_has_the_name_that_it_has_on_the_command_line(info: MethodInfo) -> None:
    assert named_method(info.key) == method_by_key(info.key)
    assert type(named_method(info.key)).__name__ == info.class_name


def test_a_name_gives_the_same_answer_as_the_method() -> None:
    graph = zoo.friends_and_smokers()

    by_name, by_value = infer(graph, "gibbs", seed=1), infer(graph, Gibbs(), seed=1)

    assert by_name.marginals().equals(by_value.marginals())
    assert infer(graph, "auto").solution.notes == infer(graph).solution.notes


def test_an_unknown_name_suggests_the_closest() -> None:
    keys = ", ".join(info.key for info in METHODS)

    with pytest.raises(UnsupportedError) as refusal:
        infer(zoo.hard_clause(), "Gibs")

    assert str(refusal.value) == (
        f"there is no method 'Gibs': choose among auto, {keys}. Did you mean 'gibbs'?"
    )


def test_progress_can_be_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal

    infer(zoo.friends_and_smokers(), "bp", progress=True)
    shown = capsys.readouterr()
    infer(zoo.friends_and_smokers(), "bp", progress=False)

    assert "largest change" in shown.err
    assert shown.out == ""
    assert capsys.readouterr() == ("", "")


def test_other_progress_is_refused() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        infer(zoo.hard_clause(), progress="yes")

    assert str(refusal.value) == (
        "progress must be True, or a function of a share and a text, not 'yes'"
    )


def test_a_contradiction_names_the_hard_rules() -> None:
    graph = hl.ground(hl.parse("A\nB\nA => B.\nA.\n!B."), {})

    for method in (None, hl.Exact(), hl.BP(), hl.MiniBuckets()):
        with pytest.raises(ImpossibleEvidenceError, match=r"'A => B\.', 'A\.' and '!B\.'"):
            hl.infer(graph, method)
