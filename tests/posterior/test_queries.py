"""Joint, conditional and other questions to a posterior that holds a mixture."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate

import zoo
from hylift.components import Layout
from hylift.errors import (
    EvidenceError,
    ImpossibleEvidenceError,
    IntractableError,
    ModelError,
    UnknownNameError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, Names, Soft, Variables, boolean, real
from hylift.inference import infer
from hylift.posterior import Mixture, PointMass, Posterior
from hylift.potentials import ConditionalQuadratic
from posterior import mixtures

WET, X, COLOR, SHARE, Y, DRY = range(6)
SEEN = {"y": 1.5, "dry": False}


@pytest.fixture
def posterior() -> Posterior:
    return mixtures.posterior()


@pytest.fixture
def partly_seen() -> Posterior:
    return mixtures.posterior(SEEN)


# Joint densities


def test_a_joint_density_is_that_of_the_mixture(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "color", "share"])

    for x, color, share in [(0.3, "green", 0.5), (-1.0, "red", 2.9)]:
        state = ("red", "green", "blue").index(color)
        expected = mixtures.density(posterior.mixture, [X, COLOR, SHARE], [x, state, share])
        assert joint.pdf({"x": x, "color": color, "share": share}) == pytest.approx(
            expected, rel=1e-12
        )


def test_arrays_of_values_fit_each_other(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "color"])
    x = np.linspace(-2, 2, 5)[:, None]

    density = joint.pdf({"x": x, "color": ["red", "blue"]})

    assert density.shape == (5, 2)
    assert density[3, 1] == joint.pdf({"color": "blue", "x": x[3, 0]})
    np.testing.assert_allclose(np.log(density), joint.log_pdf({"x": x, "color": ["red", "blue"]}))


def test_a_joint_density_integrates_to_1(posterior: Posterior) -> None:
    joint = posterior.joint(["share", "wet"])

    total = sum(
        integrate.quad(lambda s, wet=wet: joint.pdf({"share": s, "wet": wet}), -1, 3)[0]
        for wet in (False, True)
    )

    assert total == pytest.approx(1.0, abs=1e-8)


def test_there_is_no_density_outside_an_interval(posterior: Posterior) -> None:
    assert posterior.joint("share").pdf({"share": [-1.5, 0.0, 3.5]}).tolist()[::2] == [0.0, 0.0]


def test_probabilities_of_joint_states_are_sums_of_products(posterior: Posterior) -> None:
    joint = posterior.joint(["color", "wet"])

    probs = joint.probs()

    assert probs.shape == (3, 2)
    assert probs.sum() == pytest.approx(1.0)
    for color, wet in np.ndindex(3, 2):
        expected = mixtures.density(posterior.mixture, [COLOR, WET], [color, wet])
        assert probs[color, wet] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(probs.sum(axis=1), posterior.marginal("color").probs)


def test_joint_states_make_a_table(posterior: Posterior) -> None:
    joint = posterior.joint(["color", "wet"])

    table = joint.table()

    assert table.column_names == ["color", "wet", "prob"]
    assert table.to_pylist()[3] == {
        "color": "green",
        "wet": "true",
        "prob": pytest.approx(joint.probs()[1, 1]),
    }


def test_covariances_are_those_of_the_mixture(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "share", "y"])
    product = posterior.expect(lambda x, y: x * y, ["x", "y"])

    mean, cov, corr = joint.mean, joint.cov, joint.corr

    assert mean[0] == pytest.approx(posterior.marginal("x").mean)
    assert cov[0, 2] == pytest.approx(product.value - mean[0] * mean[2], abs=1e-12)
    assert cov[1, 1] == pytest.approx(posterior.marginal("share").var)
    np.testing.assert_allclose(np.diag(corr), 1.0)
    np.testing.assert_allclose(cov, cov.T)


def test_observed_atoms_are_certain_in_a_joint(partly_seen: Posterior) -> None:
    joint = partly_seen.joint(["dry", "wet"])
    reals = partly_seen.joint(["x", "y"])

    assert joint.probs()[1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(joint.probs()[0], partly_seen.marginal("wet").probs)
    assert joint.pdf({"dry": True, "wet": True}) == 0.0
    assert joint.pdf({"dry": "false", "wet": True}) == pytest.approx(joint.probs()[0, 1])
    assert reals.mean[1] == 1.5
    assert reals.cov[1].tolist() == [0.0, 0.0]
    with pytest.raises(UnsupportedError, match="'y' is observed: it has one value and no density"):
        reals.pdf({"x": 0.0, "y": 1.5})


def test_all_atoms_of_a_joint_may_be_observed(partly_seen: Posterior) -> None:
    joint = partly_seen.joint("dry")

    np.testing.assert_allclose(joint.probs(), [1.0, 0.0])
    assert joint.sample(2, seed=0).to_pylist() == [{"dry": "false"}] * 2


def test_draws_of_a_joint_are_a_table(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "color"])

    table = joint.sample(20_000, seed=1)

    assert table.column_names == ["x", "color"]
    assert set(table["color"].to_pylist()) <= {"red", "green", "blue"}
    x = table["x"].to_numpy()
    assert x.mean() == pytest.approx(posterior.marginal("x").mean, abs=0.1)
    assert table.equals(joint.sample(20_000, seed=1))


def test_wrong_questions_to_a_joint_are_refused(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "color"])

    with pytest.raises(UnknownNameError, match=r"is not about 'colour'\. Did you mean 'color'\?"):
        joint.pdf({"x": 0.0, "colour": "red"})
    with pytest.raises(EvidenceError, match="a value for each atom: 'color' has none"):
        joint.pdf({"x": 0.0})
    with pytest.raises(EvidenceError, match=r"color cannot be 'rd': its states are .* mean 'red'"):
        joint.pdf({"x": 0.0, "color": "rd"})
    with pytest.raises(EvidenceError, match="x is real and cannot be 'much'"):
        joint.pdf({"x": "much", "color": "red"})
    with pytest.raises(UnsupportedError, match=r"'x' is real: ask for pdf\(…\)"):
        joint.probs()
    with pytest.raises(UnsupportedError, match="'color' has states: means and covariances"):
        _ = joint.cov
    with pytest.raises(UnknownNameError, match=r"there is no variable 'colour'\. Did you mean"):
        posterior.joint(["colour"])
    with pytest.raises(UnsupportedError, match="at least one atom"):
        posterior.joint([])


def test_more_joint_states_than_can_be_listed_are_refused() -> None:
    variables = Variables.uniform(boolean, 30)
    layout = Layout.of(variables, np.zeros(30, dtype=bool))
    q = Mixture(np.ones(1), layout, np.full((60, 1), 0.5), np.arange(30), np.arange(30))
    marginals = q.marginals(variables)
    posterior = Posterior(
        variables, np.zeros(30, dtype=bool), mixtures.SOLUTION, all_marginals=marginals, mixture=q
    )

    with pytest.raises(IntractableError, match="30 atoms have more than 16,777,216 joint states"):
        posterior.joint("x*").probs()


# Conditioning


def test_a_conditional_marginal_is_joint_over_marginal(posterior: Posterior) -> None:
    joint = posterior.joint(["x", "wet"])
    total = joint.pdf({"x": 0.7, "wet": [False, True]})

    conditional = posterior.given({"x": 0.7})

    np.testing.assert_allclose(conditional.marginal("wet").probs, total / total.sum(), rtol=1e-12)


def test_what_is_given_is_observed_from_then_on(posterior: Posterior) -> None:
    conditional = posterior.given({"x": 0.7, "color": "blue"})

    assert conditional.observed.tolist() == [False, True, True, False, False, False]
    assert isinstance(conditional.marginal("x"), PointMass)
    assert conditional.marginal("x").mean == 0.7
    assert conditional.marginal("color").prob("blue") == 1.0
    assert conditional.log_partition is None
    assert conditional.marginals()["atom"].to_pylist() == ["wet", "share", "y", "dry"]
    assert not posterior.observed.any()


def test_conditioning_keeps_what_was_observed(partly_seen: Posterior) -> None:
    conditional = partly_seen.given({"y": 1.5, "x": 0.7})

    assert conditional.marginal("y").mean == 1.5
    assert conditional.marginal("dry").prob("false") == 1.0
    direct = partly_seen.given({"x": 0.7})
    np.testing.assert_allclose(conditional.mixture.weights, direct.mixture.weights)


def test_everything_may_be_given(posterior: Posterior) -> None:
    known = {"wet": True, "x": 0.0, "color": "red", "share": 1.0, "y": 0.0, "dry": False}

    conditional = posterior.given(known)

    assert conditional.map(polish=False).to_dict(np.arange(6)) == known | {
        "wet": "true",
        "dry": "false",
    }


def test_values_that_cannot_be_given_are_refused(partly_seen: Posterior) -> None:
    refused = {
        "color cannot be 'rd': its states are red, green, blue. Did you mean 'red'?": {
            "color": "rd"
        },
        "share cannot be 7: its domain is [-1, 3]": {"share": 7},
        "'y' is observed as 1.5 and cannot be 2.0": {"y": 2},
        "'dry' is observed as false and cannot be true": {"dry": True},
    }

    for message, values in refused.items():
        with pytest.raises(EvidenceError) as refusal:
            partly_seen.given(values)
        assert str(refusal.value) == message
    with pytest.raises(UnknownNameError, match=r"no variable 'shar'\. Did you mean 'share'"):
        partly_seen.given({"shar": 1})
    with pytest.raises(UnsupportedError, match="takes values without error"):
        partly_seen.given({"x": Soft(1.0, 0.1)})


def test_an_impossible_value_is_named(posterior: Posterior) -> None:
    with pytest.raises(ImpossibleEvidenceError) as refusal:
        posterior.given({"share": 3.0, "wet": True})

    assert str(refusal.value) == (
        "every component of the mixture gives probability 0 to share = 3.0 and wet = True"
    )


# Expectations and samples


def test_expectations_are_means_over_the_atoms_in_order(partly_seen: Posterior) -> None:
    x = partly_seen.marginal("x")

    linear = partly_seen.expect(lambda y, x: 2 * x + y, ["y", "x"])
    chance = partly_seen.expect(lambda wet: wet, "wet")

    assert float(linear) == pytest.approx(2 * x.mean + 1.5, rel=1e-12)
    assert chance.value == pytest.approx(partly_seen.marginal("wet").prob("true"))
    assert chance.error == 0.0


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x, "too many positional arguments"),
        (lambda x, y, z: x, "missing a required argument: 'z'"),
    ],
)
def test_a_function_of_another_number_of_atoms_is_refused(
    function: Callable[..., object], why: str, posterior: Posterior
) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        posterior.expect(function, ["x", "share"])

    assert str(refusal.value) == (
        f"the function cannot be called with 2 arguments, one per atom: {why}"
    )


def test_what_is_no_function_has_no_expectation(posterior: Posterior) -> None:
    with pytest.raises(UnsupportedError, match=r"expect\(…\) takes a function, not 3"):
        posterior.expect(3, ["x"])


def test_functions_of_numpy_have_an_expectation(posterior: Posterior) -> None:
    expected = posterior.expect(lambda x, y: x * y, ["x", "share"])

    assert posterior.expect(np.multiply, ["x", "share"]) == expected


def test_what_is_true_of_reals_is_drawn_as_quadrature_misses_jumps(posterior: Posterior) -> None:
    share = posterior.marginal("share")

    above = posterior.expect(lambda x: x > 0.4, "share")
    gap = posterior.expect(lambda x, y: x > y, ["x", "share"])

    assert above.method == gap.method == "sampling"
    assert above.value == pytest.approx(1 - share.cdf(0.4), abs=5 * above.error)
    assert above.error < 0.002
    assert gap.value == pytest.approx(float(posterior.prob("x > share")), abs=5 * gap.error)


@pytest.mark.parametrize("atoms", [["x", "share", "x"], ["x", "*"]])
def test_an_atom_is_asked_for_once(atoms: list[str], posterior: Posterior) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        posterior.joint(atoms)
    with pytest.raises(UnsupportedError, match="'x' is asked for twice"):
        posterior.expect(lambda *values: 0.0, atoms)

    assert str(refusal.value) == "'x' is asked for twice: name each atom once"


def test_samples_have_a_column_per_atom(partly_seen: Posterior) -> None:
    table = partly_seen.sample(5000, seed=3)

    assert table.column_names == ["wet", "x", "color", "share"]
    assert table.schema.field("x").type == pa.float64()
    wet = np.mean([state == "true" for state in table["wet"].to_pylist()])
    assert wet == pytest.approx(partly_seen.marginal("wet").prob("true"), abs=0.03)
    chosen = partly_seen.sample(10, seed=3, atoms=["y", "*r*"])
    assert chosen.column_names == ["y", "color", "share", "dry"]
    assert set(chosen["y"].to_pylist()) == {1.5}


def test_samples_of_atoms_depend_on_each_other(posterior: Posterior) -> None:
    table = posterior.sample(40_000, seed=3, atoms=["x", "y"])

    expected = posterior.joint(["x", "y"]).cov[0, 1]
    actual = np.cov(table["x"].to_numpy(), table["y"].to_numpy())[0, 1]
    assert actual == pytest.approx(expected, abs=0.1)


def test_a_table_of_too_many_columns_is_refused() -> None:
    variables = Variables.uniform(real, 100_001)
    layout = Layout.of(Variables.uniform(real, 1), np.zeros(1, dtype=bool))
    classes = np.zeros(100_001, dtype=np.int32)
    q = Mixture(np.ones(1), layout, np.ones((2, 1)), classes, np.arange(100_001))
    posterior = Posterior(
        variables,
        np.zeros(100_001, dtype=bool),
        mixtures.SOLUTION,
        all_marginals=q.marginals(variables),
        mixture=q,
    )

    with pytest.raises(UnsupportedError, match="at most 100,000 columns, not 100,001"):
        posterior.sample(1, seed=0)


# Assignments and energies


def test_the_mode_of_q_has_its_true_energy(partly_seen: Posterior) -> None:
    found = partly_seen.map(polish=False)

    assert found.kind == "estimate"
    assert found["y"] == 1.5
    model = mixtures.graph().observe(SEEN)
    assert found.energy == pytest.approx(-model.log_density(found.values), rel=1e-12)
    expected = partly_seen.mixture.mode()[0]
    np.testing.assert_array_equal(found.values[[WET, X, COLOR, SHARE]], expected)


def test_map_is_polished_by_the_model(posterior: Posterior) -> None:
    assert posterior.map().energy == -7.0


def test_marginal_map_takes_the_mode_of_each_marginal(partly_seen: Posterior) -> None:
    found = partly_seen.marginal_map()

    assert found["x"] == pytest.approx(partly_seen.marginal("x").mode, rel=1e-12)
    assert found["color"] == partly_seen.marginal("color").mode
    assert found["dry"] == "false"
    assert found.kind == "estimate"
    assert found.energy == pytest.approx(partly_seen.energy(found), rel=1e-12)


def test_an_energy_is_asked_for_in_three_ways(partly_seen: Posterior) -> None:
    values = {"wet": True, "x": 0.5, "color": "green", "share": 1.0}
    array = np.array([1, 0.5, 1, 1.0, 1.5, 0])

    by_name = partly_seen.energy(values)

    assert by_name == pytest.approx(-mixtures.graph().log_density(array), rel=1e-12)
    assert partly_seen.energy(array) == by_name
    assert partly_seen.energy(values | {"y": 1.5}) == by_name
    found = partly_seen.map(polish=False)
    assert partly_seen.energy(found) == pytest.approx(found.energy, rel=1e-12)


def test_energies_that_make_no_sense_are_refused(partly_seen: Posterior) -> None:
    values = {"wet": True, "x": 0.5, "color": "green", "share": 1.0}

    with pytest.raises(EvidenceError, match=r"'y' is observed as 1\.5 and cannot be 2\.0"):
        partly_seen.energy(values | {"y": 2.0})
    with pytest.raises(EvidenceError, match=r"needs a value for 'wet' \(and 1 more\)"):
        partly_seen.energy({"x": 0.5, "color": "green"})
    with pytest.raises(EvidenceError, match="share cannot be 4"):
        partly_seen.energy(values | {"share": 4.0})
    with pytest.raises(EvidenceError, match="'share' cannot be 4"):
        partly_seen.energy(np.array([1, 0.5, 1, 4.0, 1.5, 0]))
    with pytest.raises(EvidenceError, match=r"has as many values, not the shape \(3,\)"):
        partly_seen.energy(np.zeros(3))
    with pytest.raises(UnknownNameError, match=r"Did you mean 'color'\?"):
        partly_seen.energy(values | {"colour": "red"})


def test_after_given_there_are_energies_but_no_polished_map(posterior: Posterior) -> None:
    conditional = posterior.given({"x": 0.7})

    found = conditional.map(polish=False)

    assert found["x"] == 0.7
    assert conditional.energy(found) == found.energy == posterior.energy(found)
    with pytest.raises(EvidenceError, match=r"'x' is observed as 0\.7 and cannot be 1\.0"):
        conditional.energy(np.array([0.0, 1.0, 0, 0, 0, 0]))
    with pytest.raises(UnsupportedError, match=r"after given\(…\) there is no polished MAP"):
        conditional.map()


# Posteriors of exact inference


def test_a_loaded_posterior_has_no_polished_map_after_given(
    posterior: Posterior, tmp_path: Path
) -> None:
    posterior.save(tmp_path / "saved")

    loaded = Posterior.load(tmp_path / "saved").given({"y": 1.0})

    with pytest.raises(UnsupportedError) as refusal:
        loaded.map()
    assert str(refusal.value) == (
        "this posterior has no MAP assignment: ask for the task 'map' before saving it; "
        "map(polish=False), also after given(…), is the mode of the mixture"
    )
    expected = posterior.given({"y": 1.0}).map(polish=False)
    assert loaded.map(polish=False).to_dict() == expected.to_dict()


def test_an_exact_posterior_knows_energies_and_marginal_modes() -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [(ConditionalQuadratic.square(-0.5), ["x"]), (ConditionalQuadratic.square(-1.0), ["y"])],
    ).observe({"x": Soft(1.0, 0.5), "y": 2.0})

    posterior = infer(graph, tasks=["marginals", "map"])

    best = posterior.map()
    assert posterior.map(polish=False) is best
    assert posterior.energy(best) == pytest.approx(best.energy, rel=1e-12)
    assert posterior.energy({"x": 0.0}) > best.energy
    assert posterior.marginal_map()["x"] == pytest.approx(best["x"], rel=1e-9)


def test_energies_need_no_marginals() -> None:
    posterior = infer(zoo.hard_clause(), tasks=["logz"])

    assert posterior.energy({"H": True, "S": False}) == 0.0
    assert posterior.energy({"H": False, "S": False}) == np.inf


def test_a_mixture_about_other_variables_is_refused() -> None:
    q = mixtures.mixture()
    names = Names.numbered(6)
    observed = np.zeros(6, dtype=bool)

    with pytest.raises(ModelError, match="a different number of states for 'x0'"):
        Posterior(Variables.uniform(real, 6, names), observed, mixtures.SOLUTION, mixture=q)
    with pytest.raises(ModelError, match="must cover exactly the hidden variables"):
        Posterior(mixtures.variables(), ~observed, mixtures.SOLUTION, mixture=q)
