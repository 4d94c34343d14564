"""What is handed down along trees."""

from numba import njit


@njit(cache=True, nogil=True)
def multiply_down(signs, order, parent, flips):
    """Gives each vertex of a tree the sign of its parent times its flip; parents come first."""
    for place in range(len(order)):
        signs[order[place]] = signs[parent[order[place]]] * flips[place]
