"""Joint distributions, conditionals, draws and questions in words, of every method."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import hylift as hl
from hylift.errors import ModelError, UnknownNameError, UnsupportedError
from hylift.inference.capabilities import METHODS
from hylift.posterior import Expectation, Posterior

MODEL = """
    thing = {A, B}
    Hot(thing)
    Kind(thing, kind!)
    kind = {red, green}
    level(thing): real
    0.5   Hot(x)
    0.8   Hot(A) ^ Hot(B)
    1     Hot(x) ^ Kind(x, "red")
    normal(level(x) | 2*Hot(x), 1)
    -0.3  (level(A) - level(B))^2
    0.6   Hot(A) * level(B)
"""


@cache
def graph() -> hl.FactorGraph:
    return hl.ground(hl.parse(MODEL))


@cache
def answer(method: str) -> Posterior:
    settings = {"gibbs": hl.Gibbs(draws=4000), "smc": hl.SMC(particles=1000)}
    return hl.infer(graph(), settings.get(method, method), seed=3, check=False)


class Truth:
    """By enumeration of the four states of Hot, with dense Gaussian algebra."""

    def __init__(self) -> None:
        J = np.array([[1.6, -0.6], [-0.6, 1.6]])
        self.cov = np.linalg.inv(J)
        self.states = np.array(list(product((0, 1), repeat=2)))
        kinds = np.log(1 + np.exp(self.states)).sum(axis=1)  # Kind summed out
        h = 2 * self.states + np.outer(self.states[:, 0], [0.0, 0.6])
        self.means = h @ self.cov
        logs = 0.5 * self.states.sum(axis=1) + 0.8 * self.states.prod(axis=1) + kinds
        logs = logs + 0.5 * (h * self.means).sum(axis=1) - 2 * self.states.sum(axis=1)
        self.weights = np.exp(logs - special.logsumexp(logs))

    @property
    def hot(self) -> np.ndarray:
        return self.weights.reshape(2, 2)

    @property
    def mean(self) -> np.ndarray:
        return self.weights @ self.means

    @property
    def covariance(self) -> np.ndarray:
        off = self.means - self.mean
        return self.cov + (off * self.weights[:, None]).T @ off

    def larger(self, where: np.ndarray | None = None) -> float:
        """P(level(A) > level(B)), and some states where these are given."""
        some = np.ones(4, dtype=bool) if where is None else where
        gap = (self.means[:, 0] - self.means[:, 1]) / np.sqrt(2 * (self.cov[0, 0] - self.cov[0, 1]))
        return float((self.weights * special.ndtr(gap))[some].sum())


TRUTH = Truth()
JOINT = {"exact": 0.0, "gibbs": 0.0, "smc": 0.0, "bvi": 0.06, "npvi": 0.25, "mean-field": 0.35}
"""Methods with joint distributions, and how far they may be off in probabilities."""


def near(found: Expectation, truth: float, slack: float) -> bool:
    return abs(found.value - truth) <= 4.5 * found.error + slack


@pytest.mark.parametrize("method", JOINT)
def test_joint_distributions_are_those_of_enumeration(method: str) -> None:
    posterior, slack = answer(method), JOINT[method]
    allowed = 0.03 + slack

    hot = posterior.joint(["Hot(A)", "Hot(B)"])
    level = posterior.joint(["level(A)", "level(B)"])

    np.testing.assert_allclose(hot.probs(), TRUTH.hot, atol=allowed)
    assert hot.table().column_names == ["Hot(A)", "Hot(B)", "prob"]
    assert hot.pdf({"Hot(A)": True, "Hot(B)": "false"}) == pytest.approx(hot.probs()[1, 0])
    np.testing.assert_allclose(level.mean, TRUTH.mean, atol=2 * allowed)
    np.testing.assert_allclose(level.cov, TRUTH.covariance, atol=0.1 + 4 * slack)


@pytest.mark.parametrize("method", JOINT)
def test_questions_in_words_are_answered_with_their_error(method: str) -> None:
    posterior, slack = answer(method), JOINT[method]
    is_hot = TRUTH.states[:, 0] == 1

    larger = posterior.prob("level(A) > level(B)", seed=1)
    both = posterior.prob("Hot(A) ^ level(A) > level(B)", seed=1)
    gap = posterior.expect("level(A) - 2*level(B)", seed=1)
    same = posterior.expect(lambda a, b: a - 2 * b, ["level(A)", "level(B)"], seed=1)

    assert near(larger, TRUTH.larger(), slack)
    assert near(both, TRUTH.larger(is_hot), slack)
    assert near(gap, float(TRUTH.mean @ [1, -2]), 3 * slack)
    assert abs(gap.value - same.value) <= 4.5 * (gap.error + same.error)
    assert larger.method == "sampling"
    assert 0 < larger.error < 0.03


@pytest.mark.parametrize("method", JOINT)
def test_draws_of_pairs_have_their_correlation(method: str) -> None:
    table = answer(method).sample(20_000, seed=5, atoms=["level(A)", "Hot(A)", "level(B)"])

    assert table.column_names == ["level(A)", "Hot(A)", "level(B)"]
    values = np.array([table["level(A)"], table["level(B)"]])
    np.testing.assert_allclose(np.cov(values), TRUTH.covariance, atol=0.1 + 4 * JOINT[method])
    assert table.equals(answer(method).sample(20_000, seed=5, atoms=table.column_names))


@pytest.mark.parametrize("method", JOINT)
def test_what_is_given_changes_the_others(method: str) -> None:
    posterior, is_hot = answer(method), TRUTH.states[:, 0] == 1
    expected = TRUTH.hot[1, 1] / TRUTH.hot[1].sum()

    given = posterior.given({"Hot(A)": True})

    assert given.marginal("Hot(B)").prob("true") == pytest.approx(
        expected, abs=0.03 + JOINT[method]
    )
    truth = TRUTH.larger(is_hot) / TRUTH.weights[is_hot].sum()
    assert near(given.prob("level(A) > level(B)", seed=2), truth, 0.01 + JOINT[method])
    assert given.log_partition is None
    assert given.marginal("Hot(A)").prob("true") == 1.0


def test_all_methods_are_asked() -> None:
    others = {"bp", "gabp", "epbp", "ep", "maxwalksat", "mini-buckets"}

    assert {info.key for info in METHODS} == JOINT.keys() | others


@pytest.mark.parametrize("method", ["epbp", "ep"])
def test_methods_without_a_joint_distribution_say_so(method: str) -> None:
    posterior = answer(method)

    for question, ask in {
        "joint": lambda: posterior.joint(["Hot(A)", "Hot(B)"]),
        "sample": lambda: posterior.sample(3, seed=0),
        "prob": lambda: posterior.prob("level(A) > level(B) ^ Hot(A)"),
    }.items():
        with pytest.raises(UnsupportedError) as refusal:
            ask()
        name = posterior.solution.method
        which = "reals only: leave discrete atoms out" if name == "EP" else "each variable only"
        assert str(refusal.value) == (
            f"{question}(…) needs a joint distribution, and {name} finds that of {which}: "
            "infer with Exact(), Gibbs(), SMC() or BVI()"
        )
    # Of one variable there is an answer, and given values another run.
    assert posterior.prob("Hot(A)") == Expectation(
        pytest.approx(posterior.marginal("Hot(A)").prob("true")), 0.0, "sum"
    )
    high = posterior.prob("level(A) > 1")
    assert high.value == pytest.approx(1 - posterior.marginal("level(A)").cdf(1.0), abs=0.01)
    given = posterior.given({"level(A)": 0.5})
    direct = hl.infer(graph().observe({"level(A)": 0.5}), method, seed=3, check=False)
    assert given.marginals().equals(direct.marginals())


def test_reals_of_ep_depend_on_each_other_as_in_its_joint_gaussian() -> None:
    posterior = answer("ep")

    joint = posterior.joint("level", seed=1)
    larger = posterior.prob("level(A) > level(B)", seed=1)

    marginals = [posterior.marginal(f"level({thing})") for thing in "AB"]
    assert joint.mean == pytest.approx([one.mean for one in marginals], abs=1e-3)
    assert np.diag(joint.cov) == pytest.approx([one.var for one in marginals], rel=1e-3)
    assert joint.cov == pytest.approx(TRUTH.covariance, abs=0.1)  # variances of EP are off by .06
    assert near(larger, TRUTH.larger(), 0.02)
    assert posterior.sample(7, seed=2, atoms="level").num_rows == 7


def test_the_joint_of_ep_is_exact_where_all_is_gaussian(tmp_path: Path) -> None:
    model = hl.parse("""
        level(day): real
        normal(level(0) | 3, 1)
        normal(level(d+1) | 0.8*level(d), 0.5)
    """)
    days = hl.ground(model, {"day": [str(day) for day in range(6)], "level(5)": 2.0})
    posterior, exact = hl.infer(days, "ep"), hl.infer(days, "exact")
    posterior.save(tmp_path / "ep.npz")

    found, expected = (each.joint("level", seed=1) for each in (posterior, exact))

    assert found.mean == pytest.approx(expected.mean, abs=0.05)
    assert found.cov == pytest.approx(expected.cov, abs=0.05)
    assert np.abs(np.asarray(found.corr) - np.eye(5)).max() > 0.4
    with pytest.raises(UnsupportedError, match="is not saved with an EP posterior"):
        Posterior.load(tmp_path / "ep.npz").prob("level(0) > level(1)")


# Exact posteriors


def test_an_exact_conditional_is_the_answer_for_the_evidence() -> None:
    given = answer("exact").given({"level(A)": 0.5, "Kind(B)": "red"})

    direct = hl.infer(graph().observe({"level(A)": 0.5, "Kind(B)": "red"}))
    assert given.marginals().equals(direct.marginals())
    assert given.trust.verdict == "certified"


def moments_off(posterior: Posterior, size: int = 20_000) -> float:
    """Largest error of the first two moments of draws, in standard errors."""
    assert posterior.target is not None
    assert posterior.target.draw is not None
    draws = posterior.target.draw(size, np.random.default_rng(0))
    off = []
    for column, variable in zip(draws.T, np.flatnonzero(~posterior.observed), strict=True):
        found = posterior.known_marginals()[int(variable)]
        is_real = hasattr(found, "std")
        mean = found.mean if is_real else found.probs @ np.arange(len(found.probs))
        var = found.var if is_real else found.probs @ np.arange(len(found.probs)) ** 2 - mean**2
        if var < 1e-3 and not is_real:  # too rare for a normal approximation
            continue
        squares = (column - mean) ** 2
        off.append((column.mean() - mean) / np.sqrt(var / size))
        if squares.std() > 0:
            off.append((squares.mean() - var) / (squares.std() / np.sqrt(size)))
    return float(np.abs(off).max())


@pytest.mark.parametrize("rewrite", [None, False])
def test_draws_of_exchangeable_atoms_have_their_marginals(rewrite: bool | None) -> None:
    text = """
        n = {0, ..., 11}
        R(n)
        S
        x(n): real
        0.3   R(i) ^ S
        -0.1  R(i) ^ R(j)
        normal(x(i) | 2*R(i), 1)
        -0.02 (x(i) - x(j))^2
    """
    found = hl.infer(hl.ground(hl.parse(text)), hl.Exact(), rewrite=rewrite)

    assert moments_off(found) < 4.5


def test_draws_of_copies_of_a_part_are_independent() -> None:
    text = "n = {0, ..., 29}\nR(n)\nx(n): real\n0.4 R(i)\nnormal(x(i) | 2*R(i), 1)\n"
    found = hl.infer(hl.ground(hl.parse(text)), hl.Exact())

    total = found.expect(lambda *x: np.sum(x, axis=0), "x")

    prob = 1 / (1 + np.exp(-0.4))
    std = np.sqrt(30 * (1 + 4 * prob * (1 - prob)))
    assert near(total, 60 * prob, 0.0)
    assert total.error == pytest.approx(std / 100, rel=0.05)  # of 10,000 draws


def test_draws_of_reals_on_lattices_have_their_marginals() -> None:
    text = """
        sensor = {0, ..., 39}
        Faulty(sensor)
        warmth: real
        reading(sensor): real
        -2  Faulty(s)
        normal(warmth | 20, 9)
        normal(reading(s) | warmth*!Faulty(s), 1 + 400*Faulty(s))
    """
    seen = {f"reading({i})": 18.0 + (i * 37 % 11) - 30.0 * (i % 9 == 0) for i in range(40)}
    found = hl.infer(hl.ground(hl.parse(text), seen))

    assert "lattices" in " ".join(found.solution.notes)
    assert moments_off(found) < 4.5


def test_draws_of_reals_on_nodes_have_their_quantiles() -> None:
    text = """
        n = {0, ..., 9}
        m: real
        v: real[0.01, 10]
        y(n): real
        normal(m | 0, 4)
        normal(v | 1, 4)
        normal(y(i) | m, v)
    """
    found = hl.infer(hl.ground(hl.parse(text), {f"y({i})": float(i) for i in range(10)}))
    levels = np.linspace(0.05, 0.95, 19)

    drawn = found.sample(40_000, seed=1)

    for name in ("m", "v"):
        below = np.array(found.marginal(name).cdf(np.quantile(drawn[name].to_numpy(), levels)))
        np.testing.assert_allclose(below, levels, atol=0.012)  # 4.5 errors, and the nodes


def test_exact_draws_go_to_xarray_together() -> None:
    data = answer("exact").to_xarray(["Hot", "level"], draws=4000, seed=2)

    assert data.attrs["samples"] == "independent draws"
    values = data["level"].to_numpy().reshape(-1, 2)
    np.testing.assert_allclose(np.cov(values.T), TRUTH.covariance, atol=0.15)


def test_a_loaded_exact_posterior_needs_its_model(tmp_path: Path) -> None:
    answer("exact").save(tmp_path / "exact.npz")
    loaded = Posterior.load(tmp_path / "exact.npz")

    with pytest.raises(UnsupportedError) as joint:
        loaded.joint(["Hot(A)", "Hot(B)"])
    with pytest.raises(UnsupportedError) as given:
        loaded.given({"Hot(A)": True})

    assert str(joint.value) == (
        "joint(…) needs the model, which is not saved with an exact posterior: infer again"
    )
    assert str(given.value) == (
        "given(…) needs the model, which is not saved with a posterior: observe the values and "
        "infer again"
    )
    assert loaded.prob("Hot(A)").value == pytest.approx(TRUTH.hot[1].sum(), abs=1e-12)


def test_the_best_assignment_alone_has_no_joint_distribution() -> None:
    found = hl.infer(graph(), "exact", tasks="map")

    for ask in (lambda: found.joint(["Hot(A)", "Hot(B)"]), lambda: found.given({"Hot(A)": True})):
        with pytest.raises(UnsupportedError, match=r"run infer.* with 'marginals' among the tasks"):
            ask()


def test_loaded_draws_still_answer(tmp_path: Path) -> None:
    answer("gibbs").save(tmp_path / "gibbs.npz")

    loaded = Posterior.load(tmp_path / "gibbs.npz")

    question = "level(A) > level(B)"
    assert loaded.prob(question) == answer("gibbs").prob(question)


def test_draws_have_no_density_of_reals() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        answer("gibbs").joint(["level(A)", "Hot(A)"]).pdf({"level(A)": 0.0, "Hot(A)": True})

    assert str(refusal.value) == (
        "'level(A)' is real, and draws have no density: use mean, cov, sample(…) or "
        "expect(…): or infer with BVI()"
    )


# Words


def test_few_discrete_atoms_are_summed_exactly() -> None:
    found = answer("exact").prob("Hot(A) ^ !Hot(B) v Kind(B, red)")

    red = np.e ** TRUTH.states[:, 1] / (1 + np.e ** TRUTH.states[:, 1])
    is_true = np.where((TRUTH.states == (1, 0)).all(axis=1), 1.0, red)
    assert (found.method, found.error) == ("sum", 0.0)
    assert found.value == pytest.approx(TRUTH.weights @ is_true, abs=1e-10)


def test_many_discrete_atoms_are_drawn() -> None:
    text = "n = {0, ..., 29}\nR(n)\n0.4 R(i)\n-0.1 R(i) ^ R(j)\n"
    found = hl.infer(hl.ground(hl.parse(text)))

    some = found.prob(" v ".join(f"R({i})" for i in range(6)))

    assert some.method == "sampling"
    draws = found.sample(10_000, seed=9, atoms=[f"R({i})" for i in range(6)]).to_pandas()
    assert near(some, (draws == "true").any(axis=1).mean(), 0.02)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hot(A)", TRUTH.hot[1].sum()),
        ("!Hot(A) v Hot(B)", 1 - TRUTH.hot[1, 0]),
        ("Hot(A) <=> Hot(B)", TRUTH.hot[0, 0] + TRUTH.hot[1, 1]),
        ("Kind(A, red)", 0.5 + TRUTH.hot[1].sum() * (np.e / (1 + np.e) - 0.5)),
        ("level(A) >= 1 ^ level(A) < 1", 0.0),
        ("abs(level(A)) >= 0", 1.0),
    ],
)
def test_formulas_are_those_of_the_language(text: str, expected: float) -> None:
    assert near(answer("exact").prob(text), expected, 1e-12)


def test_observed_atoms_have_their_values() -> None:
    found = hl.infer(graph().observe({"level(A)": 0.5, "Hot(B)": True}))

    assert found.prob("level(A) > 0.4 ^ Hot(B)") == Expectation(
        1.0, pytest.approx(1e-4), "sampling"
    )
    assert found.prob("level(A) > 0.4").value == 1.0
    assert found.prob("!Hot(B)").value == 0.0


def test_names_without_arguments_and_with_spaces() -> None:
    model = "Rain\nlevel(shop): real\nx: real\n1 Rain\nnormal(x | 1, 1)\nnormal(level(s) | x, 1)\n"
    found = hl.infer(hl.ground(hl.parse(model), {'level("Shop 1")': 2.0, "shop": ["b-2"]}))

    assert near(found.prob("x > 1"), 1 - special.ndtr((1 - 1.5) / np.sqrt(0.5)), 0.0)
    assert found.prob("Rain").value == pytest.approx(1 / (1 + np.exp(-1)))
    assert 0.2 < found.prob('level("Shop 1") > level("b-2")').value < 0.9


@pytest.mark.parametrize(
    ("bare", "quoted"),
    [
        ("level(Shop 1) > level(b-2) + 1", 'level("Shop 1") > level("b-2") + 1'),
        ("Open(2024-03-01) v level(Ö (w)) > 0", 'Open("2024-03-01") v level("Ö (w)") > 0'),
        ("Kind(Shop 1, dark red) ^ !Open(2024-03-01)",
         'Kind("Shop 1", "dark red") ^ !Open("2024-03-01")'),
        ("level(c, d) > level(Shop 1)", 'level("c, d") > level("Shop 1")'),
        ('level("Ö (w)") > level(Shop 1)', 'level("Ö (w)") > level("Shop 1")'),
    ],
)  # fmt: skip
def test_names_of_atoms_need_no_quotes(bare: str, quoted: str) -> None:
    model = hl.parse("""
        Open(day)
        Kind(shop, kind!)
        level(shop): real
        0.5 Open(d)
        0.3 Kind(s, +k)
        normal(level(s) | 1, 1)
    """)
    constants = {"shop": ["Shop 1", "b-2", "Ö (w)", "c, d"], "day": ["2024-03-01"]}
    found = hl.infer(hl.ground(model, {**constants, "kind": ["green", "dark red"]}))

    assert found.prob(bare) == found.prob(quoted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level(A) - level(B)", "is a number, and has no probability: compare it, or use expect"),
        ("1.5 Hot(A)", "a question is a formula alone, without weight, condition and full stop"),
        ("Hot(A).", "a question is a formula alone, without weight, condition and full stop"),
        ("EXIST x Hot(x)", "a question names its atoms, and has no quantifiers and functions"),
        ("1 < 2", "is about no atom of this posterior"),
        ("Kind(A) ^ Hot(A)", r"'Kind\(\"A\"\)' has the states red, green: ask for one of them"),
        ("x: real", "a question is one formula or term, not 'x: real'"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        answer("exact").prob(text)


def test_unknown_words_are_named() -> None:
    posterior = answer("exact")

    with pytest.raises(UnknownNameError, match=r"Did you mean 'level'"):
        posterior.prob("levl(A) > 1")
    with pytest.raises(ModelError, match="<question>:1:"):
        posterior.prob("level(A) >")
    with pytest.raises(ModelError, match=r"expected .* after 'A', not 'nobody'"):
        posterior.prob("level(A nobody) > 1")
    with pytest.raises(UnsupportedError, match="a question is a text such as"):
        posterior.prob(3)
    with pytest.raises(UnsupportedError, match="a term names its atoms itself"):
        posterior.expect("level(A)", ["level(A)"])
    with pytest.raises(UnsupportedError, match="needs the atoms that it is given"):
        posterior.expect(abs)
    with pytest.raises(UnsupportedError, match="is undefined at some values of its atoms"):
        posterior.expect("log(level(A))")


@pytest.mark.parametrize("method", ["gibbs", "smc"])
@pytest.mark.parametrize("question", ["level(A) > 0.5", "Hot(A)"])
def test_the_error_of_a_question_about_one_atom_counts_the_draws_of_the_run(
    method: str, question: str
) -> None:
    posterior = answer(method)
    alike = question.replace("(A)", "(B)")

    one = posterior.prob(question)
    several = posterior.prob(f"({question}) ^ ({alike})")

    assert one.error > 0.3 * several.error
