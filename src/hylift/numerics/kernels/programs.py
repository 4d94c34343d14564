"""Expressions as steps on a stack, for many factors at a time."""

import numpy as np
from numba import njit

(
    SLOT, COLUMN, NUMBER, NOT, NEGATE, ABS, EXP, LOG, SQUARE, POWER, LOG_SIGMOID, ADD, SUBTRACT,
    TIMES, OVER, LEAST, MOST, EQUAL, AT_MOST, NORMAL,
) = range(20)  # fmt: skip
"""The first three push a value, the next eight change the last, the others join the last two, and
the very last the last three."""

BATCH = 128
"""Factors for which a step is taken at a time."""

_inner = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def add_by_block(program, stack, batch, group, x, active, ptr, first, last, breaks, total):
    """Adds log-values of factors, or -1 for each that is -inf, to the total (chain, block) of those
    blocks that are active, in some of the chains; false if one of them is NaN or +inf.

    batch: (2, factor), room; group: scope, row, multiplicity, parameters; ptr: (block + 1,).
    """
    for c in range(first, last):
        count = 0
        for b in range(len(ptr) - 1):
            if not active[c, b]:
                continue
            for f in range(ptr[b], ptr[b + 1]):
                batch[0, count], batch[1, count] = f, b
                count += 1
                if count == BATCH:
                    if not _add_batch(program, stack, batch, count, group, x, c, total, breaks):
                        return False
                    count = 0
        if not _add_batch(program, stack, batch, count, group, x, c, total, breaks):
            return False
    return True


@_inner
def _add_batch(program, stack, batch, count, group, x, c, total, breaks):
    """Adds the values of a batch in one chain."""
    _, _, multiplicity, _ = group
    run(program, stack, batch, count, group, x, c)
    for i in range(count):
        value = stack[0, i]
        if not value < np.inf:
            return False
        if not breaks:
            total[c, batch[1, i]] += multiplicity[batch[0, i]] * value
        elif value == -np.inf:
            total[c, batch[1, i]] -= 1.0
    return True


@_inner
def run(program, stack, batch, count, group, x, c):
    """Leaves the values of the factors of a batch in the first row of the stack."""
    steps, numbers = program
    scope, row, _, parameters = group
    top = -1
    for s in range(len(steps)):
        step, k = steps[s, 0], steps[s, 1]
        if step == SLOT:
            top += 1
            for i in range(count):
                stack[top, i] = x[c, scope[batch[0, i], k]]
        elif step == COLUMN:
            top += 1
            for i in range(count):
                stack[top, i] = parameters[row[batch[0, i]], k]
        elif step == NUMBER:
            top += 1
            for i in range(count):
                stack[top, i] = numbers[k]
        elif step <= LOG_SIGMOID:
            _change(stack, top, step, numbers[k], count)
        elif step < NORMAL:
            top -= 1
            _join(stack, top, top + 1, step, count)
        else:
            top -= 2
            _normal(stack, top, count)


@_inner
def _change(stack, a, step, number, count):
    """Replaces values by a function of them."""
    if step == NOT:
        for i in range(count):
            stack[a, i] = 1.0 - stack[a, i]
    elif step == NEGATE:
        for i in range(count):
            stack[a, i] = -stack[a, i]
    elif step == ABS:
        for i in range(count):
            stack[a, i] = abs(stack[a, i])
    elif step == EXP:
        for i in range(count):
            stack[a, i] = np.exp(stack[a, i])
    elif step == LOG:
        for i in range(count):
            stack[a, i] = np.log(stack[a, i])
    elif step == SQUARE:
        for i in range(count):
            stack[a, i] *= stack[a, i]
    elif step == POWER:
        for i in range(count):
            stack[a, i] = stack[a, i] ** number
    else:
        for i in range(count):
            stack[a, i] = min(stack[a, i], 0.0) - np.log1p(np.exp(-abs(stack[a, i])))


@_inner
def _join(stack, a, b, step, count):
    """Replaces values by a function of them and of others; 0 times anything is 0."""
    if step == ADD:
        for i in range(count):
            stack[a, i] += stack[b, i]
    elif step == SUBTRACT:
        for i in range(count):
            stack[a, i] -= stack[b, i]
    elif step == TIMES:
        for i in range(count):
            stack[a, i] = (
                0.0 if stack[a, i] == 0.0 or stack[b, i] == 0.0 else stack[a, i] * stack[b, i]
            )
    elif step == OVER:
        for i in range(count):
            stack[a, i] = 0.0 if stack[a, i] == 0.0 else stack[a, i] / stack[b, i]
    elif step == LEAST:
        for i in range(count):
            stack[a, i] = (
                stack[b, i]
                if stack[b, i] < stack[a, i] or stack[b, i] != stack[b, i]
                else stack[a, i]
            )
    elif step == MOST:
        for i in range(count):
            stack[a, i] = (
                stack[b, i]
                if stack[b, i] > stack[a, i] or stack[b, i] != stack[b, i]
                else stack[a, i]
            )
    elif step == EQUAL:
        for i in range(count):
            stack[a, i] = 1.0 if stack[a, i] == stack[b, i] else 0.0
    else:
        for i in range(count):
            stack[a, i] = 1.0 if stack[a, i] <= stack[b, i] else 0.0


@_inner
def _normal(stack, top, count):
    """Replaces values by their log-density, given the mean and the variance above them; impossible
    where that is 0."""
    for i in range(count):
        far, wide = stack[top, i] - stack[top + 1, i], 2.0 * stack[top + 2, i]
        if wide == 0.0:
            stack[top, i] = -np.inf
        else:
            own = 0.0 if far == 0.0 else far * far / wide
            stack[top, i] = -own - 0.5 * np.log(np.pi * wide)
