"""Posteriors in other tools: data frames, xarray, ArviZ, NetCDF, tables on disk."""

from __future__ import annotations

import gc
import importlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from hylift.errors import HyliftWarning, UnknownNameError, UnsupportedError
from hylift.files import OutputError
from hylift.graph import Atoms, FactorGraph, Names, Variables, boolean, categorical, real
from hylift.grounding import ground
from hylift.inference import BP, BVI, EP, Exact, Gibbs, MaxWalkSAT, infer
from hylift.language import parse
from hylift.posterior import Posterior
from hylift.posterior.datasets import atom_arrays
from hylift.posterior.draws import Draws
from zoo import hard_clause, hidden_markov_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version
    arviz = pytest.importorskip("arviz")

MODEL = """
person = {Ann, "Bob, jr", Zoë}
kind = {"two words", B, "日本"}
Friends(person, person)
Kind(person, kind!)
age(person): real
height(person): real
rain: boolean
1.1   Friends(x, y) => Kind(x, B)
0.3   rain * (age(x) = 3)
-0.1  age(x)^2
-0.5  (height(x) - age(x))^2
"""
SEEN = {'Friends(Ann, "Bob, jr")': True, "height(Zoë)": 1.5}


@pytest.fixture(scope="module")
def graph() -> FactorGraph:
    return ground(parse(MODEL), SEEN)


@pytest.fixture(scope="module")
def variational(graph: FactorGraph) -> Posterior:
    return infer(graph, BVI(2))


@pytest.fixture(scope="module")
def sampled(graph: FactorGraph) -> Posterior:
    return infer(graph, Gibbs(chains=3, draws=40, warm_up=20))


@pytest.fixture(scope="module")
def exact(graph: FactorGraph) -> Posterior:
    return infer(graph, Exact())


@pytest.fixture
def figures() -> Any:
    yield
    plt.close("all")


# Axes


def test_a_predicate_is_a_variable_with_an_axis_per_argument(variational: Posterior) -> None:
    data = variational.to_xarray(draws=30)

    assert list(data.data_vars) == ["Friends", "Kind", "age", "height", "rain"]
    assert data["age"].dims == ("chain", "draw", "person")
    assert data["person"].to_numpy().tolist() == ["Ann", "Bob, jr", "Zoë"]
    assert data["rain"].dims == ("chain", "draw")
    assert data.sizes["chain"] == 1
    assert data.sizes["draw"] == 30


def test_atoms_that_do_not_fill_their_grid_stand_along_one_axis(variational: Posterior) -> None:
    friends = variational.to_xarray(draws=5)["Friends"]

    assert friends.dims == ("chain", "draw", "Friends_atom")
    assert friends.shape == (1, 5, 8)
    assert friends["Friends_atom"].to_numpy()[1] == "Friends(Ann,Zoë)"
    assert friends["Friends_person1"].to_numpy()[1] == "Ann"
    assert friends["Friends_person2"].to_numpy()[1] == "Zoë"


def test_an_axis_of_other_constants_has_the_predicate_before_its_label(
    variational: Posterior,
) -> None:
    data = variational.to_xarray(draws=5)

    assert data["height"].dims == ("chain", "draw", "height_person")
    assert data["height_person"].to_numpy().tolist() == ["Ann", "Bob, jr"]


def test_the_plain_name_of_an_axis_is_for_the_most_constants() -> None:
    variables = Variables.in_blocks(
        [
            (Atoms("few", (["b", "c"],), labels=("bridge",)), boolean),
            (Atoms("all", (["a", "b", "c"],), labels=("bridge",)), real),
            (Atoms("others", (["d", "e", "f"],), labels=("bridge",)), real),
            (Atoms("same", (["a", "b", "c"],), labels=("bridge",)), boolean),
        ]
    )

    found = atom_arrays(variables, np.arange(len(variables)), reserved=())

    assert [array.axes for array in found] == [
        ("few_bridge",),
        ("bridge",),
        ("others_bridge",),
        ("bridge",),
    ]
    assert found[1].coordinates["bridge"][1].to_pylist() == ["a", "b", "c"]


def test_an_axis_has_its_plain_name_whatever_comes_before_it() -> None:
    model = parse("Steel(bridge)\nload(bridge): real\n1 Steel(b) * (load(b) = 2)\n-1 load(b)^2")
    seen = {"bridge": ["1", "2", "3"], "Steel(2)": True}
    data = infer(ground(model, seen), BVI(1)).to_xarray(draws=4)

    assert data["Steel"].dims == ("chain", "draw", "Steel_bridge")
    assert data["load"].sel(bridge="2").shape == (1, 4)


def test_chosen_atoms_that_fill_a_grid_have_axes_in_the_order_asked_for(
    sampled: Posterior,
) -> None:
    atoms = [f"Friends({x},{y})" for y in ("Zoë", "Ann") for x in ("Zoë", "Ann")]

    friends = sampled.to_xarray(atoms)["Friends"]

    assert friends.dims == ("chain", "draw", "person1", "person2")
    assert friends["person1"].to_numpy().tolist() == ["Zoë", "Ann"]
    draws = sampled.draws
    assert draws is not None
    for x, y in (("Zoë", "Ann"), ("Ann", "Zoë"), ("Ann", "Ann")):
        at = draws.ids.tolist().index(sampled.variables.names.id(f"Friends({x},{y})"))
        np.testing.assert_array_equal(
            friends.sel(person1=x, person2=y).to_numpy(), draws.values[:, :, at]
        )


def test_every_number_stands_where_its_atom_says(sampled: Posterior) -> None:
    data = sampled.to_xarray()
    draws = sampled.draws
    assert draws is not None

    age = dict(zip(draws.ids.tolist(), np.moveaxis(draws.values, 2, 0), strict=True))

    for person in ("Ann", "Bob, jr", "Zoë"):
        name = f'age("{person}")'
        np.testing.assert_array_equal(
            data["age"].sel(person=person).to_numpy(), age[sampled.variables.names.id(name)]
        )
    for atom in data["Friends_atom"].to_numpy().tolist():
        np.testing.assert_array_equal(
            data["Friends"].sel(Friends_atom=atom).to_numpy(), age[sampled.variables.names.id(atom)]
        )


def test_names_that_were_listed_are_read_as_atoms() -> None:
    variables = Variables.of(
        [real] * 4 + [boolean, real, real, real, real],
        Names.listed(
            ["f(a, b)", "f(a,c)", "f(d,b)", "f(d,c)", "f", 'g("x,y")', "g(z)", "a/b", "h(u"]
        ),
    )

    found = atom_arrays(variables, np.arange(9), reserved=("chain", "draw"))

    assert [(array.name, array.shape) for array in found] == [
        ("f", (2, 2)),
        ("f_", ()),
        ("g", (2,)),
        ("a_b", ()),
        ("h", (1,)),
    ]
    assert found[0].axes == ("arg1", "arg2")
    assert found[2].coordinates["g_atom"][1].to_pylist() == ['g("x,y")', "g(z)"]


def test_names_that_are_taken_get_a_stroke() -> None:
    variables = Variables.in_blocks(
        [
            (Atoms("chain", (["a"],), labels=("draw",)), real),
            (Atoms("x", (["a"],), labels=("x",)), real),
        ]
    )

    found = atom_arrays(variables, np.arange(2), reserved=("chain", "draw"))

    assert [(array.name, array.axes) for array in found] == [
        ("chain_", ("chain__draw",)),
        ("x", ("x_x",)),
    ]


def test_numbered_variables_stand_along_one_axis() -> None:
    variables = Variables.uniform(boolean, 5)

    (found,) = atom_arrays(variables, np.array([4, 2]), reserved=())

    assert (found.name, found.axes, found.place.tolist()) == ("x", ("x_atom",), [0, 1])
    assert found.coordinates["x_atom"][1].to_pylist() == ["x4", "x2"]


def test_more_names_without_arguments_than_a_data_set_has_variables_are_refused() -> None:
    variables = Variables.uniform(real, 1001, Names.listed([f"v{i}" for i in range(1001)]))

    with pytest.raises(UnsupportedError) as refusal:
        Draws(variables, np.arange(1001), np.zeros((1, 2, 1001))).to_xarray()

    assert str(refusal.value) == (
        "a data set has at most 1,000 variables, one per predicate, not 1,001: "
        "name the atoms you need"
    )


def test_a_hundred_thousand_atoms_are_one_variable() -> None:
    words = [[f"a{i}" for i in range(1000)], [f"b{i}" for i in range(100)]]
    variables = Variables.in_blocks([(Atoms("f", tuple(words)), real)])
    values = np.random.default_rng(0).normal(size=(2, 5, 100_000))

    data = Draws(variables, np.arange(100_000), values).to_xarray()

    assert data["f"].shape == (2, 5, 1000, 100)
    np.testing.assert_array_equal(data["f"].sel(arg1="a7", arg2="b3").to_numpy(), values[:, :, 703])


# Values


def test_states_are_numbers_with_their_labels_beside(variational: Posterior) -> None:
    data = variational.to_xarray(draws=5)

    assert data["Kind"].dtype == np.int64
    assert data["Kind"].attrs["states"] == ["two words", "B", "日本"]
    assert data["rain"].attrs["states"] == ["false", "true"]
    assert data["age"].dtype == np.float64
    assert data["age"].attrs == {}


def test_draws_of_a_mixture_are_joint(variational: Posterior) -> None:
    data = variational.to_xarray(draws=20_000)

    # Four standard errors of a mean of 20,000 draws.
    expected = variational.marginals("age(*)")
    error = 4 * expected["std"].to_numpy() / np.sqrt(20_000)
    np.testing.assert_array_less(
        np.abs(data["age"].mean(("chain", "draw")).to_numpy() - expected["mean"].to_numpy()), error
    )
    joint = variational.joint(["age(Ann)", "height(Ann)"])
    pair = data["age"].sel(person="Ann"), data["height"].sel(height_person="Ann")
    # The same, for a correlation.
    assert np.corrcoef(*(each.to_numpy().ravel() for each in pair))[0, 1] == pytest.approx(
        joint.corr[0, 1], abs=0.03
    )


def test_the_same_seed_gives_the_same_draws(variational: Posterior) -> None:
    first, again = (variational.to_xarray(draws=10, seed=3) for _ in range(2))

    assert first.identical(again)
    assert not first.equals(variational.to_xarray(draws=10, seed=4))


def test_draws_of_a_sampler_are_its_own(sampled: Posterior) -> None:
    draws = sampled.draws
    assert draws is not None

    data = sampled.to_xarray("rain")

    at = draws.ids.tolist().index(sampled.variables.names.id("rain"))
    np.testing.assert_array_equal(data["rain"].to_numpy(), draws.values[:, :, at])
    assert data.attrs["samples"] == "draws of Markov chains"


def test_fewer_draws_of_a_sampler_are_spread_over_the_chains(sampled: Posterior) -> None:
    every, some = sampled.to_xarray("age(*)"), sampled.to_xarray("age(*)", draws=3)

    assert some.sizes["draw"] == 3
    np.testing.assert_array_equal(
        some["age"].to_numpy(), every["age"].isel(draw=[0, 20, 39]).to_numpy()
    )


def test_more_draws_than_a_sampler_has_are_refused(sampled: Posterior) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        sampled.to_xarray(draws=41)

    assert str(refusal.value) == (
        "each chain has 40 draws, not 41: infer again with Gibbs(draws=41)"
    )


@pytest.mark.parametrize("method", [EP(), BP()], ids=lambda method: method.name)
def test_variables_that_are_drawn_by_themselves_come_with_a_warning(method: Any) -> None:
    posterior = infer(hidden_markov_model(), method)

    with pytest.warns(HyliftWarning, match="each is drawn by itself") as caught:
        data = posterior.to_xarray(draws=20_000)

    assert "For joint draws infer with BVI() or Gibbs()" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert data.attrs["samples"] == "draws of each variable by itself, without dependence"
    shares = (data["weather"].to_numpy()[..., None] == np.arange(3)).mean(axis=(0, 1))
    expected = np.array(posterior.marginals("weather(*)")["probs"].to_pylist())
    np.testing.assert_allclose(shares, expected, atol=0.015)  # four standard errors


def test_reals_are_drawn_from_their_marginals(exact: Posterior) -> None:
    data = exact.to_xarray("age(*)", draws=20_000)

    expected = exact.marginals("age(*)")
    error = 4 * expected["std"].to_numpy() / np.sqrt(20_000)
    np.testing.assert_array_less(
        np.abs(data["age"].mean(("chain", "draw")).to_numpy() - expected["mean"].to_numpy()), error
    )


def test_attributes_say_where_draws_come_from(variational: Posterior, sampled: Posterior) -> None:
    attributes = variational.to_xarray("rain", draws=5, seed=9).attrs

    assert attributes["inference_library"] == "hylift"
    assert attributes["inference_library_version"]
    assert attributes["method"] == "BVI(2)"
    assert attributes["result"] == variational.solution.result
    assert (attributes["seed"], attributes["samples_seed"]) == (0, 9)
    assert variational.log_partition is not None
    assert attributes["log_partition"] == variational.log_partition.value
    assert attributes["log_partition_kind"] == "estimate"
    assert "log_partition" not in sampled.to_xarray("rain").attrs


def test_what_was_observed_is_a_group_of_its_own(variational: Posterior) -> None:
    data = variational.to_arviz(draws=5)

    seen = data.observed_data
    assert seen["Friends"].sel(person1="Ann", person2="Bob, jr").item() == 1
    assert seen["height"].sel(person="Zoë").item() == 1.5
    assert "observed_data" not in variational.to_arviz("age(*)", draws=5).groups()
    assert set(variational.to_arviz("height(*)", draws=5).groups()) == {
        "posterior",
        "observed_data",
    }


# What cannot be had


def test_nothing_to_draw_is_refused(variational: Posterior) -> None:
    with pytest.raises(UnsupportedError, match="nothing to draw: all these atoms are observed"):
        variational.to_xarray("height(Zoë)")
    with pytest.raises(UnsupportedError, match="nothing to draw: no atoms were asked for"):
        variational.to_xarray([])
    with pytest.raises(UnknownNameError, match="Did you mean 'rain'"):
        variational.to_xarray("rein")


@pytest.mark.parametrize("draws", [0, -3, 1.5, "many"])
def test_a_number_of_draws_that_is_none_is_refused(draws: Any, variational: Posterior) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        variational.to_arviz(draws=draws)

    assert str(refusal.value) == f"draws must be an integer of at least 1, not {draws!r}"


def test_a_posterior_without_marginals_has_nothing_to_draw() -> None:
    with pytest.raises(UnsupportedError, match="this posterior has no marginals"):
        infer(hard_clause(), MaxWalkSAT()).to_xarray()


def test_too_many_numbers_are_refused_before_they_are_drawn(variational: Posterior) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        variational.to_xarray(draws=10**8)

    assert str(refusal.value) == (
        "100,000,000 draws of 17 atoms are more than 50,000,000 numbers: "
        "name the atoms you need, or ask for fewer draws"
    )


@pytest.mark.parametrize(
    ("package", "question", "extra"),
    [
        ("arviz", lambda posterior: posterior.to_arviz(draws=5), "ArviZ|arviz"),
        ("xarray", lambda posterior: posterior.to_xarray(draws=5), "xarray|arviz"),
        ("pandas", lambda posterior: posterior.to_pandas(), "pandas|pandas"),
        ("polars", lambda posterior: posterior.to_polars("age"), "Polars|polars"),
    ],
)
def test_a_missing_package_is_an_error_with_the_line_that_installs_it(
    package: str, question: Any, extra: str, variational: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.import_module

    def refuse(name: str, within: str | None = None) -> Any:
        if name == package:
            raise ImportError(name)
        return found(name, within)

    monkeypatch.setattr(importlib, "import_module", refuse)

    with pytest.raises(UnsupportedError) as refusal:
        question(variational)

    name, line = extra.split("|")
    assert str(refusal.value) == (
        f"this needs {name}, which is not installed: install the extra '{line}' of hylift, "
        "or the package itself"
    )


# ArviZ and NetCDF


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize("method", ["variational", "sampled"])
def test_arviz_summarises_and_plots(method: str, request: pytest.FixtureRequest) -> None:
    posterior: Posterior = request.getfixturevalue(method)
    data = posterior.to_arviz(["age(*)", "Kind(*)", "Friends(Ann,Ann)", "rain"])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # ArviZ divides by a variance of zero
        summary = arviz.summary(data)
        arviz.plot_forest(data, combined=True)
        arviz.plot_posterior(data)
        arviz.plot_pair(data, var_names=["age"])
        arviz.plot_trace(data)

    assert summary.index.tolist() == [
        "Friends[Ann, Ann]",
        "Kind[Ann]",
        "Kind[Bob, jr]",
        "Kind[Zoë]",
        "age[Ann]",
        "age[Bob, jr]",
        "age[Zoë]",
        "rain",
    ]
    # ArviZ rounds to three digits.
    assert summary.loc["age[Zoë]", "mean"] == pytest.approx(
        data.posterior["age"].sel(person="Zoë").mean().item(), abs=1e-3
    )


def test_netcdf_is_read_by_arviz(variational: Posterior, tmp_path: Path) -> None:
    path = tmp_path / "draws.nc"

    variational.to_netcdf(path, draws=20, seed=2)

    expected = variational.to_arviz(draws=20, seed=2)
    data = arviz.from_netcdf(path)
    try:
        for group in ("posterior", "observed_data"):
            for name, array in expected[group].data_vars.items():
                np.testing.assert_array_equal(data[group][name].to_numpy(), array.to_numpy())
                assert data[group][name].dtype == array.dtype
                assert data[group][name].attrs == array.attrs
            for name, words in expected[group].coords.items():
                assert data[group][name].to_numpy().tolist() == words.to_numpy().tolist()
        assert data.posterior.attrs == expected.posterior.attrs
    finally:
        data.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["draws.nc"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no list of open files")
def test_netcdf_leaves_no_file_open(variational: Posterior, tmp_path: Path) -> None:
    def num_open() -> int:
        gc.collect()
        return sum(os.path.exists(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))

    variational.to_netcdf(tmp_path / "first.nc", draws=5)
    before = num_open()

    variational.to_netcdf(tmp_path / "second.nc", draws=5)

    assert num_open() == before


@pytest.mark.parametrize("free", [1000, 30_000])
def test_a_disk_that_is_full_keeps_the_old_netcdf(
    free: int, variational: Posterior, tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")
    path, before = tmp_path / "draws.nc", resource.getrlimit(resource.RLIMIT_FSIZE)
    path.write_bytes(b"old")

    resource.setrlimit(resource.RLIMIT_FSIZE, (free, before[1]))
    try:
        with pytest.raises(OutputError, match=r"draws\.nc: cannot be written: File too large"):
            variational.to_netcdf(path, draws=2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["draws.nc"]


def test_netcdf_into_no_folder_is_refused(variational: Posterior, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no folder"):
        variational.to_netcdf(tmp_path / "missing" / "draws.nc")


def test_more_states_than_netcdf_names_are_refused(tmp_path: Path) -> None:
    posterior = infer(FactorGraph.build({"c": categorical(4001)}, []), BVI(1))

    with pytest.raises(UnsupportedError) as refusal:
        posterior.to_netcdf(tmp_path / "draws.nc", draws=5)

    assert str(refusal.value) == (
        f"{tmp_path / 'draws.nc'}: 'c' has more than 4,000 states, and NetCDF has no room for "
        "their names: name other atoms, or use to_xarray(…)"
    )
    assert list(tmp_path.iterdir()) == []


def test_as_many_states_as_netcdf_names_are_written(tmp_path: Path) -> None:
    posterior = infer(FactorGraph.build({"c": categorical(4000)}, []), BVI(1))

    posterior.to_netcdf(tmp_path / "draws.nc", draws=5)

    data = arviz.from_netcdf(tmp_path / "draws.nc")
    assert len(data.posterior["c"].attrs["states"]) == 4000
    data.close()


# Data frames and tables


def test_data_frames_have_the_table_of_a_predicate_or_all_marginals(exact: Posterior) -> None:
    frame, polar = exact.to_pandas("age"), exact.to_polars("age")

    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polar, pl.DataFrame)
    assert list(frame.columns) == polar.columns == exact.table("age").column_names
    assert (
        frame["mean"].tolist() == polar["mean"].to_list() == exact.table("age")["mean"].to_pylist()
    )
    assert len(exact.to_pandas()) == len(exact.to_polars()) == len(exact.marginals())
    assert len(exact.to_pandas("height", observed=True)) == 3
    assert len(exact.to_polars(observed=True)) == len(exact.variables)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".json", ".nc"])
def test_a_file_is_written_as_its_ending_says(
    ending: str, variational: Posterior, tmp_path: Path
) -> None:
    path = tmp_path / f"answers{ending}"

    variational.write(path, "age(*)")

    expected = variational.marginals("age(*)")
    if ending == ".csv":
        np.testing.assert_allclose(
            csv.read_csv(path)["mean"].to_numpy(), expected["mean"].to_numpy(), rtol=1e-12
        )
    elif ending == ".parquet":
        assert parquet.read_table(path).equals(expected)
    elif ending == ".arrow":
        with pa.OSFile(str(path)) as source:
            assert pa.ipc.open_file(source).read_all().equals(expected)
    elif ending == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        assert list(content["marginals"]) == expected["atom"].to_pylist()
        assert content["log_partition"]["kind"] == "estimate"
        assert "model" not in content
    else:
        data = arviz.from_netcdf(path)
        assert data.posterior["age"].shape == (1, 1000, 3)
        data.close()


def test_a_file_of_another_ending_is_refused(variational: Posterior, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        variational.write(tmp_path / "answers.xls")

    assert str(refusal.value) == (
        f"{tmp_path / 'answers.xls'}: no format has the ending '.xls'; choose among .csv, .parquet,"
        " .arrow, .json, .nc"
    )
    with pytest.raises(UnsupportedError, match="it has no ending; choose among"):
        variational.write(tmp_path / "answers")
