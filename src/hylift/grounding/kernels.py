"""Loops over the groundings of a rule, which NumPy would copy to index with."""

from numba import njit


@njit(cache=True)
def mark(is_used, codes):
    """Mark the atoms that are used."""
    for grounding in range(len(codes)):
        is_used[codes[grounding]] = True


@njit(cache=True)
def write_slot(scope, slot, codes, variable, offset):
    """Write the variables of atoms into one slot of a scope.

    variable: of each possible atom, or empty where all are used.
    """
    if len(variable):
        for factor in range(len(codes)):
            scope[factor, slot] = variable[codes[factor]]
    else:
        for factor in range(len(codes)):
            scope[factor, slot] = codes[factor] + offset
