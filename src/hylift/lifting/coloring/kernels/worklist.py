"""Color passing that looks only at factors with a variable whose class has changed."""

import numpy as np
from numba import njit

from hylift.lifting.coloring.kernels.grouping import group_pairs
from hylift.lifting.coloring.kernels.hashing import add, factor_hash, message


@njit(cache=True)
def refine_locally(
    slots, first, orbit, kind, weight, start, factors, color, num_classes, dirty, seed, mask, most
):
    """Refines `color` in place, beginning with `dirty` factors, until nothing changes or more than
    `most` factors have changed at once. Returns the number of classes, and whether nothing changed.

    Variables of a class agreed on all that they heard before, so that they differ now only if they
    hear different things from factors that have changed.
    """
    num_variables, num_factors = len(color), len(kind)
    size = np.zeros(num_variables, dtype=np.int32)
    for variable in range(num_variables):
        size[color[variable]] += 1
    heard = np.zeros(num_variables, dtype=np.uint64)
    round_of_variable = np.full(num_variables, -1, dtype=np.int32)
    round_of_factor = np.full(num_factors, -1, dtype=np.int32)
    num_touched_of = np.zeros(num_variables, dtype=np.int32)  # by class
    largest_of = np.full(num_variables, -1, dtype=np.int32)  # by class
    touched = np.empty(num_variables, dtype=np.int32)
    queue = np.empty(num_factors, dtype=np.int32)
    queue[: len(dirty)] = dirty
    num_dirty = len(dirty)
    weighted = len(weight) > 0
    rounds = 0
    while num_dirty:
        num_touched = 0
        for place in range(num_dirty):
            factor = queue[place]
            hashed = factor_hash(factor, slots, first, orbit, kind, color, seed)
            for edge in range(first[factor], first[factor + 1]):
                variable = slots[edge]
                if size[color[variable]] == 1:
                    continue
                if round_of_variable[variable] != rounds:
                    round_of_variable[variable] = rounds
                    heard[variable] = 0
                    touched[num_touched] = variable
                    num_touched += 1
                share = message(hashed, orbit[edge], mask)
                if weighted:
                    heard[variable] = add(heard[variable], share, weight[factor])
                else:
                    heard[variable] += share
        rounds += 1
        some = touched[:num_touched]
        part, num_parts = group_pairs(color[some], heard[some])
        new_color, num_classes = _split(
            some, part, num_parts, color, size, num_touched_of, largest_of, num_classes
        )
        num_dirty = 0
        for place in range(num_touched):
            variable = some[place]
            number = new_color[part[place]]
            if number == color[variable]:
                continue
            color[variable] = number
            for at in range(start[variable], start[variable + 1]):
                factor = factors[at]
                if round_of_factor[factor] != rounds:
                    round_of_factor[factor] = rounds
                    queue[num_dirty] = factor
                    num_dirty += 1
        if num_dirty > most:
            return num_classes, False
    return num_classes, True


@njit(cache=True)
def _split(some, part, num_parts, color, size, num_touched_of, largest_of, num_classes):
    """int32 (part,): class of each part of the touched variables, and the number of classes.

    What is untouched of a class keeps its number; where nothing is, the largest part does.
    """
    part_size = np.zeros(num_parts, dtype=np.int32)
    part_class = np.empty(num_parts, dtype=np.int32)
    for place in range(len(some)):
        part_size[part[place]] += 1
        part_class[part[place]] = color[some[place]]
    for number in range(num_parts):
        old = part_class[number]
        num_touched_of[old] += part_size[number]
        best = largest_of[old]
        if best < 0 or part_size[number] > part_size[best]:
            largest_of[old] = number
    new_color = np.empty(num_parts, dtype=np.int32)
    for number in range(num_parts):
        old = part_class[number]
        if num_touched_of[old] == size[old] and largest_of[old] == number:
            new_color[number] = old
        else:
            new_color[number] = num_classes
            num_classes += 1
    for number in range(num_parts):
        old = part_class[number]
        num_touched_of[old] = 0
        largest_of[old] = -1
    for number in range(num_parts):
        old = part_class[number]
        if new_color[number] != old:
            size[new_color[number]] = part_size[number]
            size[old] -= part_size[number]
    return new_color, num_classes
