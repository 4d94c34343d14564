"""What is written can be read again and says the same."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zoo
from hylift import read_evidence, read_uai, write_uai
from hylift.errors import UnsupportedError
from hylift.formats.uai import (
    read_marginals,
    write_assignment,
    write_log_partition,
    write_marginals,
)
from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, categorical, real
from hylift.inference import infer
from hylift.potentials import ConditionalQuadratic, Table

SIZES = [1, 2, 2, 3, 5]


@st.composite
def discrete_graphs(draw: st.DrawFn) -> FactorGraph:
    """Tables over variables of mixed sizes, with shared rows, multiplicities and zeros."""
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    variables = Variables.of([categorical(n) for n in sizes], Names.numbered(len(sizes)))
    groups = []
    for _ in range(draw(st.integers(0, 4))):
        arity = int(rng.integers(0, min(3, len(sizes)) + 1))
        scope = rng.permutation(len(sizes))[:arity]
        log_table = rng.normal(
            scale=draw(st.sampled_from([1, 400])), size=(2, *np.take(sizes, scope))
        )
        if log_table.size > 2:
            log_table[rng.random(log_table.shape) < 0.2] = -np.inf
        count = int(rng.integers(0, 4))
        groups.append(
            FactorGroup(
                Table(log_table),
                np.repeat(scope[None].astype(np.int32), count, axis=0),
                rng.integers(0, 2, count),
                rng.choice([1.0, 2.0, 0.5, 7.25], count),
            )
        )
    constant = draw(st.sampled_from([0.0, 1.5, -2000.0, 1e4]))
    return FactorGraph(variables, tuple(groups), log_constant=constant)


# The fixture is a folder, which examples may share.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=discrete_graphs(), seed=st.integers(0, 2**32 - 1))
def test_a_written_graph_has_the_same_density_everywhere(
    graph: FactorGraph, seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "graph.uai"
    rng = np.random.default_rng(seed)

    write_uai(graph, path)
    again = read_uai(path)

    assert again.variables.num_states.tolist() == graph.variables.num_states.tolist()
    for _ in range(20):
        values = rng.integers(0, graph.variables.num_states).astype(np.float64)
        expected = graph.log_density(values)
        assert again.log_density(values) == pytest.approx(expected, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("text", ["MARKOV 2 2 3 1 2 1 0 6 0 .1 .2 .3 1e-300 1e300\n"])
def test_reading_and_writing_again_changes_nothing(text: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.uai", tmp_path / "second.uai"
    (tmp_path / "original.uai").write_text(text)

    write_uai(read_uai(tmp_path / "original.uai"), first)
    write_uai(read_uai(first), second)

    assert read_uai(second).groups[0].potential.log_table == pytest.approx(
        read_uai(first).groups[0].potential.log_table, rel=1e-14
    )


def test_values_beyond_the_range_of_numbers_are_written_as_several_factors(tmp_path: Path) -> None:
    graph = FactorGraph(
        Variables.uniform(boolean, 1),
        (FactorGroup(Table.shared([3000.0, -5000.0]), np.array([[0]], dtype=np.int32)),),
    )

    write_uai(graph, tmp_path / "wide.uai")
    again = read_uai(tmp_path / "wide.uai")

    assert again.num_factors == 8
    assert again.log_density(np.array([0.0])) == pytest.approx(3000.0)
    assert again.log_density(np.array([1.0])) == pytest.approx(-5000.0)


def test_values_beyond_all_reason_are_refused(tmp_path: Path) -> None:
    graph = FactorGraph(
        Variables.uniform(boolean, 1),
        (FactorGroup(Table.shared([0.0, -1e9]), np.array([[0]], dtype=np.int32)),),
    )

    with pytest.raises(UnsupportedError, match="log-values are as large as 1e\\+09"):
        write_uai(graph, tmp_path / "graph.uai")
    assert not (tmp_path / "graph.uai").exists()


def test_evidence_is_absorbed_into_what_is_written(tmp_path: Path) -> None:
    graph = zoo.hidden_markov_model()
    assert len(graph.evidence)

    write_uai(graph, tmp_path / "graph.uai")
    again = infer(read_uai(tmp_path / "graph.uai"))

    expected = infer(graph)
    assert again.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-10)
    hidden = expected.marginals()["probs"].to_pylist()
    for found, probs in zip(again.marginals()["probs"].to_pylist(), hidden, strict=True):
        assert found == pytest.approx(probs, abs=1e-10)


def test_a_graph_with_reals_is_refused_by_name(tmp_path: Path) -> None:
    square = ConditionalQuadratic.squared_distance(1.0, [1.0], 0.0)
    graph = FactorGraph.build({"rain": boolean, "level": real}, [(square, ["level"])])

    with pytest.raises(UnsupportedError, match="discrete variables only; 'level' is real"):
        write_uai(graph, tmp_path / "graph.uai")


def test_observed_reals_do_not_stand_in_the_way(tmp_path: Path) -> None:
    level = ConditionalQuadratic.gaussian([[1.0], [4.0]], [[[1.0]], [[2.0]]])
    graph = FactorGraph.build({"rain": boolean, "level": real}, [(level, ["rain", "level"])])

    write_uai(graph.observe({"level": 3.0}), tmp_path / "graph.uai")

    expected = infer(graph.observe({"level": 3.0}))
    found = infer(read_uai(tmp_path / "graph.uai"))
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-10)
    assert found.marginal("x0").probs == pytest.approx(expected.marginal("rain").probs, abs=1e-10)


def test_a_lifted_graph_is_refused(tmp_path: Path) -> None:
    variables = Variables((boolean,), np.zeros(1, np.int32), Names.numbered(1), np.array([3.0]))

    with pytest.raises(UnsupportedError, match="ground graphs only; this one is lifted"):
        write_uai(FactorGraph(variables, ()), tmp_path / "graph.uai")


def test_marginals_are_read_as_they_were_written(tmp_path: Path) -> None:
    probs = [np.array([1.0]), np.array([0.1, 0.9]), np.array([1e-300, 0.0, 1 / 3])]

    write_marginals(probs, tmp_path / "model.MAR")

    found = read_marginals(tmp_path / "model.MAR")
    assert [row.tolist() for row in found] == [row.tolist() for row in probs]
    assert (tmp_path / "model.MAR").read_text().startswith("MAR\n3 1 1.0 2 0.1 0.9 3 ")


def test_no_marginals_are_a_file_too(tmp_path: Path) -> None:
    write_marginals([], tmp_path / "model.MAR")

    assert read_marginals(tmp_path / "model.MAR") == []


@pytest.mark.parametrize("log_z", [0.0, 1.0, -23.5, np.float64(1e5), np.float64(-1e-20)])
def test_the_partition_function_is_written_as_a_plain_logarithm_to_base_ten(
    log_z: float, tmp_path: Path
) -> None:
    write_log_partition(log_z, tmp_path / "model.PR")

    kind, number = (tmp_path / "model.PR").read_text().split()
    assert kind == "PR"
    assert float(number) == pytest.approx(log_z / np.log(10), rel=1e-15)


def test_an_assignment_is_written_as_states(tmp_path: Path) -> None:
    write_assignment(np.array([0.0, 2.0, 1.0]), tmp_path / "model.MPE")

    assert (tmp_path / "model.MPE").read_text() == "MPE\n3 0 2 1\n"


def test_evidence_written_by_hand_fits_the_model_it_was_written_for(tmp_path: Path) -> None:
    write_uai(zoo.friends_and_smokers(2), tmp_path / "model.uai")
    (tmp_path / "model.uai.evid").write_text("2 0 1 3 0\n")

    graph = read_uai(tmp_path / "model.uai")
    observed = graph.observe(read_evidence(tmp_path / "model.uai.evid", graph.variables.num_states))

    assert infer(observed).marginal("x0").probs.tolist() == [0.0, 1.0]
