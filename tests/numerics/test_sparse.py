"""Factorisations of sparse matrices: their order, their cost, and what is left undone."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from hylift.numerics import sparse
from hylift.numerics.sparse import ORDER, SymmetricFactors, minimum_degree, num_products


def dominant(seed: int, size: int, share: float) -> NDArray[np.float64]:
    """A random symmetric matrix that is positive definite."""
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.random((size, size)) < share, 1)
    linked = -(pairs | pairs.T).astype(np.float64)
    return linked + np.diag(1.0 - linked.sum(axis=1))


def grid(side: int) -> sp.csc_array:
    """The pattern of a square grid."""
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    own = sp.eye_array(side)
    return sp.csc_array(sp.kron(line, own) + sp.kron(own, line))


@pytest.mark.parametrize(("seed", "size", "share"), [(0, 40, 0.1), (1, 60, 0.4), (2, 25, 1.0)])
def test_the_cost_of_an_order_is_that_of_its_factors(seed: int, size: int, share: float) -> None:
    matrix = sp.csc_array(dominant(seed, size, share))

    step = minimum_degree(matrix)
    products = num_products(matrix, step, 10**9)

    order = np.argsort(step)
    found = splu(matrix[order][:, order], **{**ORDER, "permc_spec": "NATURAL"})
    below = np.diff(found.L.tocsc().indptr) - 1
    assert products == (below * (below + 1)).sum()


@pytest.mark.parametrize(
    "matrix",
    [
        *(
            sp.csc_array(dominant(seed, 300, share))
            for seed, share in enumerate((0.004, 0.01, 0.1))
        ),
        grid(20),
        sp.csc_array(np.triu(np.tril(np.ones((200, 200)), 3), -3) + np.eye(200)),
    ],
)
def test_the_order_is_about_as_good_as_that_of_superlu(matrix: sp.csc_array) -> None:
    step = minimum_degree(matrix)

    superlu = splu(matrix + 100 * sp.eye_array(matrix.shape[0]).tocsc(), **ORDER).perm_c
    np.testing.assert_array_equal(np.sort(step), np.arange(len(step)))
    assert num_products(matrix, step, 10**9) <= 1.3 * num_products(matrix, superlu, 10**9)


def test_rows_of_very_many_entries_come_last() -> None:
    pattern = sp.diags_array(np.ones(300)).tolil()
    pattern[250, :] = pattern[:, 250] = 1.0

    step = minimum_degree(pattern.tocsc())

    assert step[250] == 299


@pytest.mark.parametrize("seed", range(20))
def test_every_row_has_a_place_in_the_order(seed: int) -> None:
    """Also where lists of neighbours need room, are merged, or are empty."""
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(1, 60)), int(rng.integers(0, 300))
    at = rng.integers(size, size=(2, count))
    pattern = sp.coo_array((np.ones(2 * count), (at.ravel(), at[::-1].ravel())), (size, size))

    step = minimum_degree(pattern.tocsc())

    np.testing.assert_array_equal(np.sort(step), np.arange(size))


def test_counting_ends_where_there_are_too_many_products() -> None:
    matrix = sp.csc_array(dominant(0, 60, 0.5))
    step = minimum_degree(matrix)

    found = num_products(matrix, step, 100)

    assert 100 < found < num_products(matrix, step, 10**9)


def test_what_takes_too_long_is_not_factorised_but_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, right = dominant(3, 80, 0.2), np.random.default_rng(0).normal(size=80)
    monkeypatch.setattr(sparse, "ALWAYS_FACTORISED", 10)
    monkeypatch.setattr(sparse, "MOST_PRODUCTS", 100)

    factors = SymmetricFactors.of(sp.csr_array(matrix))
    found = SymmetricFactors.solution(sp.csr_array(matrix), right)

    assert factors is None
    assert found is not None
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), atol=1e-8)
