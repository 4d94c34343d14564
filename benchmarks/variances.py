"""Hierarchies with unknown variances: exact inference given them, beside NUTS."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import hylift as hl
from benchmarks.measure import best_of, timed
from benchmarks.setting import Setting
from tests import hierarchies
from tests.hierarchies import EFFECT, ERROR, Floats, Hierarchy

NUM_WARM, NUM_DRAWS = 1000, 1000


def run(setting: Setting) -> None:
    """eight schools and 5,000 rows with three unknown variances, beside NUTS (NumPyro)"""
    with_nuts = find_spec("numpyro") is not None
    if not with_nuts:
        print(
            "NumPyro is not installed: `pip install 'hylift[bench]'` adds NUTS to the comparison."
        )
    print(
        f"{'model':14} {'hidden':>7} {'infer':>8} {'stated':>8} {'off':>8} {'NUTS':>8} {'off':>8}"
    )
    given, data = hierarchies.schools_given, Hierarchy.drawn(5000, 500, 20)
    _, mean, std = hierarchies.moments(given, 0.0, 50.0)
    names = hierarchies.SCHOOL_NAMES
    _compare("eight schools", hierarchies.eight_schools("[0, 50]"), names, mean, std)
    if with_nuts:
        _nuts(_schools, names, mean, std)
    _, mean, std = hierarchies.integrated(data)
    _compare("5,000 rows", data.graph(), data.names, mean, std)
    if with_nuts:
        _nuts(_levels(data), data.names, mean, std)


def _compare(name: str, graph: hl.FactorGraph, names: list[str], mean: Floats, std: Floats) -> None:
    """Prints time, the stated error of log Z, and means and deviations off, in deviations."""
    posterior = hl.infer(graph, hl.Exact())
    seconds = best_of(3, lambda: hl.infer(graph, hl.Exact()))
    found = [posterior.marginal(each) for each in names]
    off = _off([m.mean for m in found], [m.var for m in found], mean, std)
    assert posterior.log_partition is not None
    hidden, stated = int(graph.is_hidden.sum()), posterior.log_partition.error
    print(f"{name:14} {hidden:7} {seconds:7.3f}s {stated:8.1e} {off:8.1e}", end=" ", flush=True)
    if find_spec("numpyro") is None:
        print()


def _off(mean: Any, var: Any, true_mean: Floats, std: Floats) -> float:
    of_mean = np.abs(np.asarray(mean, dtype=np.float64) - true_mean) / std
    of_std = np.abs(np.sqrt(np.asarray(var, dtype=np.float64)) / std - 1.0)
    return float(max(of_mean.max(), of_std.max()))


def _nuts(model: Callable[[], None], names: list[str], mean: Floats, std: Floats) -> None:
    """Prints the time of NUTS after compilation, and how far its moments are off."""
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    chain = MCMC(NUTS(model), num_warmup=NUM_WARM, num_samples=NUM_DRAWS, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    _, seconds = timed(lambda: chain.run(jax.random.PRNGKey(1)))
    draws = chain.get_samples()
    found = np.stack([np.asarray(draws[name]) for name in names])
    print(f"{seconds:7.2f}s {_off(found.mean(axis=1), found.var(axis=1), mean, std):8.1e}")


def _schools() -> None:
    """Eight schools as NUTS likes them: effects in units of their spread."""
    import numpyro
    from numpyro import distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0.0, 100.0))
    tau = numpyro.sample("tau", dist.Uniform(0.0, 50.0))
    unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand([8]))
    theta = mu + tau * unit
    for place, name in enumerate(hierarchies.SCHOOL_NAMES[2:]):
        numpyro.deterministic(name, theta[place])
    numpyro.sample("effect", dist.Normal(theta, ERROR), obs=EFFECT)


def _levels(data: Hierarchy) -> Callable[[], None]:
    def model() -> None:
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        of_group, of_region = data.names[3:5]
        noise, between, above = (
            numpyro.sample(name, dist.Uniform(0.01, 100.0)) for name in data.names[:3]
        )
        mu = numpyro.sample("mu", dist.Normal(0.0, 100.0))
        num_regions, num_groups = int(data.region.max()) + 1, len(data.region)
        up = numpyro.sample("up", dist.Normal(0.0, 1.0).expand([num_regions]))
        down = numpyro.sample("down", dist.Normal(0.0, 1.0).expand([num_groups]))
        r = mu + jnp.sqrt(above) * up
        m = r[data.region] + jnp.sqrt(between) * down
        numpyro.deterministic(of_group, m[0])
        numpyro.deterministic(of_region, r[data.region[0]])
        numpyro.sample("y", dist.Normal(m[data.group], jnp.sqrt(noise)), obs=data.rows)

    return model
