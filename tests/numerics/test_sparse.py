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


@pytest.mark.parametrize(("seed", "size", "share"), [(0, 40, 0.1), (1, 60, 0.4), (2, 25, 1.0)])
def test_the_order_and_the_cost_are_those_of_the_factors(
    seed: int, size: int, share: float
) -> None:
    matrix = sp.csc_array(dominant(seed, size, share))

    step = minimum_degree(matrix)
    products = num_products(matrix, step, 10**9)

    found = splu(matrix, **ORDER)
    below = np.diff(found.L.tocsc().indptr) - 1
    np.testing.assert_array_equal(step, found.perm_c)
    assert products == (below * (below + 1)).sum()


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
