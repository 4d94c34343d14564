"""Mixtures with variables that are functions of others, beside enumeration."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from hylift.components import Layout
from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import Names, Variables, boolean, categorical, real
from hylift.posterior.joint import JointDensity
from hylift.posterior.mapped import MappedMixture
from hylift.posterior.mixture import Mixture
from hylift.rewrite.rewritten import StateMap

DOMAINS = [boolean, categorical(3), boolean, real, boolean, categorical(2)]
"""a and b are functions of the first variable inside, d of none, e and f of the last."""
TABLES = {0: [0, 0, 1, 1], 1: [0, 2, 1, 2], 4: [1, 0, 1], 5: [1, 1, 0]}
INSIDE = {0: 0, 1: 0, 3: 1, 4: 2, 5: 2}
KNOWN = {2: 1}


@pytest.fixture
def mapped() -> MappedMixture:
    rng = np.random.default_rng(3)
    inner = Variables.of([categorical(4), real, categorical(3)], Names.numbered(3))
    layout = Layout.of(inner, np.zeros(3, dtype=bool))
    entries = rng.uniform(0.1, 1.0, (layout.num_entries, 2))
    for at in (slice(0, 4), slice(6, 9)):
        entries[at] /= entries[at].sum(axis=0)
    mixture = Mixture(
        np.array([0.3, 0.7]), layout, entries, np.arange(3, dtype=np.int32), np.arange(3)
    )
    states, table = [], np.full(6, -1)
    for at, own in (*TABLES.items(), *((at, [state]) for at, state in KNOWN.items())):
        table[at] = len(states)
        states += own
    variable = np.array([INSIDE.get(at, -1) for at in range(6)], dtype=np.int32)
    num_states = np.array([domain.num_states for domain in DOMAINS], dtype=np.int32)
    back = StateMap(variable, table, np.array(states, dtype=np.int32))
    return MappedMixture(mixture, back, num_states, np.arange(6))


def enumerated(mapped: MappedMixture) -> np.ndarray:
    """(component, states of a, b, d, e, f): probabilities, one joint state inside at a time."""
    total = np.zeros((2, 2, 3, 2, 2, 2))
    entries = mapped.inner.entries
    for first, last in itertools.product(range(4), range(3)):
        at = (TABLES[0][first], TABLES[1][first], KNOWN[2], TABLES[4][last], TABLES[5][last])
        total[(slice(None), *at)] += entries[first] * entries[6 + last]
    return total


def test_probabilities_of_joint_states_are_sums_over_the_states_inside(
    mapped: MappedMixture,
) -> None:
    expected = np.einsum("kabdef,k->fbade", enumerated(mapped), mapped.weights)
    ids = np.array([5, 1, 0, 2, 4])
    domains = tuple(DOMAINS[at] for at in ids)
    joint = JointDensity(tuple("fbade"), domains, ids, np.full(5, np.nan), mapped.of(np.sort(ids)))

    np.testing.assert_allclose(joint.probs(), expected, atol=1e-14)
    states = np.array(list(itertools.product(range(2), range(3), range(2), range(2), range(2))))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            mapped.log_density(ids, states.astype(float)), np.log(expected.ravel()), atol=1e-12
        )


def test_given_values_is_the_conditional_distribution(mapped: MappedMixture) -> None:
    whole = np.einsum("kabdef,k->abdef", enumerated(mapped), mapped.weights)
    expected = whole[:, 2, :, :, 0] / whole[:, 2, :, :, 0].sum()

    found = mapped.given(np.array([1, 5]), np.array([2.0, 0.0]))

    assert found.hidden.tolist() == [0, 2, 3, 4]
    for at in itertools.product(range(2), range(2), range(2)):
        log_q = found.log_density(np.array([0, 2, 4]), np.array([at], dtype=float))
        assert np.exp(log_q[0]) == pytest.approx(expected[at], abs=1e-14)
    with pytest.raises(ImpossibleEvidenceError):
        mapped.given(np.array([0, 1]), np.array([1.0, 0.0]))
    with pytest.raises(ImpossibleEvidenceError):
        mapped.given(np.array([2]), np.array([0.0]))


def test_marginals_draws_modes_and_expectations_agree(mapped: MappedMixture) -> None:
    whole = np.einsum("kabdef,k->abdef", enumerated(mapped), mapped.weights)
    variables = Variables.of(DOMAINS, Names.numbered(6))

    marginals = mapped.marginals(variables)
    drawn = mapped.sample(40_000, np.random.default_rng(0), np.array([0, 1, 4]))
    mean = mapped.expect(lambda a, b, e: a * b * (1 + e), np.array([0, 1, 4]))

    np.testing.assert_allclose(marginals[1].probs, whole.sum(axis=(0, 2, 3, 4)), atol=1e-14)
    np.testing.assert_allclose(marginals[2].probs, [0.0, 1.0], atol=1e-14)
    both = whole.sum(axis=(2, 4))
    a, b, e = np.ix_(range(2), range(3), range(2))
    assert mean.value == pytest.approx(float((both * a * b * (1 + e)).sum()), abs=1e-12)
    # A share of 40,000 draws is off by 0.0025 at most in one of three cases.
    share = (drawn[:, 0] * (drawn[:, 1] == 2)).mean()
    assert share == pytest.approx(both[1, 2].sum(), abs=0.01)
    for values in (mapped.mode()[0], *mapped.component_modes()):
        assert (values[0], values[1]) in list(zip(TABLES[0], TABLES[1], strict=True))
    modes = [whole.sum(axis=tuple(x for x in range(5) if x != at)).argmax() for at in range(5)]
    assert mapped.marginal_modes()[[0, 1, 2, 4, 5]].tolist() == modes


def test_wrong_tables_are_refused(mapped: MappedMixture) -> None:
    back = mapped.map
    wrong = StateMap(back.variable, back.table, np.full(len(back.states), 7, dtype=np.int32))

    with pytest.raises(ModelError, match="a state that does not exist"):
        MappedMixture(mapped.inner, wrong, mapped.num_states, mapped.hidden)


def test_a_posterior_with_clusters_can_be_saved_and_asked_again(tmp_path: Path) -> None:
    model = hl.parse("""
        thing = {A, B, C}
        P(thing)
        Q(thing)
        P(x) v Q(x).
        0.7 P(x)
        0.4 P(A) ^ Q(B)
    """)
    posterior = hl.infer(hl.ground(model), hl.BVI(2))
    posterior.save(tmp_path / "found.npz")

    loaded = hl.Posterior.load(tmp_path / "found.npz")

    atoms = ["P(A)", "Q(A)", "Q(B)"]
    assert isinstance(loaded.mixture, MappedMixture)
    np.testing.assert_array_equal(loaded.joint(atoms).probs(), posterior.joint(atoms).probs())
    assert loaded.joint(atoms).probs()[0, 0].sum() == 0.0
