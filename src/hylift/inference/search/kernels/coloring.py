"""Sets of variables of which no two share a factor."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def color_apart(terms, scope, ptr, factor, first, color):
    """Gives every variable of a function the smallest color that none has beside it.

    scope: the variables of function f are scope[ptr[f] : ptr[f + 1]]; factor: the functions of
    variable v are factor[first[v] : first[v + 1]]; color: (variable,), -1 before.
    """
    taken = np.zeros(len(color) + 1, dtype=np.int64)  # color -> last variable beside it, plus 1
    for v in range(len(color)):
        if first[v] == first[v + 1]:
            continue
        for k in range(first[v], first[v + 1]):
            for e in range(ptr[factor[k]], ptr[factor[k] + 1]):
                if color[scope[e]] >= 0:
                    taken[color[scope[e]]] = v + 1
        for k in range(terms.variable[v].first, terms.variable[v].last):
            t = terms.incidence[k].term
            for e in range(terms.term[t].first, terms.term[t].last):
                u = terms.entry[e].variable
                if color[u] >= 0:
                    taken[color[u]] = v + 1
        smallest = 0
        while taken[smallest] == v + 1:
            smallest += 1
        color[v] = smallest
