"""Every method on every model of the zoo that it claims, beside exact inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference import (
    BP,
    BVI,
    EP,
    EPBP,
    NPVI,
    SMC,
    Exact,
    GaBP,
    Gibbs,
    MaxWalkSAT,
    MeanField,
    Method,
    MiniBuckets,
    infer,
)
from hylift.inference.capabilities import METHODS, info_of
from hylift.posterior import Categorical, Posterior
from hylift.posterior.mixing import standard_error
from zoo import ZOO, ZooModel

EVERYTHING = ("marginals", "logz", "map")
FUNCTIONS = ("function_of_bounded_reals", "function_of_both_kinds")
BOUNDS_MATTER = ("soft_evidence_outside_the_interval", "truncated_gaussian")
"""Models whose bounds GaBP ignores, and says so."""
EQUAL_FACTORS = ("counted_factors", "copied_factors")
"""Three equal factors make loops: a mixture of two is taken for one."""
FAR = 4.0
"""Standard errors that no mean is off, with these seeds: by chance one in 10,000 may be."""

BY_COMPONENTS = {
    "toy_hybrid_mln": (0.3, 0.03, 0.02),
    "smallest_toy_hybrid_mln": (0.4, 0.11, 0.11),
    "hard_clause": (0.5, 1e-3, 1e-3),
    "friends_and_smokers": (0.012, 0.003, 0.002),
    "hidden_markov_model": (0.13, 0.003, 0.001),
    "mixed_cardinality_loop": (0.3, 0.06, 0.05),
    "one_state_categorical": (1e-9, 1e-5, 1e-5),
    "isolated_variables": (1e-9, 0.005, 0.005),
    "gaussian_chain": (1e-9, 1e-9, 1e-9),
    "gaussian_loop": (1e-9, 1e-9, 1e-9),
    "relational_gaussian_model": (1e-9, 1e-9, 1e-9),
    "unbounded_relational_gaussian_model": (1e-9, 1e-9, 1e-9),
    "kalman_chain": (1e-9, 1e-9, 1e-9),
    "switching_regime": (0.5, 0.45, 0.45),
    "observed_mixture": (1.0, 0.02, 0.005),
    "hard_constraint_keeps_a_real_in_place": (1e-6, 1e-3, 1e-3),
    "distant_constraint_keeps_a_real_in_place": (1e-6, 1e-3, 1e-3),
    "soft_evidence_on_a_real": (1e-9, 1e-9, 1e-9),
    "soft_evidence_outside_the_interval": (0.03, 0.01, 0.01),
    "truncated_gaussian": (0.01, 0.005, 0.005),
    "coupled_bounded_reals": (0.16, 0.01, 0.01),
    "bounded_and_unbounded_reals": (0.7, 0.05, 0.02),
    "function_of_bounded_reals": (0.07, 0.01, 0.01),
    "function_of_discrete_slots": (1.0, 0.16, 0.06),
    "function_of_both_kinds": (0.06, 0.03, 0.01),
}
"""Largest error of a mean, in standard deviations, or of a probability, of BVI with 1, 3 and 5
components: about one and a half times what is measured."""
BETHE_L1 = {
    "toy_hybrid_mln": 0.003,
    "mixed_cardinality_loop": 0.07,
    "relational_gaussian_model": 1e-4,
    "switching_regime": 0.5,
    "function_of_discrete_slots": 0.25,
    "counted_factors": 1.0,
    "copied_factors": 1.0,
}
"""Errors of Bethe's approximation, where they are larger than 1e-5: about one and a half times what
is measured, of means and of Σ|p - q|."""
BETHE_KL = {
    "toy_hybrid_mln": 1e-5,
    "friends_and_smokers": 1e-10,
    "mixed_cardinality_loop": 4e-3,
    "gaussian_loop": 1e-9,
    "relational_gaussian_model": 1e-5,
    "unbounded_relational_gaussian_model": 1e-6,
    "switching_regime": 0.3,
    "function_of_bounded_reals": 5e-4,
    "function_of_discrete_slots": 0.02,
}
"""KL from the exact marginals that Bethe's approximation has on models with loops, about one and a
half times what is measured; the same with any number of particles."""

EP_ERRORS = {
    "toy_hybrid_mln": (0.03, 0.05),
    "smallest_toy_hybrid_mln": (1e-3, 1e-3),
    "friends_and_smokers": (1e-5, 1e-5),
    "mixed_cardinality_loop": (0.04, 0.03),
    "switching_regime": (0.5, 0.2),
    "coupled_bounded_reals": (0.02, 0.02),
    "bounded_and_unbounded_reals": (2e-3, 1e-3),
    "function_of_bounded_reals": (0.06, 0.25),
    "function_of_discrete_slots": (0.12, 0.3),
    "function_of_both_kinds": (4e-4, 5e-4),
}
"""Largest errors of EP, of means in standard deviations or of probabilities, and of log Z, where it
is not exact: about one and a half times what is measured."""

Check = Callable[[Posterior, Posterior, ZooModel], None]
"""Given the exact posterior, that of the method, and the model."""


def check_mixture(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """Its objective is a free energy, which says of what kind log Z is."""
    assert found.log_partition is not None
    assert found.log_partition.kind in ("lower bound", "estimate")
    assert 0 <= found.log_partition.error < 0.05
    assert found.solution.objective is not None
    if found.log_partition.kind == "lower bound":  # a better one may be known than what was fitted
        assert -found.solution.objective <= found.log_partition.value
    else:
        assert found.solution.objective == -found.log_partition.value
    if model.tags & {"tree", "large"} and "function" not in model.tags:
        assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-6)


def check_components(place: int) -> Check:
    """More components are nearer to the exact marginals."""

    def check(exact: Posterior, found: Posterior, model: ZooModel) -> None:
        check_mixture(exact, found, model)
        if str(model) in BY_COMPONENTS:
            assert largest_error(exact, found) <= BY_COMPONENTS[str(model)][place]

    return check


def largest_error(exact: Posterior, found: Posterior) -> float:
    """Of means, in standard deviations, and of probabilities."""
    errors = [0.0]
    for name in exact.variables.names.render().to_pylist():
        expected, actual = exact.marginal(name), found.marginal(name)
        if isinstance(expected, Categorical):
            errors.append(float(np.abs(expected.probs - actual.probs).max()))
        else:
            errors.append(abs(expected.mean - actual.mean) / max(expected.std, 1e-9))
    return max(errors)


def check_messages(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """Exact on trees, Bethe's approximation elsewhere."""
    comparison, name = exact.compare(found), str(model)
    check_map(exact, found)
    if found.solution.method == "GaBP" and name in BOUNDS_MATTER:
        assert comparison.max_l1 <= 1.0
    elif "tree" in model.tags:
        assert comparison.max_l1 <= 1e-9
        assert comparison.max_kl <= 1e-9
        assert found.log_partition is not None
        assert exact.log_partition is not None
        assert found.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-9)
        assert found.log_partition.kind == "exact"
        assert found.map().kind == "exact"
    else:
        assert comparison.max_l1 <= BETHE_L1.get(name, 1e-5)


def check_sites(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """Exact where one joint Gaussian or a discrete tree is all there is, else near."""
    of_marginals, of_log_z = EP_ERRORS.get(str(model), (1e-8, 1e-8))
    assert found.log_partition is not None
    assert exact.log_partition is not None
    assert largest_error(exact, found) <= of_marginals
    assert abs(found.log_partition.value - exact.log_partition.value) <= of_log_z
    if "function" not in model.tags:
        check_map(exact, found)


def check_particles(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """As messages, but with sums over strata in place of integrals."""
    comparison, name = exact.compare(found), str(model)
    check_map(exact, found)
    # Sums over strata are off by 1/N² where a bound cuts the density, and by far less elsewhere.
    least = 3e-3 if "bounded" in model.tags else 1e-5
    assert comparison.max_l1 <= max(BETHE_L1.get(name, 0.0), least)
    if name not in EQUAL_FACTORS:
        assert comparison.max_kl < BETHE_KL.get(name, 1e-7)
    if name not in EQUAL_FACTORS and name not in BETHE_KL:
        assert found.log_partition is not None
        assert exact.log_partition is not None
        assert found.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-3)


def check_draws(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """Draws and marginals are exact within the error that the sampler states."""
    assert found.draws is not None
    check_map(exact, found)
    assert found.draws.diagnostics().r_hat.max() < 1.05
    assert found.assignment is not None
    assert found.assignment.kind == "estimate"
    assert found.energy(found.assignment) == pytest.approx(found.assignment.energy, abs=1e-9)
    assert "Gibbs does not estimate log Z." in found.solution.notes
    for at, variable in enumerate(found.draws.ids.tolist()):
        name = exact.variables.names[variable]
        true, got, values = exact.marginal(name), found.marginal(name), found.draws.values[:, :, at]
        if isinstance(true, Categorical):
            is_state = (values[:, :, None] == np.arange(len(true.probs))).astype(float)
            # A state that was never drawn may have a probability of one in so many draws.
            error = np.maximum(standard_error(is_state), 1 / values.size)
            assert np.abs(is_state.mean(axis=(0, 1)) - true.probs).max() <= FAR * error.max(), name
            assert (np.abs(got.probs - true.probs) <= FAR * error).all(), name
            continue
        squares = (values - true.mean) ** 2
        of_mean = standard_error(values[:, :, None])[0]
        of_var = standard_error(squares[:, :, None])[0]
        assert max(abs(values.mean() - true.mean), abs(got.mean - true.mean)) <= FAR * of_mean, name
        assert max(abs(squares.mean() - true.var), abs(got.var - true.var)) <= FAR * of_var, name
        if is_gaussian(model):  # exact without states; near bounds by quadrature
            assert got.mean == pytest.approx(true.mean, abs=1e-6)
            assert got.std == pytest.approx(true.std, abs=1e-6)


def check_particle_groups(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """log Z, probabilities and moments are within what the spread of the groups allows."""
    if str(model) not in FUNCTIONS:
        check_map(exact, found)
    assert found.draws is not None
    assert found.log_partition is not None
    assert exact.log_partition is not None
    assert found.log_partition.kind == "estimate"
    known = exact.log_partition
    off = abs(found.log_partition.value - known.value) - known.error
    assert off <= FAR * found.log_partition.error + 1e-9
    assert largest_error(exact, found) <= 0.03
    if "discrete" not in model.tags and has_free_reals(model):  # nothing was drawn
        assert largest_error(exact, found) <= 1e-9


def check_search(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    assert found.map().kind == "estimate"
    if str(model) not in FUNCTIONS:
        check_map(exact, found)


def check_interval(exact: Posterior, found: Posterior, model: ZooModel) -> None:
    """The true value is within what is certain."""
    assert found.log_partition is not None
    assert exact.log_partition is not None
    assert found.log_partition.kind in ("exact", "upper bound", "interval")
    known = exact.log_partition
    assert found.log_partition.lower <= known.value + known.error + 1e-9
    assert found.log_partition.upper >= known.value - known.error


def check_map(exact: Posterior, found: Posterior) -> None:
    assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-6)


def anything(model: ZooModel) -> bool:
    return True


def is_discrete(model: ZooModel) -> bool:
    return "discrete" in model.tags


def is_gaussian(model: ZooModel) -> bool:
    return "gaussian" in model.tags and "function" not in model.tags


def is_closed(model: ZooModel) -> bool:
    return is_discrete(model) or "function" not in model.tags


def has_free_reals(model: ZooModel) -> bool:
    variables = model.graph().variables
    has_bound = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    return is_closed(model) and not (has_bound & (variables.num_states == 0)).any()


@dataclass(frozen=True)
class Claim:
    """A method, how to check its answers, and the models that it takes."""

    method: Method
    check: Check
    takes: Callable[[ZooModel], bool] = anything
    is_checked: bool = True
    """A quick check follows; once for every kind of method is enough."""


CLAIMS = [
    Claim(MeanField(), check_mixture),
    Claim(BVI(1), check_components(0), is_checked=False),
    Claim(BVI(3), check_components(1)),
    Claim(BVI(5), check_components(2), is_checked=False),
    Claim(BVI(2, restarts=2, reals="gaussian"), check_mixture, is_checked=False),
    Claim(NPVI(1, restarts=3), check_mixture),
    Claim(NPVI(3, restarts=3), check_mixture, is_checked=False),
    Claim(BP(), check_messages, is_discrete),
    Claim(BP(schedule="residual"), check_messages, is_discrete, is_checked=False),
    Claim(GaBP(), check_messages, is_gaussian),
    Claim(EPBP(), check_particles),
    Claim(EP(), check_sites),
    Claim(SMC(particles=256), check_particle_groups),
    Claim(Gibbs(), check_draws),
    Claim(MaxWalkSAT(flips=100_000), check_search),
    Claim(MiniBuckets(), check_interval, is_closed),
    Claim(MiniBuckets(max_entries=4), check_interval, is_closed),
]


def cases(*, claimed: bool) -> list[object]:
    return [
        pytest.param(
            claim,
            model,
            id=f"{claim.method.name}-{number}-{model}",
            # Each flip integrates a function; test_walk_answers.py has this model, too.
            marks=[pytest.mark.slow]
            if isinstance(claim.method, MaxWalkSAT) and str(model) == "function_of_bounded_reals"
            else [],
        )
        for number, claim in enumerate(CLAIMS)
        for model in ZOO
        if claim.takes(model) == claimed
    ]


@cache
def exact_answer(model: ZooModel) -> Posterior:
    return infer(model.graph(), Exact(), tasks=EVERYTHING)


def test_every_method_has_a_claim() -> None:
    claimed = {info_of(claim.method).key for claim in CLAIMS}

    assert claimed | {"exact"} == {info.key for info in METHODS}


@pytest.mark.parametrize(("claim", "model"), cases(claimed=True))
def test_a_method_solves_what_it_claims(claim: Claim, model: ZooModel) -> None:
    graph, exact, answers = model.graph(), exact_answer(model), info_of(claim.method).answers

    check = None if claim.is_checked else False
    found = infer(graph, claim.method, tasks=EVERYTHING, seed=7, check=check)

    assert found.solution.method == claim.method.name
    assert found.solution.result in ("converged", *(["max_steps"] if answers == ("map",) else []))
    assert found.map().energy >= exact.map().energy - 1e-6
    assert (found.all_marginals is not None) == ("marginals" in answers)
    assert (found.log_partition is not None) == ("logz" in answers)
    if found.all_marginals is not None:
        check_distributions(graph, found)
    if found.log_partition is not None and exact.log_partition is not None:
        assert np.isfinite(found.log_partition.value)
        if found.log_partition.kind == "lower bound":
            known = exact.log_partition
            assert found.log_partition.value <= known.value + 1e-9 + known.error
    claim.check(exact, found, model)


def check_distributions(graph: FactorGraph, found: Posterior) -> None:
    """Marginals are distributions within their domains, and what was observed is certain."""
    evidence, variables = graph.evidence, graph.variables
    for variable, name in enumerate(variables.names.render().to_pylist()):
        marginal = found.marginal(name)
        if variables.num_states[variable]:
            assert marginal.probs.sum() == pytest.approx(1.0, abs=1e-12)
            assert (marginal.probs >= 0).all()
        else:
            is_inside = variables.lower[variable] <= marginal.mean <= variables.upper[variable]
            assert is_inside or found.solution.method == "GaBP"  # which ignores bounds
            assert marginal.var >= 0
    seen = evidence.is_hard
    for variable, value in zip(evidence.variable[seen], evidence.value[seen], strict=True):
        marginal = found.marginal(variables.names[int(variable)])
        is_discrete = variables.num_states[variable] > 0
        assert marginal.probs[int(value)] == 1.0 if is_discrete else marginal.mean == value


@pytest.mark.parametrize(("claim", "model"), cases(claimed=False))
def test_what_is_not_claimed_is_refused(claim: Claim, model: ZooModel) -> None:
    with pytest.raises(UnsupportedError, match=claim.method.name):
        infer(model.graph(), claim.method, rewrite=False)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (kind, model)
        for kind, takes in ((BP, is_discrete), (GaBP, is_gaussian), (EPBP, anything))
        for model in ZOO
        if takes(model)
    ],
    ids=str,
)
def test_lifted_messages_equal_ground_ones_after_each_step(
    kind: type[BP | GaBP | EPBP], model: ZooModel, num_steps: int
) -> None:
    graph = model.graph()
    method = EPBP(20, max_steps=num_steps) if kind is EPBP else kind(max_steps=num_steps)

    lifted, ground = (infer(graph, method, lift=how) for how in ("exact", "none"))

    assert ground.compare(lifted).max_l1 <= 1e-10
    assert lifted.log_partition is not None
    assert ground.log_partition is not None
    assert lifted.log_partition.value == pytest.approx(ground.log_partition.value, abs=1e-10)


@pytest.mark.parametrize("method", [MeanField(), BVI(2), NPVI(2)], ids=lambda m: m.name)
@pytest.mark.parametrize("model", [m for m in ZOO if "function" not in m.tags], ids=str)
def test_ground_and_lifted_mixtures_are_equally_good(model: ZooModel, method: Method) -> None:
    """The ground run has more freedom; it may use it, or end in another optimum nearby."""
    graph = model.graph()

    lifted, ground = (
        infer(graph, method, lift=lift, check=False).log_partition for lift in ("exact", "none")
    )

    assert lifted is not None
    assert ground is not None
    assert ground.value >= lifted.value - 0.02 * max(1.0, abs(lifted.value))
