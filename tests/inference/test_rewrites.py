"""Rewrites of the graph before inference: the same answers, for every method."""

import numpy as np
import pytest

import hylift as hl
import oracle
from hard_models import hard_model
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference import BP, BVI, EPBP, NPVI, Exact, Gibbs, MaxWalkSAT, MeanField, Method
from hylift.inference.prepared import Prepared
from hylift.inference.started import started
from hylift.language.report import ModelWarning
from hylift.posterior import Mixture, Posterior
from hylift.posterior.mapped import MappedMixture

pytestmark = pytest.mark.filterwarnings("ignore:.*hard rules say that exactly one")

MODEL = """
    line = {0, 1}
    pump = {A, B, C}
    On(line, pump)
    Hot(line)
    flow(line): real
    On(l, A) v On(l, B) v On(l, C).
    !(On(l, p) ^ On(l, q))  where p != q.
    On(l, A) => Hot(l).
    0.3   On(l, A)
    0.5   On(l, p) <=> On(l+1, p)
    normal(flow(l) | 2*On(l, A) + On(l, B), 1)
"""
EVERYTHING = ("marginals", "logz", "map")


def grounded(text: str, **evidence: object) -> FactorGraph:
    """Of hard rules that tie the pumps of a line, which the language warns of."""
    with pytest.warns(ModelWarning, match="exactly one 'pump' holds"):
        return hl.ground(hl.parse(text), evidence)


@pytest.fixture(scope="module")
def graph() -> FactorGraph:
    return grounded(MODEL, **{"flow(0)": hl.Soft(2.0, 4.0)})


@pytest.fixture(scope="module")
def expected(graph: FactorGraph) -> oracle.Answer:
    return oracle.solve(graph)


@pytest.mark.parametrize(
    ("method", "atol"),
    [
        (Exact(), 1e-10),
        (BVI(3), 0.02),
        (NPVI(3), 0.05),
        (MeanField(), 0.2),
        (EPBP(), 0.02),
        (Gibbs(), 0.03),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_marginals_with_hard_clusters_are_near_the_exact_ones(
    method: Method, atol: float, graph: FactorGraph, expected: oracle.Answer
) -> None:
    found = hl.infer(graph, method, rewrite="hard clusters", tasks="marginals")

    for variable, probs in expected.probs.items():
        np.testing.assert_allclose(found.known_marginals()[variable].probs, probs, atol=atol)
    for variable, mean in expected.mean.items():
        assert found.known_marginals()[variable].mean == pytest.approx(mean, abs=3 * atol)


@pytest.mark.parametrize("method", [Exact(), BVI(3), EPBP(), Gibbs(), MaxWalkSAT()], ids=str)
def test_the_best_assignment_comes_back(
    method: Method, graph: FactorGraph, expected: oracle.Answer
) -> None:
    found = hl.infer(graph, method, rewrite="hard clusters", tasks="map").map()

    assert found.energy == pytest.approx(expected.map_energy, abs=1e-6)
    posterior = hl.infer(graph, Exact(), rewrite=False)
    assert posterior.energy(found) == pytest.approx(found.energy, abs=1e-9)


def test_log_z_and_expected_counts_of_exact_inference_stay(graph: FactorGraph) -> None:
    plain = hl.infer(graph, Exact(), rewrite=False)

    found = hl.infer(graph, Exact(), rewrite=("hard clusters",))

    assert found.log_partition is not None
    assert plain.log_partition is not None
    assert found.log_partition.value == pytest.approx(plain.log_partition.value, abs=1e-10)
    assert found.log_partition.kind == "exact"
    counts = [posterior.expected_counts()["expected"].to_numpy() for posterior in (plain, found)]
    np.testing.assert_allclose(counts[1], counts[0], atol=1e-9)


@pytest.mark.parametrize("method", [BVI(2), Gibbs(draws=200)], ids=str)
def test_joint_draws_satisfy_hard_rules(method: Method, graph: FactorGraph) -> None:
    found = hl.infer(graph, method, tasks="marginals")

    drawn = _draws(found, ["On(1,A)", "On(1,B)", "On(1,C)"])

    assert (drawn.sum(axis=1) == 1).all()
    counts = found.expected_counts()["expected"].to_numpy()
    np.testing.assert_allclose(counts[:3], 0.0, atol=1e-12)  # log-values of the hard rules


def _draws(posterior: Posterior, atoms: list[str]) -> np.ndarray:
    if posterior.draws is not None:
        return posterior.draws.of(posterior.variables.ids(atoms)).values[0]
    drawn = posterior.sample(200, seed=1, atoms=atoms)
    return np.stack([drawn[atom].to_numpy(zero_copy_only=False) == "true" for atom in atoms], 1)


def test_rules_between_the_members_of_two_clusters_make_no_loop() -> None:
    discrete = [line for line in MODEL.splitlines() if "flow" not in line]
    graph = grounded("\n".join(discrete))
    expected = oracle.solve(graph)

    found = hl.infer(graph, BP())

    assert found.log_partition is not None
    assert found.log_partition.kind == "exact"
    assert found.log_partition.value == pytest.approx(expected.log_z, abs=1e-9)
    for variable, probs in expected.probs.items():
        np.testing.assert_allclose(found.known_marginals()[variable].probs, probs, atol=1e-9)


def test_a_joint_question_about_a_cluster_is_answered_exactly(graph: FactorGraph) -> None:
    found = hl.infer(graph, BVI(1))

    probs = found.joint(["On(0,A)", "On(0,B)", "Hot(0)"]).probs()

    assert probs[1, 1].sum() == 0
    assert probs[1, 0, 0] == 0
    np.testing.assert_allclose(probs.sum(axis=(1, 2)), found.marginal("On(0,A)").probs, atol=1e-12)
    given = found.given({"On(0,A)": True})
    np.testing.assert_allclose(given.marginal("Hot(0)").probs, [0, 1], atol=1e-12)


def test_rewrites_can_be_chosen_and_switched_off(graph: FactorGraph) -> None:
    assert isinstance(hl.infer(graph, MeanField(), rewrite=False).mixture, Mixture)
    assert not isinstance(hl.infer(graph, MeanField()).mixture, Mixture)
    with pytest.raises(UnsupportedError, match=r"'hard cluster'.*hard clusters"):
        hl.infer(graph, MeanField(), rewrite=("hard cluster",))
    with pytest.raises(UnsupportedError, match="takes the graph as it is given, without rewrites"):
        hl.infer(graph, MeanField(), lift="coarse-to-fine", rewrite=("hard clusters",))


def test_a_posterior_with_clusters_is_a_start(graph: FactorGraph) -> None:
    first = hl.infer(graph, BVI(2))
    plain = hl.infer(graph, BVI(2), rewrite=False)

    again, other = (hl.infer(graph, BVI(2), start=start) for start in (first, plain))

    assert again.log_partition is not None
    assert first.log_partition is not None
    assert again.log_partition.value == pytest.approx(first.log_partition.value, abs=1e-4)
    assert isinstance(other.mixture, MappedMixture)
    assert hl.infer(graph, BVI(2), start=first, rewrite=False).mixture is not None


def test_a_start_without_clusters_has_their_members_independent(graph: FactorGraph) -> None:
    first = hl.infer(graph, NPVI(2), rewrite=False)
    whole = Prepared.of(graph)

    found = started(first, whole.rewritten(["hard clusters"]))

    assert isinstance(found.mixture, Mixture)
    assert first.mixture is not None
    member = first.variables.ids(["On(0,A)", "On(0,B)", "On(0,C)", "Hot(0)"])
    alone = [np.maximum(p, 1e-12) for _, p in first.mixture.state_tables(member)]
    states = [(0, 0, 1, 0), (0, 0, 1, 1), (0, 1, 0, 0), (0, 1, 0, 1), (1, 0, 0, 1)]
    expected = np.array(
        [np.prod([p[:, s] for p, s in zip(alone, state, strict=True)], 0) for state in states]
    )
    cluster = found.mixture.state_tables(found.variables.ids(["On(0,A)"]))[0][1]
    np.testing.assert_allclose(cluster.T, expected / expected.sum(axis=0), atol=1e-9)


ROOMS = """
    room = {{R1, ..., R{rooms}}}
    Heated(room)
    Broken(room)
    temp(room): real
    reading(room): real
    -1  Heated(r)
    -2  Broken(r)
    normal(temp(r) | 15 + 6*Heated(r), 4)
    normal(reading(r) | temp(r), 1 + 50*Broken(r))
"""


def rooms(*readings: float) -> FactorGraph:
    """Rooms without any link, each with a reading."""
    seen = {f"reading(R{1 + at})": value for at, value in enumerate(readings)}
    return hl.ground(hl.parse(ROOMS.format(rooms=len(readings))), seen)


@pytest.mark.parametrize(
    "readings", [(18.0,) * 6, (18.0, 21.0, 18.0, 21.0, 21.0, 3.0, 18.0), (20.0, 22.0, 22.0)]
)
def test_parts_that_look_alike_are_solved_once_with_the_same_answers(
    readings: tuple[float, ...],
) -> None:
    graph = rooms(*readings)
    plain = hl.infer(graph, Exact(), rewrite=False, tasks=EVERYTHING)

    found = hl.infer(graph, Exact(), tasks=EVERYTHING)

    assert found.solution.steps == 3 * len(set(readings))  # variables
    assert found.log_partition is not None
    assert plain.log_partition is not None
    assert found.log_partition.value == pytest.approx(plain.log_partition.value, abs=1e-10)
    assert found.log_partition.kind == "exact"
    assert plain.compare(found).max_l1 <= 1e-10
    assert found.map().energy == pytest.approx(plain.map().energy, abs=1e-10)
    assert found.energy(found.map()) == pytest.approx(found.map().energy, abs=1e-10)
    counts = [posterior.expected_counts()["expected"].to_numpy() for posterior in (plain, found)]
    np.testing.assert_allclose(counts[1], counts[0], atol=1e-9)


def test_default_selection_and_clusters_go_with_parts() -> None:
    model = hl.parse("""
        thing = {A, B, C, D, E}
        P(thing)
        Q(thing)
        P(x) v Q(x).
        0.7 P(x)
        0.4 P(A) ^ Q(A)
    """)
    graph = hl.ground(model)
    expected = oracle.solve(graph)

    for method, rewrite in ((None, None), (Exact(), ("hard clusters", "parts"))):
        found = hl.infer(graph, method, rewrite=rewrite, tasks=EVERYTHING)

        assert found.log_partition is not None
        assert found.log_partition.value == pytest.approx(expected.log_z, abs=1e-10)
        assert found.map().energy == pytest.approx(expected.map_energy, abs=1e-10)
        for variable, probs in expected.probs.items():
            np.testing.assert_allclose(found.known_marginals()[variable].probs, probs, atol=1e-10)


@pytest.mark.parametrize(
    "method", [BVI(2), NPVI(2), MeanField(), EPBP(), Gibbs(draws=500)], ids=str
)
def test_no_state_of_random_hard_rules_is_missed_or_invented(method: Method) -> None:
    for seed in range(30):
        graph = hard_model(np.random.default_rng(seed))
        try:
            exact = hl.infer(graph, Exact(), rewrite=False)
        except ImpossibleEvidenceError:
            with pytest.raises(ImpossibleEvidenceError):
                hl.infer(graph, method, tasks="marginals")
            continue

        found = hl.infer(graph, method, tasks="marginals")

        assert np.isfinite(exact.compare(found).max_kl)


def test_contradicting_rules_are_impossible_for_every_method() -> None:
    model = hl.parse("""
        thing = {A, B, C}
        P(thing)
        !(P(x) <=> P(y))  where x != y.
        0.3 P(x)
    """)
    graph = hl.ground(model)

    for method in (BVI(2), BP(), Gibbs()):
        with pytest.raises(ImpossibleEvidenceError, match="contradict each other"):
            hl.infer(graph, method, tasks="map")


def test_all_variables_may_be_determined_by_rules() -> None:
    graph = hl.ground(hl.parse("thing = {A, B}\nP(thing)\nP(x).\n0.5 P(x)"))

    found = hl.infer(graph, BVI(2), tasks=EVERYTHING)

    assert found.marginal("P(A)").probs.tolist() == [0.0, 1.0]
    assert found.map()["P(B)"] == "true"
    assert found.log_partition is not None
    assert found.log_partition.value == pytest.approx(1.0)


def test_explanations_name_the_rewrites(graph: FactorGraph) -> None:
    explanation = hl.lift(graph).explain()

    summary = "8 variables in 2 clusters of up to 5 joint states"
    assert explanation.rewrites == {"hard clusters": summary}
    assert f"Rewritten before inference, hard clusters: {summary}." in " ".join(
        str(explanation).split()
    )
    assert explanation.to_dict()["rewrites"] == explanation.rewrites
