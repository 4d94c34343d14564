"""Expectation propagation: accuracy on random hybrid models, item response, and scale."""

from __future__ import annotations

from importlib.util import find_spec
from time import process_time

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from benchmarks.measure import timed
from benchmarks.setting import Setting
from tests.hybrid_models import random_hybrid
from tests.item_response import ItemResponse

NUM_MODELS, NUM_DRAWS = 500, 20_000


def run(setting: Setting) -> None:
    """EP on 500 random hybrid models, an item response model of 200 × 40, and 100,000 variables"""
    print("coupling  worst P: median  90 %   sd off: median   log Z off: median  not converged")
    for coupling in (1.0, 3.0):
        _accuracy(coupling)
    _item_response()
    for shape in ("chain", "tree", "ladder"):
        _scale(shape, 50_000)


def _accuracy(coupling: float) -> None:
    """Prints errors of probabilities, deviations and log Z, beside exact inference."""
    of_states, of_reals, of_log_z, num_open = [], [], [], 0
    for seed in range(NUM_MODELS):
        graph = random_hybrid(seed, coupling)
        exact, found = (
            hl.infer(graph, hl.Exact()),
            hl.infer(graph, hl.EP(), rewrite=False, check=False),
        )
        names = graph.variables.names.render().to_pylist()
        pairs = [(exact.marginal(name), found.marginal(name)) for name in names]
        of_states.append(max(np.abs(a.probs - b.probs).max() for a, b in pairs[:9]))
        of_reals += [abs(b.std / a.std - 1) for a, b in pairs[9:]]
        assert exact.log_partition is not None
        assert found.log_partition is not None
        of_log_z.append(abs(exact.log_partition.value - found.log_partition.value))
        num_open += found.solution.result != "converged"
    worst, tenth = np.quantile(of_states, [0.5, 0.9])
    print(
        f"{coupling:8g}  {worst:15.4f} {tenth:5.3f}  {np.median(of_reals):15.4f}"
        f"  {np.median(of_log_z):18.4f}  {num_open:13}"
    )


def _item_response() -> None:
    """Prints means and deviations off, and CPU seconds, of EP and Gibbs beside NUTS; where NumPyro
    is not installed, beside a long chain of Hamiltonian Monte Carlo that starts from EP."""
    data = ItemResponse.drawn(200, 40)
    graph, found = data.graph(), []
    for name, method in (("EP", hl.EP()), ("Gibbs", hl.Gibbs(draws=4000))):
        began = process_time()
        posterior = hl.infer(graph, method, tasks="marginals", check=False)
        rank = (
            ""
            if posterior.draws is None
            else f", R-hat {posterior.draws.diagnostics().r_hat.max():.3f}"
        )
        found.append((name, data.moments(posterior), process_time() - began, rank))
    began = process_time()
    if find_spec("numpyro") is None:
        print("NumPyro is not installed: no NUTS; a chain of Hamiltonian Monte Carlo in its place")
        draws, rank = data.chain(*found[0][1], NUM_DRAWS)[None], ""
    else:
        draws, rank = _nuts(data)
    seconds, mean, std = process_time() - began, draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    count = draws[..., 0].size
    print(f"item response 200 × 40, beside {count:,} draws{rank}: {seconds:.0f} s of CPU")
    for name, (own_mean, own_std), taken, own_rank in found:
        off, ratio = np.abs(own_mean - mean) / std, own_std / std - 1
        print(
            f"  {name}: {taken:.0f} s of CPU{own_rank}; means off by at most {off.max():.3f} "
            f"deviations, deviations by {ratio.min():+.3f} to {ratio.max():+.3f}"
        )


def _nuts(data: ItemResponse) -> tuple[NDArray[np.float64], str]:
    """(chain, draw, real): of four chains, compilation included; and their R-hat in words."""
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.diagnostics import split_gelman_rubin
    from numpyro.infer import MCMC, NUTS, init_to_median

    jax.config.update("jax_enable_x64", True)
    persons, items = data.correct.shape

    def model() -> None:
        ability = numpyro.sample("ability", dist.Normal(0.0, 1.0).expand([persons]))
        difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 1.0).expand([items]))
        slope = numpyro.sample("slope", dist.Normal(1.0, 0.5).expand([items]))
        reach = slope * (ability[:, None] - difficulty)
        numpyro.sample("correct", dist.BernoulliLogits(reach), obs=data.correct)

    # From random starts chains stay where all slopes are negative.
    chain = MCMC(
        NUTS(model, init_strategy=init_to_median), num_warmup=1000, num_samples=NUM_DRAWS // 4,
        num_chains=4, chain_method="sequential", progress_bar=False,
    )  # fmt: skip
    chain.run(jax.random.PRNGKey(0))
    parts = chain.get_samples(group_by_chain=True)
    draws = np.concatenate([parts[name] for name in ("ability", "difficulty", "slope")], axis=2)
    return draws, f" of NUTS, R-hat {split_gelman_rubin(draws).max():.4f}"


def _scale(shape: str, size: int) -> None:
    """Prints the time of as many Booleans as reals, coupled to each other and along a shape."""
    graph = sparse_hybrid(shape, size)
    posterior, seconds = timed(lambda: hl.infer(graph, hl.EP(), check=False))
    print(
        f"{shape}: {graph.num_variables:,} variables, {graph.num_factors:,} factors, "
        f"{seconds:.1f} s, {posterior.solution.steps} steps, {posterior.solution.result}"
    )


def sparse_hybrid(shape: str, size: int, seed: int = 0) -> hl.FactorGraph:
    """Booleans and reals, each pair a switched Gaussian; both coupled along links of a shape."""
    rng = np.random.default_rng(seed)
    states = np.arange(size, dtype=np.int32)
    links = _links(shape, states, rng)
    mean, var = 2 * rng.normal(size=(size, 2)), np.exp(0.5 * rng.normal(size=(size, 2)))
    switched = hl.ConditionalQuadratic(
        (-0.5 / var)[..., None, None], (mean / var)[..., None], -0.5 * (mean**2 / var + np.log(var))
    )
    own = hl.ConditionalQuadratic(
        np.full((size, 1, 1), -0.5), rng.normal(size=(size, 1)), np.zeros(size)
    )
    near = hl.ConditionalQuadratic.squared_distance(0.5 * rng.random(len(links)), [1.0, -1.0])
    domains = [hl.boolean] * size + [hl.real] * size
    return hl.FactorGraph(
        hl.Variables.of(domains, hl.Names.numbered(2 * size)),
        (
            hl.FactorGroup(hl.Table(0.5 * rng.normal(size=(len(links), 2, 2))), links),
            hl.FactorGroup(near, links + size),
            hl.FactorGroup(own, states[:, None] + size),
            hl.FactorGroup(switched, np.stack([states, states + size], axis=1)),
        ),
    )


def _links(shape: str, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """(link, 2): along a line, to a random earlier one, or to two of the next thirty."""
    if shape == "tree":
        earlier = (rng.random(len(states) - 1) * states[1:]).astype(np.int32)
        return np.stack([earlier, states[1:]], axis=1)
    if shape == "chain":
        return np.stack([states[:-1], states[1:]], axis=1)
    begin = np.repeat(states[:-30], 2)
    links = np.stack([begin, begin + rng.integers(1, 30, len(begin))], axis=1)
    return np.unique(links, axis=0).astype(np.int32)
