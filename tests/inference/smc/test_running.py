"""Runs of SMC: seeds, threads, time, refusals, draws."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest

import hylift as hl
from hybrid_shapes import chain, couplings
from hylift.errors import ImpossibleEvidenceError, IntractableError, UnsupportedError
from hylift.graph import FactorGraph, Variables, boolean, real
from hylift.inference import SMC, infer
from hylift.inference.smc import population
from hylift.inference.smc.answers import GroupAnswers
from hylift.inference.smc.findings import Findings
from hylift.posterior import Posterior
from hylift.posterior.draws import Draws
from hylift.potentials import ConditionalQuadratic, Table
from zoo import friends_and_smokers

SMALL = SMC(groups=3, particles=16, sweeps=2)


@pytest.mark.usefixtures("threads")
def test_answers_do_not_depend_on_the_number_of_threads() -> None:
    graph, found = chain(8, np.random.default_rng(0)), []

    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found.append(infer(graph, SMALL, seed=3))

    assert found[0].log_partition == found[1].log_partition
    assert found[0].draws is not None
    assert found[1].draws is not None
    assert (found[0].draws.values == found[1].draws.values).all()
    assert found[0].marginals().equals(found[1].marginals())


def test_another_seed_gives_another_answer() -> None:
    graph = friends_and_smokers()

    first, second = (infer(graph, SMALL, seed=seed, rewrite=False).log_partition for seed in (0, 1))

    assert first != second


def test_a_run_without_time_jumps_to_the_end_and_says_so() -> None:
    graph = couplings(9, np.random.default_rng(0))

    found = infer(graph, SMC(), seconds=1e-9)

    assert found.solution.result == "out_of_time"
    assert "made by weights alone, and the answer may be off" in found.solution.notes[-1]
    assert found.log_partition is not None
    assert np.isfinite(found.log_partition.value)


def test_a_run_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    graph, path = chain(9, np.random.default_rng(1)), tmp_path / "run"
    expected = infer(graph, SMALL, seed=2)

    infer(graph, SMALL, seed=2, checkpoint=path, callback=lambda step: True)
    found = infer(graph, SMALL, seed=2, checkpoint=path)

    assert found.log_partition == expected.log_partition
    assert found.marginals().equals(expected.marginals())


def test_particles_are_draws_of_all_variables() -> None:
    graph = chain(8, np.random.default_rng(0))

    found = infer(graph, SMC(groups=4, particles=64, sweeps=5), seed=1)

    assert found.draws is not None
    assert found.draws.values.shape == (4, 320, graph.num_variables)
    for at, variable in enumerate(found.draws.ids.tolist()):
        values, marginal = (
            found.draws.values[..., at],
            found.marginal(graph.variables.names[variable]),
        )
        if graph.variables.num_states[variable]:
            shares = [np.mean(values == state) for state in range(len(marginal.probs))]
            np.testing.assert_allclose(shares, marginal.probs, atol=0.06)
        else:
            assert values.mean() == pytest.approx(marginal.mean, abs=0.2 * marginal.std)
            assert values.std() == pytest.approx(marginal.std, rel=0.15)


def test_the_error_of_a_mean_comes_from_the_spread_of_groups(tmp_path: Path) -> None:
    """Two modes far apart: within a group all is even, and yet groups differ."""
    names = [f"d{i}" for i in range(12)]
    alike = Table.shared(2.0 * np.eye(2))
    pairs = [[names[i], names[j]] for i in range(12) for j in range(i)]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(alike, pair) for pair in pairs])

    found = infer(graph, SMC(), seed=4)
    found.save(tmp_path / "found.npz")

    assert found.draws is not None
    assert found.draws.weights is not None
    means, weights = found.draws.values.mean(axis=1), found.draws.weights
    spread = (weights * (means - found.draws.mean)) ** 2
    expected = 1.51 * np.sqrt(8 / 7 * spread.sum(axis=0))  # Student's t of 7, against normal
    np.testing.assert_allclose(found.draws.mcse, expected, rtol=0.01)
    assert (np.abs(found.draws.mean - 0.5) < 3 * found.draws.mcse).all()
    again = Posterior.load(tmp_path / "found.npz").draws
    assert again is not None
    assert again.weights is not None


def test_a_graph_without_hidden_variables_or_factors_is_solved() -> None:
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(Table.shared([0.0, 1.0]), ["a"])])

    seen, free = infer(graph.observe({"a": True, "b": True}), SMC()), infer(graph, SMC())

    assert seen.log_partition is not None
    assert free.log_partition is not None
    assert seen.log_partition.value == pytest.approx(1.0)
    assert free.log_partition.value == pytest.approx(np.log(2) + np.log1p(np.e))


def test_draws_go_to_arviz() -> None:
    pytest.importorskip("arviz")
    table = Table.shared(np.eye(2))
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(table, ["a", "b"])])

    data = infer(graph, SMALL).to_arviz()

    assert dict(data.posterior.sizes) == {"chain": 3, "draw": 32}


def test_impossible_evidence_is_reported() -> None:
    names = [f"d{i}" for i in range(9)]
    never = Table.shared([[-np.inf, 0.0], [0.0, -np.inf]])  # an odd cycle has no two colors
    pairs = [[names[i], names[(i + 1) % 9]] for i in range(9)]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(never, pair) for pair in pairs])

    with pytest.raises(ImpossibleEvidenceError, match="SMC found no states"):
        infer(graph, SMC(), rewrite=False)


def test_an_improper_real_is_named() -> None:
    loose = ConditionalQuadratic(
        np.array([[[[-1.0]], [[0.0]]]]), np.zeros((1, 2, 1)), np.zeros((1, 2))
    )
    graph = FactorGraph.build({"a": boolean, "height": real}, [(loose, ["a", "height"])])

    with pytest.raises(ValueError, match="height"):
        infer(graph, SMC())


@pytest.mark.parametrize("setting", ["groups", "particles"])
def test_one_group_or_particle_is_refused(setting: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{setting} must be an integer of at least 2"):
        SMC(**{setting: 1})


def test_groups_that_are_far_apart_when_time_is_up_leave_an_answer_and_large_errors() -> None:
    """Their weights differ by more than numbers can: one of them has all the weight."""
    model = hl.parse("""
        day = {0, ..., 299}
        level(day): real
        reading(day): real
        Broken(day)
        normal(level(d) | 0, 100)
        normal(level(d+1) | level(d), 0.01)
        normal(reading(d) | level(d), 0.01 + 100 * Broken(d))
    """)
    values = np.random.default_rng(0).normal(0, 30, 300)
    graph = hl.ground(
        model, {f"reading({day})": value for day, value in enumerate(values.tolist())}
    )

    found = hl.infer(graph, hl.SMC(), seconds=0.01)

    assert found.solution.result == "out_of_time"
    assert found.log_partition is not None
    assert found.log_partition.error > 100


def test_standard_errors_are_of_the_right_size() -> None:
    """Many runs: the deviation of their answers is that which each of them states."""
    graph = chain(8, np.random.default_rng(0))
    is_real = graph.variables.num_states == 0
    answers, errors = [], []

    for seed in range(40):
        found = infer(graph, SMC(particles=32, sweeps=2), seed=seed)
        assert found.draws is not None
        stated = found.draws.standard_errors()
        marginals = [found.marginal(name) for name in graph.variables.names]
        reals = [one for one, own in zip(marginals, is_real, strict=True) if own]
        probs = [one.probs[1] for one, own in zip(marginals, is_real, strict=True) if not own]
        means, stds = [one.mean for one in reals], [np.log(one.std) for one in reals]
        answers.append(np.concatenate([probs, means, stds]))
        own = [stated.probability[~is_real], stated.mean[is_real], stated.std[is_real]]
        errors.append(np.concatenate(own) / 1.51)  # Student's t of 7, against normal
        assert np.isnan(stated.probability[is_real]).all()
        assert np.isnan(stated.mean[~is_real]).all()

    spread = np.std(answers, axis=0, ddof=1)
    varies = spread > 1e-4  # leaves may have been integrated out exactly
    ratio = (np.sqrt(np.mean(np.square(errors), axis=0)) / spread)[varies]
    assert varies.mean() > 0.7
    # The deviation of 40 answers is known to about a tenth.
    assert ratio.min() > 0.6
    assert ratio.max() < 1.6


def test_errors_of_rewritten_variables_come_from_draws() -> None:
    graph = friends_and_smokers()

    found = infer(graph, SMALL, seed=1).draws

    assert found is not None
    stated = found.standard_errors().probability
    assert np.isfinite(stated).all()
    np.testing.assert_allclose(stated, found.mcse, rtol=3.0, atol=0.03)


def test_groups_count_by_their_weights_in_all_that_reads_draws() -> None:
    variables = FactorGraph.build({"a": boolean, "x": real}, []).variables
    values = np.stack([np.zeros((4, 2)), np.ones((4, 2))])
    weights = np.array([[0.25, 0.5], [0.75, 0.5]])
    draws = Draws(variables, np.arange(2), values, weights)

    np.testing.assert_allclose(draws.mean, [0.75, 0.5])
    table = draws.to_arrow().to_pydict()
    assert sum(one == "true" for one in table["a"]) == 6
    assert sum(table["x"]) == 4


def test_too_many_particles_are_refused_before_memory_runs_out() -> None:
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(Table.shared(np.eye(2)), ["a", "b"])])

    with pytest.raises(IntractableError, match=r"1,000,000 groups of 64 particles .* use fewer"):
        infer(graph, SMC(groups=10**6))


def test_coarse_to_fine_lifting_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="SMC has no lifting"):
        infer(friends_and_smokers(), SMALL, lift="coarse-to-fine")


def test_a_start_of_another_model_is_refused() -> None:
    other = infer(FactorGraph.build({"z": boolean}, [(Table.shared([0.0, 1.0]), ["z"])]))

    with pytest.raises(UnsupportedError, match="none of its atoms, such as 'z', is in this model"):
        infer(friends_and_smokers(), SMALL, start=other)


def test_parts_that_are_enumerated_are_right_without_time() -> None:
    graph = couplings(4, np.random.default_rng(0))

    found = infer(graph, SMC(), seconds=1e-9)

    assert found.solution.result == "converged"
    assert not found.solution.doubts
    expected = infer(graph, hl.Exact()).marginals()
    for name in ("mean", "std"):
        got, known = (one[name].to_numpy() for one in (found.marginals(), expected))
        np.testing.assert_allclose(got, known, atol=1e-9)


def test_blocks_of_parts_one_after_another_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, found = chain(9, np.random.default_rng(4)), []

    for longest in (population.LONGEST, 1):
        monkeypatch.setattr(population, "BURST", 1)
        monkeypatch.setattr(population, "LONGEST", longest)
        found.append(infer(graph, SMALL, seed=5))

    assert found[0].log_partition == found[1].log_partition
    assert found[0].marginals().equals(found[1].marginals())


def test_errors_grow_where_log_z_is_uncertain() -> None:
    """Groups that agree about all states may all have missed others."""
    variables = Variables.named({"a": boolean, "x": real})
    shape = np.zeros((8, 2))
    same = GroupAnswers(
        64,
        variables,
        np.zeros(2, dtype=np.int32),
        np.array([[0.0, 0.1, 2.0, -1.0, 1.7, -0.3, 0.6, 1.2]]).T,
        shape + 0.5,
        np.zeros((8, 1)),
        np.ones((8, 1)),
        np.zeros((8, 8, 2)),
        shape,
        lambda weights: [],
        np.zeros(1, dtype=bool),
    )
    found = Findings(same, 0.0)

    error, std_error = found.errors()

    assert found.log_z_error[0] > 0.4
    assert error[0] > 0.03
    assert std_error[1] > 0.1
    assert "differ in log Z" in found.doubts()[-1]


def test_a_checkpoint_before_the_end_has_particles_only(tmp_path: Path) -> None:
    graph, path = chain(9, np.random.default_rng(1)), tmp_path / "run"

    infer(graph, SMC(sweeps=200), seed=2, checkpoint=path, callback=lambda step: True)

    assert path.stat().st_size < 200_000  # all draws would be more than a million bytes


def test_draws_lead_back_from_a_graph_whose_variables_are_all_known() -> None:
    certain = Table(np.array([[-np.inf, 1.3]]))
    graph = FactorGraph.build({"a": boolean}, [(certain, ["a"])])

    found = infer(graph, SMC())

    assert found.draws is not None
    assert (found.draws.values == 1).all()
