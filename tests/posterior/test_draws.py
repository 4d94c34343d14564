"""What was drawn: its errors, its tables, and its way to ArviZ."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hylift.errors import FormatError, UnknownNameError, UnsupportedError
from hylift.graph import Names, Variables, boolean, categorical, real
from hylift.inference import infer
from hylift.inference.sampling import Gibbs
from hylift.posterior import Posterior
from hylift.posterior.draws import Draws
from hylift.posterior.mixing import split_r_hat, standard_error
from zoo import hard_clause, switching_regime


@pytest.fixture
def arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it announces its next version
        return pytest.importorskip("arviz")


@pytest.fixture
def without_arviz(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module

    def refuse(name: str, package: str | None = None) -> Any:
        if name == "arviz":
            raise ImportError(name)
        return found(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)


def autoregressive(chains: int, draws: int, memory: float, seed: int = 0) -> np.ndarray:
    """(chain, draw): a stationary process of variance 1, whose mean is 0."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(chains, draws)) * np.sqrt(1 - memory**2)
    values = np.empty((chains, draws))
    values[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        values[:, t] = memory * values[:, t - 1] + noise[:, t]
    return values


def three_variables(draws: int = 50) -> Draws:
    variables = Variables.named(
        {"seen": real, "b": boolean, "c": categorical(["u", "v", "w"]), "x": real}
    )
    rng = np.random.default_rng(1)
    values = np.stack(
        [
            rng.integers(0, 2, (2, draws)).astype(float),
            rng.integers(0, 3, (2, draws)).astype(float),
            rng.normal(size=(2, draws)),
        ],
        axis=2,
    )
    return Draws(variables, np.array([1, 2, 3]), values)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_errors_of_means_are_those_of_correlated_draws(memory: float) -> None:
    true = np.sqrt((1 + memory) / (1 - memory) / 4000)

    errors = [
        standard_error(autoregressive(4, 1000, memory, seed)[..., None])[0] for seed in range(20)
    ]

    # Batches of 100 draws know a little less than all, and there are 40 of them.
    assert np.mean(errors) == pytest.approx(true, rel=0.12)
    assert np.std(errors) < 0.25 * true


def test_r_hat_is_one_for_chains_that_agree_and_more_for_others() -> None:
    values = autoregressive(4, 1000, 0.3)

    assert split_r_hat(values[..., None])[0] == pytest.approx(1.0, abs=0.01)
    apart = split_r_hat((values + np.arange(4)[:, None])[..., None])[0]
    assert apart > 1.5


def test_r_hat_sees_a_single_chain_that_drifts() -> None:
    values = autoregressive(1, 1000, 0.3) + np.linspace(0, 5, 1000)

    assert split_r_hat(values[..., None])[0] > 1.5


def test_errors_of_chains_that_disagree_are_those_between_chains() -> None:
    values = autoregressive(4, 1000, 0.0) + 10.0 * np.arange(4)[:, None]

    error = standard_error(values[..., None])[0]

    assert error > 3.0


def test_what_never_changes_has_no_error_but_a_state_may_have_been_missed() -> None:
    variables = Variables.named({"b": boolean, "x": real})

    found = Draws(variables, np.arange(2), np.full((4, 100, 2), 1 / 3)).diagnostics()

    assert found.mcse.tolist() == [1 / 400, 0.0]
    assert found.r_hat.tolist() == [1.0, 1.0]
    assert found.ess.tolist() == [400.0, 400.0]


def test_chains_in_other_states_of_the_same_mean_disagree() -> None:
    rng = np.random.default_rng(0)
    around = 2.0 * rng.integers(0, 2, (3, 1000, 1))
    values = np.concatenate([around, np.ones((1, 1000, 1))])

    found = Draws(Variables.named({"c": categorical(3)}), np.arange(1), values).diagnostics()

    assert split_r_hat(values)[0] < 1.01
    assert found.r_hat[0] > 1.5
    assert found.ess[0] < 20


def test_chains_of_the_same_mean_and_another_spread_disagree() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 1000, 1)) * np.array([1.0, 1.0, 1.0, 0.1])[:, None, None]

    found = Draws(Variables.named({"x": real}), np.arange(1), values).diagnostics()

    assert split_r_hat(values)[0] < 1.01
    assert found.r_hat[0] > 1.1


def test_diagnostics_do_not_depend_on_how_variables_are_taken_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws = three_variables()
    whole = draws.diagnostics()
    monkeypatch.setattr("hylift.posterior.draws.BLOCK", 1)

    parts = draws.diagnostics()

    np.testing.assert_allclose(parts.mcse, whole.mcse, rtol=1e-12)
    np.testing.assert_allclose(parts.r_hat, whole.r_hat, rtol=1e-12)


def test_a_table_has_a_row_per_draw_and_states_by_label() -> None:
    draws = three_variables()

    table = draws.to_arrow()

    assert table.column_names == ["chain", "draw", "b", "c", "x"]
    assert table.num_rows == 100
    assert table["chain"].to_pylist() == [0] * 50 + [1] * 50
    assert set(table["b"].to_pylist()) == {"false", "true"}
    assert set(table["c"].to_pylist()) == {"u", "v", "w"}
    np.testing.assert_array_equal(table["x"].to_numpy(), draws.values[:, :, 2].ravel())


def test_a_table_of_some_atoms_is_in_their_order() -> None:
    assert three_variables().to_arrow(["x", "b"]).column_names == ["chain", "draw", "x", "b"]


def test_observed_and_unknown_atoms_are_refused() -> None:
    draws = three_variables()

    with pytest.raises(UnsupportedError) as refusal:
        draws.to_arrow(["x", "seen"])
    with pytest.raises(UnknownNameError):
        draws.to_arrow("y")

    assert str(refusal.value) == "'seen' is observed: there are no draws of it"


@pytest.mark.usefixtures("without_arviz")
def test_a_summary_without_arviz_has_simpler_diagnostics() -> None:
    draws = three_variables()

    table = draws.summary(["x", "c"])

    assert table.column_names == ["atom", "mean", "sd", "mcse", "ess", "r_hat"]
    assert table["atom"].to_pylist() == ["x", "c"]
    simpler = draws.diagnostics()
    assert set(table["ess"].to_pylist()) <= set(simpler.ess.tolist())
    assert set(table["r_hat"].to_pylist()) <= set(simpler.r_hat.tolist())


def test_states_without_an_order_have_no_mean() -> None:
    draws = three_variables()

    rows = {row["atom"]: row for row in draws.summary().to_pylist()}

    for column in ("mean", "sd", "mcse"):
        assert rows["c"][column] is None
        assert rows["x"][column] is not None
    assert rows["b"]["mean"] == draws.mean[0]
    assert rows["c"]["r_hat"] > 0


def test_a_truth_value_that_is_as_often_false_as_true_has_an_r_hat() -> None:
    values = np.random.default_rng(0).permutation(np.tile([0.0, 1.0], 50)).reshape(2, 50, 1)
    draws = Draws(Variables.named({"b": boolean}), np.array([0]), values)

    (row,) = draws.summary().to_pylist()

    assert row["mean"] == 0.5
    assert row["r_hat"] == draws.diagnostics().r_hat[0]


@pytest.mark.usefixtures("without_arviz")
def test_arviz_is_asked_for_where_it_is_missing() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        three_variables().to_arviz()

    assert str(refusal.value) == (
        "this needs ArviZ, which is not installed: install the extra 'arviz' of hylift, or "
        "the package itself"
    )


def test_a_summary_has_the_effective_sizes_and_r_hats_of_arviz(arviz: Any) -> None:
    variables = Variables.named({"x": real, "constant": real})
    values = np.stack([autoregressive(4, 1000, 0.5), np.ones((4, 1000))], axis=2)
    draws = Draws(variables, np.arange(2), values)

    table = draws.summary()

    assert table["ess"].to_pylist()[1] is None
    assert table["ess"].to_pylist()[0] == pytest.approx(arviz.ess(values[:, :, 0]))
    assert table["r_hat"].to_pylist()[0] == pytest.approx(arviz.rhat(values[:, :, 0]))
    # Ours is by batch means, with 40 batches.
    assert draws.diagnostics().ess[0] == pytest.approx(table["ess"].to_pylist()[0], rel=0.5)


@pytest.mark.usefixtures("arviz")
def test_draws_go_to_arviz_with_names() -> None:
    draws = three_variables()

    data = draws.to_arviz(["x", "b"])

    assert set(data.posterior.data_vars) == {"x", "b"}
    assert data.posterior["x"].dims == ("chain", "draw")
    np.testing.assert_array_equal(data.posterior["x"].to_numpy(), draws.values[:, :, 2])
    np.testing.assert_array_equal(data.posterior["b"].to_numpy(), draws.values[:, :, 0])


def test_a_saved_posterior_has_its_draws(tmp_path: Path) -> None:
    found = infer(switching_regime(), Gibbs(draws=20, warm_up=10))

    found.save(tmp_path / "found.npz")
    loaded = Posterior.load(tmp_path / "found.npz")

    assert found.draws is not None
    assert loaded.draws is not None
    np.testing.assert_array_equal(loaded.draws.values, found.draws.values)
    np.testing.assert_array_equal(loaded.draws.ids, found.draws.ids)
    assert loaded.draws.summary().equals(found.draws.summary())
    assert loaded.marginals().equals(found.marginals())


@pytest.mark.parametrize(
    "part",
    [
        {"posterior.draws.ids": np.array([0, 0])},
        {"posterior.draws.states": np.full((4, 20, 2), 9, dtype=np.uint8)},
        {"posterior.draws.states": np.zeros((4, 20, 2))},
        {"posterior.draws.states": np.zeros((1, 20, 2), dtype=np.uint8)},
        {"posterior.draws.states": np.zeros((4, 20, 1), dtype=np.uint8)},
        {"posterior.draws.reals": np.zeros((4, 20, 2))},
        {"posterior.draws.reals": np.zeros(3)},
    ],
)
def test_draws_that_do_not_fit_are_refused(part: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "found.npz"
    infer(hard_clause(), Gibbs(draws=20, warm_up=10)).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)

    np.savez(path, **(arrays | part))

    with pytest.raises(FormatError, match="is not a saved posterior, or is damaged"):
        Posterior.load(path)


def test_a_summary_of_many_variables_is_made_at_once() -> None:
    count = 20_000
    variables = Variables.uniform(real, count, Names.listed([f"v{i}" for i in range(count)]))
    values = np.random.default_rng(0).normal(size=(2, 10, count))
    draws = Draws(variables, np.arange(count), values)

    table = draws.summary()

    np.testing.assert_array_equal(table["r_hat"].to_numpy(), draws.diagnostics().r_hat)
    assert table["atom"].to_pylist()[-1] == "v19999"


def test_draws_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"have the shape \(chain, draw, 1\), not \(4, 2\)"):
        Draws(Variables.named({"x": real}), np.arange(1), np.zeros((4, 2)))
