"""Worked problems of the gallery on other data: coverage and time, beside NumPyro."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from benchmarks.setting import Setting
from docs_build.gallery import read_example

EXAMPLES = Path(__file__).parents[1] / "examples"
NUM_SETS = 20
NUM_CHAINS, NUM_WARM = 2, 500
MANY = "0, 50_000, 1_000, 200"
"""Seed, deliveries, segments and drivers of the largest problem."""
SURE = 0.9
"""Probability from which on an atom counts as said to be true, or false."""

Floats = NDArray[np.float64]
Model = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Worked:
    """A script of the gallery that was run on data of its own up to its figure."""

    space: dict[str, Any]
    """What the script has defined."""
    seconds: float
    """CPU seconds of the cell that infers, grounding included."""

    @classmethod
    def on(cls, name: str, arguments: str) -> Worked:
        """arguments: of the function `simulate` of the script."""
        space, seconds = {"__name__": name}, 0.0
        for cell in read_example(EXAMPLES / f"{name}.py").blocks:
            if "Figure(" in cell.code:
                break
            code = re.sub(r"= simulate\(.*\)", f"= simulate({arguments})", cell.code)
            began = process_time()
            with redirect_stdout(io.StringIO()):
                exec(compile(code, f"{name}.py", "exec"), space)
            if "hl.infer(" in code:
                seconds = process_time() - began
        return cls(space, seconds)

    @property
    def posterior(self) -> hl.Posterior:
        found: hl.Posterior = self.space["posterior"]
        return found

    @property
    def covered(self) -> list[bool]:
        """Of each 90 % interval, whether it holds the truth."""
        space = self.space
        held = list(space["covered"]) if "covered" in space else []
        return (
            [*held, space["low"] <= space["noise"] <= space["high"]] if "noise" in space else held
        )

    @property
    def said(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Probabilities of truth values, and these."""
        space = self.space
        for name, truth in (("told", "truth"), ("odd", "odd"), ("slow", "slow")):
            if name in space:
                table = space[name]
                return table.prob.to_numpy(), table[truth].to_numpy(dtype=bool)
        return np.zeros(0), np.zeros(0, dtype=bool)


def run(setting: Setting) -> None:
    """worked problems of the gallery: intervals over 20 data sets, beside NumPyro"""
    if find_spec("numpyro") is None:
        print("NumPyro is not installed: `pip install 'hylift[bench]'` adds it to the comparison.")
    for name in PROBLEMS:
        _over_sets(name)
    worked = Worked.on("deliveries", MANY)
    held = np.mean(worked.covered)
    print(f"deliveries({MANY}): {_how(worked)}, {held:.1%} of intervals hold")


def _how(worked: Worked) -> str:
    """The method, verdict and time of an answer."""
    found = worked.posterior
    return f"{found.solution.method}, {found.trust.verdict}, {worked.seconds:.1f} s of CPU"


def _over_sets(name: str) -> None:
    """Prints the share of intervals that hold, calibration, verdicts and time over data sets."""
    sizes = PROBLEMS[name].sizes
    sets = [Worked.on(name, f"{seed}{sizes}") for seed in range(NUM_SETS)]
    covered = [held for each in sets for held in each.covered]
    prob, truth = (np.concatenate(part) for part in zip(*(each.said for each in sets), strict=True))
    verdicts = [each.posterior.trust.verdict for each in sets]
    counted = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
    seconds = [each.seconds for each in sets]
    print(
        f"{name}: {NUM_SETS} sets, {counted}; {np.median(seconds):.1f} s of CPU in the middle, "
        f"{max(seconds):.1f} s at most"
    )
    if covered:
        print(f"  90 % intervals that hold the truth: {np.mean(covered):.1%} of {len(covered)}")
    if len(prob):
        sure = np.maximum(prob, 1 - prob) >= SURE
        right = ((prob > 0.5) == truth)[sure].mean()
        true = truth[prob >= SURE].mean()
        print(
            f"  probabilities of {SURE:g} or more that a statement is true, or false: {sure.sum()} "
            f"of {len(prob)}, {np.maximum(prob, 1 - prob)[sure].mean():.1%} on average, "
            f"{right:.1%} right; {true:.1%} of those said to be true"
        )
    _beside_nuts(name, sets[0])


def _beside_nuts(name: str, worked: Worked) -> None:
    """Prints the time of NumPyro on the same data, and how far the answer is from its draws."""
    problem = PROBLEMS[name]
    if find_spec("numpyro") is None:
        return
    import jax
    from numpyro.diagnostics import split_gelman_rubin
    from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs, init_to_median

    jax.config.update("jax_enable_x64", True)
    began = process_time()
    kernel = NUTS(problem.model(worked.space), init_strategy=init_to_median)
    chain = MCMC(
        DiscreteHMCGibbs(kernel, modified=True) if problem.has_states else kernel,
        num_warmup=NUM_WARM, num_samples=problem.num_draws, num_chains=NUM_CHAINS,
        chain_method="sequential", progress_bar=False,
    )  # fmt: skip
    chain.run(jax.random.PRNGKey(0))
    parts = {key: np.asarray(draws) for key, draws in chain.get_samples(True).items()}
    seconds = process_time() - began
    rank = np.nanmax([np.nanmax(split_gelman_rubin(draws)) for draws in parts.values()])
    if problem.has_states:
        off = max(
            abs(worked.posterior.marginal(atom).prob("true") - prob)
            for key, draws in parts.items() if key != "none"
            for atom, prob in zip(_atoms(worked.space, key), draws.mean(axis=(0, 1)), strict=True)
            if worked.posterior.variables.names.find([atom])[0] >= 0
        )  # fmt: skip
        print(
            f"  {_how(worked)}; NumPyro's Gibbs sampling {seconds:.1f} s of CPU, R-hat {rank:.3f}: "
            f"probabilities differ by at most {off:.3f}"
        )
        return
    mean, std, own_mean, own_std = ([] for _ in range(4))
    for key, draws in parts.items():
        flat = draws.reshape(-1, int(np.prod(draws.shape[2:], dtype=int)))
        mean += flat.mean(axis=0).tolist()
        std += flat.std(axis=0).tolist()
        for atom in _atoms(worked.space, key):
            found = worked.posterior.marginal(atom)
            own_mean.append(found.mean)
            own_std.append(found.std)
    off = np.abs(np.subtract(own_mean, mean)) / std
    ratio = np.abs(np.divide(own_std, std) - 1)
    print(
        f"  {_how(worked)}; NUTS {seconds:.1f} s of CPU, R-hat {rank:.3f}: means differ by at most "
        f"{off.max():.3f} deviations, deviations by {ratio.max():.1%}"
    )


def _atoms(space: dict[str, Any], predicate: str) -> list[str]:
    """Names of all atoms of a predicate, in the order of the simulated table."""
    if predicate == "noise":
        return ["noise"]
    table, column = {
        "Can": ("people", "person"),
        "Careful": ("people", "person"),
        "level": ("shops", "shop"),
        "minutes": ("segments", "segment"),
        "ability": ("students", "student"),
        "difficulty": ("questions", "question"),
        "slope": ("questions", "question"),
    }[predicate]
    return [f"{predicate}({constant})" for constant in space[table][column]]


def _shops(space: dict[str, Any]) -> Model:
    """Odd weeks summed out by hand."""
    shop, sales = space["weeks"].shop.factorize()[0], space["weeks"].sales.to_numpy()

    def model() -> None:
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        noise = numpyro.sample("noise", dist.Uniform(1.0, 100.0))
        level = numpyro.sample("level", dist.Normal(50.0, 10.0).expand([shop.max() + 1]))[shop]
        usual = dist.Normal(level, jnp.sqrt(noise)).log_prob(sales)
        odd = dist.Normal(level, jnp.sqrt(noise + 900.0)).log_prob(sales) - 2.2
        numpyro.factor("sales", jnp.logaddexp(usual, odd).sum())

    return model


def _skills(space: dict[str, Any]) -> Model:
    """With a number that nothing depends on, as NumPyro takes no model without any."""
    votes, teams, jobs = space["votes"], space["teams"], space["jobs"]
    place = space["people"].reset_index().set_index("person")["index"]
    voter, person = (place[votes[of]].to_numpy() for of in ("voter", "person"))
    member = place[teams.person].to_numpy()
    job = jobs.reset_index().set_index("job")["index"][teams.job].to_numpy()

    def model() -> None:
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        numpyro.sample("none", dist.Normal(0.0, 1.0))
        with numpyro.plate("people", len(place)):
            can = numpyro.sample("Can", dist.Bernoulli(0.3))
            careful = numpyro.sample("Careful", dist.Bernoulli(0.7))
        says = 0.5 + 0.4 * careful[voter] * (2 * can[person] - 1)
        numpyro.sample("says", dist.Bernoulli(says), obs=votes.says.to_numpy())
        anyone = jnp.zeros(len(jobs), dtype=can.dtype).at[job].max(can[member])
        numpyro.sample("done", dist.Bernoulli(0.1 + 0.8 * anyone), obs=jobs.done.to_numpy())

    return model


def _deliveries(space: dict[str, Any]) -> Model:
    """Slow drivers summed out by hand."""
    deliveries, uses, segments = space["deliveries"], space["uses"], space["segments"]
    driver, driver_names = deliveries.driver.factorize()
    minutes, of_delivery = deliveries.minutes.to_numpy(), uses.delivery.to_numpy()
    place = segments.index[segments.set_index("segment").index.get_indexer(uses.segment)].to_numpy()

    def model() -> None:
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        each = numpyro.sample("minutes", dist.Normal(6.0, 2.0).expand([len(segments)]))
        total = jnp.zeros(len(minutes)).at[of_delivery].add(each[place])
        states = [
            jnp.log(share) + jnp.zeros(len(driver_names)).at[driver].add(
                dist.Normal(total * factor, 4.0).log_prob(minutes)
            )
            for share, factor in ((0.8, 1.0), (0.2, 1.25))
        ]  # fmt: skip
        numpyro.factor("times", jnp.logaddexp(*states).sum())

    return model


def _abilities(space: dict[str, Any]) -> Model:
    answers = space["answers"]
    student, student_names = answers.student.factorize()
    question, question_names = answers.question.factorize()
    right = answers.right.to_numpy()

    def model() -> None:
        import numpyro
        from numpyro import distributions as dist

        each = [len(student_names)], [len(question_names)]
        ability = numpyro.sample("ability", dist.Normal(0.0, 1.0).expand(each[0]))
        difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 1.0).expand(each[1]))
        slope = numpyro.sample("slope", dist.Normal(1.0, 0.5).expand(each[1]))
        reach = slope[question] * (ability[student] - difficulty[question])
        numpyro.sample("right", dist.BernoulliLogits(reach), obs=right)

    return model


@dataclass(frozen=True, slots=True)
class Problem:
    """A script of the gallery, as it is measured."""

    model: Callable[[dict[str, Any]], Model]
    """NumPyro's model of it."""
    sizes: str = ""
    """Arguments of `simulate` after the seed."""
    num_draws: int = 1000
    """Of each chain of NumPyro: more where the smallest differences are to be seen."""
    has_states: bool = False
    """Its hidden variables are discrete: NumPyro draws them one by one."""


PROBLEMS = {
    "shops": Problem(_shops),
    "skills": Problem(_skills, num_draws=4000, has_states=True),
    "deliveries": Problem(_deliveries),
    "abilities": Problem(_abilities, ", 200, 40", 4000),
}
"""By the names of their scripts."""
