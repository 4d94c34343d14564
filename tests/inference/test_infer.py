"""The entry to inference: its name, its tasks, its progress."""

import subprocess
import sys

import pytest

import hylift as hl
import zoo
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph, boolean, real
from hylift.inference import BP, EPBP, Exact, GaBP, Gibbs, Method, infer
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


@pytest.mark.parametrize("method", ["exact", Exact])
def test_what_is_no_method_is_refused(method: object) -> None:
    graph = FactorGraph.build({"a": boolean}, [])

    with pytest.raises(UnsupportedError, match=r"a method is a value such as BVI\(\) or Exact\(\)"):
        infer(graph, method)


def test_a_contradiction_names_the_hard_rules() -> None:
    graph = hl.ground(hl.parse("A\nB\nA => B.\nA.\n!B."), {})

    for method in (None, hl.Exact(), hl.BP(), hl.MiniBuckets()):
        with pytest.raises(ImpossibleEvidenceError, match=r"'A => B\.', 'A\.' and '!B\.'"):
            hl.infer(graph, method)
