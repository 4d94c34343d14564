"""Loops over the groundings of a rule."""

from numba import njit


@njit(cache=True)
def mark(marks, codes):
    """Set the marks of atoms that are used."""
    for grounding in range(len(codes)):
        marks[codes[grounding]] = True


@njit(cache=True)
def write_slot(scope, slot, codes, position, offset):
    """Write the variables of atoms into one slot of a scope; position: index of each atom among
    the used ones, or empty where all are used."""
    if len(position):
        for factor in range(len(codes)):
            scope[factor, slot] = position[codes[factor]] + offset
    else:
        for factor in range(len(codes)):
            scope[factor, slot] = codes[factor] + offset
