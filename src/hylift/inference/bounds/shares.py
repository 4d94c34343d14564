"""Quadratics about a centre of each real, and shares of curvature that make replicas proper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from hylift.errors import IntractableError
from hylift.graph import FactorGroup, Variables
from hylift.inference.exact.elimination import FloatArray, Ids, Ids32
from hylift.numerics.sparse import SymmetricFactors, connected, sum_of_blocks
from hylift.potentials.base import QuadraticForm
from hylift.proper.quadratics import common_lower
from hylift.words import Wording

EPS = float(np.finfo(np.float64).eps)
MULTIPLES = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Multiples of the curvature that bounds give to reals, tried until all are proper."""


def _forms(quadratics: list[FactorGroup]) -> Iterator[tuple[FactorGroup, QuadraticForm]]:
    """Groups with their quadratic forms."""
    for group in quadratics:
        form = group.potential.quadratic()
        assert form is not None
        yield group, form


def centred(quadratics: list[FactorGroup], centre: FloatArray) -> tuple[Ids, FloatArray, float]:
    """The place and the parameters of each factor, with reals measured from their centre
    (variable,), and a bound on what rounding takes from log Z by that."""
    base, parts, start, lost = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], 0, 0.0
    for group, form in _forms(quadratics):
        A, b, c = form.A[group.row], form.b[group.row], form.c[group.row]
        num, m = len(group), centre[group.reals]
        half = np.einsum("fsij,fj->fsi", A, m)
        value = c + np.einsum("fsi,fi->fs", b + half, m)
        sizes = np.einsum("fsij,fi,fj->fs", np.abs(A), np.abs(m), np.abs(m)) + np.abs(c)
        sizes += np.einsum("fsi,fi->fs", np.abs(b), np.abs(m))
        lost += float(group.multiplicity @ sizes.max(axis=1))
        flat = (A.reshape(num, -1), (b + 2 * half).reshape(num, -1), value.reshape(num, -1))
        own = np.concatenate(flat, axis=1)
        base.append(start + np.arange(num) * own.shape[1])
        parts.append(own.ravel())
        start += own.size
    return np.concatenate(base), np.concatenate(parts), 4 * EPS * lost


def centre_of(variables: Variables, quadratics: list[FactorGroup]) -> FloatArray:
    """(variable,): the mean of each real if factors are averaged over their states."""
    size, num_states = len(variables), variables.num_states
    linear, blocks = np.zeros(size), []
    for group, form in _forms(quadratics):
        times = group.multiplicity[:, None]
        np.add.at(linear, group.reals, times * form.b.mean(axis=1)[group.row])
        blocks.append((group.reals, -2 * times[..., None] * form.A.mean(axis=1)[group.row]))
    matrix = sum_of_blocks(blocks, size) + sp.diags_array((num_states > 0).astype(np.float64))
    centre = SymmetricFactors.solution(matrix, linear)
    if centre is None:
        return np.clip(np.zeros(size), variables.lower, variables.upper)
    centre = np.where(np.isfinite(centre) & (num_states == 0), centre, 0.0)
    return np.clip(centre, variables.lower, variables.upper)


def least_curvature(quadratics: list[FactorGroup], slots: Ids32, size: int) -> sp.csr_array:
    """(size, size): the sum of matrices that are below those of each factor in all its states;
    slots: of all factors, one group after the other."""
    blocks, at = [], 0
    for group, form in _forms(quadratics):
        lower = common_lower(-2 * form.A)[group.row] * group.multiplicity[:, None, None]
        inside = slots[at : at + group.scope.size].reshape(group.scope.shape)
        blocks.append((inside[:, -lower.shape[1] :], lower))
        at += group.scope.size
    return sum_of_blocks(blocks, size)


def shares(
    variables: Variables, J: sp.csr_array, own: Ids, extra: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Curvatures (replica,) to add, which sum to 0 for each real, so that all replicas are proper
    in every state; an equal share of what is left over, as their scale; and how often they need
    the `extra` curvature (variable,) that bounds can give.

    J: (replica, replica), below what they have in any state; own: (replica,), its real. J must be
    dominated by its diagonal once reals are scaled by v: J_ii v_i > Σ_j |J_ij| v_j. Then a replica
    takes what dominates its own couplings, and an equal share of the rest.
    """
    size, count = len(variables), np.bincount(own, minlength=len(variables))
    pairs = J.tocoo()
    off = pairs.row != pairs.col
    row, column, coupling = pairs.row[off], pairs.col[off], np.abs(pairs.data[off])
    whole = np.bincount(own, J.diagonal(), minlength=size)
    # Parts in which no real is split and none has bounds need nothing.
    part = connected(size, np.stack([own[row], own[column]], axis=1))
    concerned = np.isin(part, part[(count > 1) | (extra > 0)])
    coupling = np.where(concerned[own[row]], coupling, 0.0)
    beside = sp.csr_array((coupling, (own[row], own[column])), shape=(size, size))
    for times in MULTIPLES if extra.any() else MULTIPLES[:1]:
        diagonal = np.where(concerned, whole + times * extra, 1.0)
        found = SymmetricFactors.solution(sp.diags_array(diagonal) - beside, np.ones(size))
        v = np.full(size, -1.0) if found is None else found
        if (v > 0).all():
            break
    is_split = count[own] > 1
    if not (v > 0).all():
        bad = np.flatnonzero(concerned & ~(v > 0))
        if not np.isin(part[bad], part[count > 1]).any():
            return np.zeros(len(own)), np.ones(len(own)), times
        raise IntractableError(
            f"'{variables.names[int(bad[0])]}' and the reals coupled to it depend on too many "
            "discrete variables or on each other, and cannot be split: in some states nothing "
            "confines a part of them.",
            Wording("Raise MiniBuckets(max_entries=…).", "Raise --max-entries."),
        )
    needed = np.bincount(row, coupling * v[own[column]], minlength=len(own)) / v[own]
    rest = whole + times * extra - np.bincount(own, needed, minlength=size)
    rest /= np.maximum(count, 1)
    given = J.diagonal() + (times * extra / np.maximum(count, 1))[own]
    curvature = np.where(is_split, needed + rest[own] - given, 0.0)
    return curvature, np.where(is_split, rest[own], 1.0), times
