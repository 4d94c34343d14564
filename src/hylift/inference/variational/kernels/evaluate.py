"""The objective of a small problem in one call: all of its terms and scopes are one block."""

import numpy as np
from numba import njit

from hylift.components.kernels.nodes import chain_moments, moments_of, tabulate
from hylift.inference.variational.kernels.bethe import bethe_block
from hylift.inference.variational.kernels.energy import energy_block, scatter

START = np.int64(0)
"""Not a literal, for which kernels would be compiled once more."""


@njit(cache=True, nogil=True)
def energy_at_once(
    slot_ptr, slots, num_discrete, base, multiplicity, theta, hard,
    family, first, lower, upper, betas, entries, weights, grad_ptr, buffer, moments,
    gradient, value,
):  # fmt: skip
    """Fills value (start, component) and gradient with the expected energies of all terms."""
    value[:] = 0.0
    gradient[:] = 0.0
    at = entries
    if len(betas):
        moments_of(family, first, lower, upper, entries, moments)
        at = moments
    energy_block(
        START, len(base), slot_ptr, slots, num_discrete, base, multiplicity, theta, hard,
        first, at, weights, grad_ptr, buffer, value,
    )  # fmt: skip
    scatter(START, len(base), slot_ptr, slots, first, grad_ptr, buffer, gradient)
    if len(betas):
        chain_moments(betas, first, lower, upper, entries, gradient)


@njit(cache=True, nogil=True)
def bethe_at_once(
    row_variable, row_set, row_start, set_nodes, hermite_z, hermite_w, table_row,
    slot_ptr, slots, coefficient, scope_set, family, first, lower, upper, entries, weights,
    table, extra, grad_ptr, buffer, gradient, value,
):  # fmt: skip
    """Adds the Bethe entropy of all scopes to value (start, component) and gradient."""
    tabulate(
        START, len(row_variable), row_variable, row_set, row_start, set_nodes, hermite_z, family,
        first, lower, upper, entries, table, extra,
    )  # fmt: skip
    bethe_block(
        START, len(coefficient), slot_ptr, slots, coefficient, scope_set, set_nodes, hermite_z,
        hermite_w, family, first, entries, weights, table_row, row_start, table, extra, grad_ptr,
        buffer, value,
    )  # fmt: skip
    scatter(START, len(coefficient), slot_ptr, slots, first, grad_ptr, buffer, gradient)
