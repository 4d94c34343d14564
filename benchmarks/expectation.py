"""Expectation propagation: accuracy on random hybrid models, item response, and scale."""

from __future__ import annotations

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
        exact, found = hl.infer(graph, hl.Exact()), hl.infer(graph, hl.EP(), rewrite=False)
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
    """Prints time, and means and deviations off, beside a long chain of Hamiltonian Monte Carlo."""
    data = ItemResponse.drawn(200, 40)
    graph = data.graph()
    posterior, seconds = timed(lambda: hl.infer(graph, hl.EP()))
    mean, std = data.moments(posterior)
    draws, of_chain = timed(lambda: data.chain(mean, std, NUM_DRAWS))
    off = np.abs(mean - draws.mean(axis=0)) / draws.std(axis=0)
    ratio = std / draws.std(axis=0)
    print(
        f"item response 200 × 40: EP {seconds:.1f} s ({posterior.solution.result}), a chain of "
        f"{NUM_DRAWS:,} draws {of_chain:.1f} s; means off by at most {off.max():.3f} deviations, "
        f"deviations by {ratio.min() - 1:+.2f} to {ratio.max() - 1:+.2f}, median "
        f"{np.median(ratio) - 1:+.3f}"
    )


def _scale(shape: str, size: int) -> None:
    """Prints the time of as many Booleans as reals, coupled to each other and along a shape."""
    graph = sparse_hybrid(shape, size)
    posterior, seconds = timed(lambda: hl.infer(graph, hl.EP()))
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
