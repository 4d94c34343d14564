"""An assignment and its scores, kept up to date while single variables change."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels import entry, inner

FIRST, SIZE, STAMP, RANDOM = 0, 1, 2, 3

MUCH = 1e-4
"""A real that moved by more than this, relative to its unit and its value, makes others' chains
stale."""


@inner
def push(search, v, stale):
    """Marks a discrete variable to be looked at again, and so its chains where it is stale."""
    search.value[v].stale |= stale
    if search.value[v].queued:
        return
    search.value[v].queued = 1
    counts, lists = search.counts, search.lists
    lists[0, (counts[FIRST] + counts[SIZE]) % lists.shape[1]] = v
    counts[SIZE] += 1


@inner
def pop(search):
    counts, lists = search.counts, search.lists
    v = np.int64(lists[0, counts[FIRST]])
    counts[FIRST] = (counts[FIRST] + 1) % lists.shape[1]
    counts[SIZE] -= 1
    search.value[v].queued = 0
    return v


@entry
def load(terms, search, start):
    """Takes over an assignment: computes all scores, and queues every discrete variable."""
    for v in range(len(search.value)):
        search.value[v].x = start[v]
        search.value[v].curve = 0.0
        search.value[v].slope = 0.0
        search.value[v].queued = 0
        search.value[v].moved = 0
    for k in range(len(search.score)):
        search.score[k].value = 0.0
        search.score[k].broken = 0.0
    for k in range(len(search.coupling)):
        search.coupling[k] = 0.0
    search.counts[FIRST] = 0
    search.counts[SIZE] = 0
    search.counts[RANDOM] = 1
    for t in range(len(terms.term)):
        joint = joint_state(terms, start, t)
        search.joint[t] = joint
        if t < terms.num_tables:
            _score_table(terms, search, t)
        else:
            add_quadratic(terms, search, t, joint, terms.term[t].multiplicity)
    for v in range(len(search.value)):
        if terms.variable[v].num_states > 1 and terms.variable[v].movable:
            push(search, v, np.uint8(1))


@inner
def _score_table(terms, search, t):
    m = terms.term[t].multiplicity
    for e in range(terms.term[t].first, terms.term[t].last):
        u, stride = np.int64(terms.entry[e].variable), terms.entry[e].stride
        at = terms.term[t].base + search.joint[t] - np.int64(search.value[u].x) * stride
        for state in range(terms.variable[u].num_states):
            value = terms.theta[at + state * stride]
            entry = terms.variable[u].scores + state
            if value == -np.inf:
                search.score[entry].broken += m
            else:
                search.score[entry].value += m * value


@inner
def add_quadratic(terms, search, t, joint, m):
    """Adds m times a quadratic in one of its joint states to what is known of its reals."""
    first, last = terms.term[t].middle, terms.term[t].last
    size = last - first
    A = terms.term[t].base + joint * size * size
    b = terms.term[t].base + terms.term[t].num_joint * size * size + joint * size
    pair = terms.term[t].pair
    for i in range(size):
        r = terms.entry[first + i].variable
        search.value[r].curve += m * terms.theta[A + i * size + i]
        search.value[r].slope += m * terms.theta[b + i]
        for j in range(i + 1, size):
            s = terms.entry[first + j].variable
            cross = 2.0 * m * terms.theta[A + i * size + j]
            search.value[r].slope += cross * search.value[s].x
            search.value[s].slope += cross * search.value[r].x
            search.coupling[terms.pair_of[pair]] += cross
            pair += 1


@inner
def flip(terms, search, v, state, mark):
    """Puts a discrete variable into another state; marked, its neighbours are queued."""
    step = state - np.int64(search.value[v].x)
    search.value[v].x = state
    for k in range(terms.variable[v].first, terms.variable[v].split):
        t = np.int64(terms.incidence[k].term)
        old = search.joint[t]
        search.joint[t] = old + step * terms.incidence[k].stride
        _rescore(terms, search, t, v, old, mark)
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t = np.int64(terms.incidence[k].term)
        old = search.joint[t]
        search.joint[t] = old + step * terms.incidence[k].stride
        add_quadratic(terms, search, t, old, -terms.term[t].multiplicity)
        add_quadratic(terms, search, t, search.joint[t], terms.term[t].multiplicity)
        if not mark:
            continue
        for e in range(terms.term[t].first, terms.term[t].last):
            u = np.int64(terms.entry[e].variable)
            if terms.variable[u].num_states == 0:
                search.value[u].moved = 2
            elif u != v and terms.variable[u].movable:
                push(search, u, np.uint8(1))


@inner
def _rescore(terms, search, t, v, old, mark):
    """Scores of the other variables of a table whose joint state was another one."""
    theta, entry, variable = terms.theta, terms.entry, terms.variable
    value, score = search.value, search.score
    m, base = terms.term[t].multiplicity, terms.term[t].base
    change = search.joint[t] - old
    for e in range(terms.term[t].first, terms.term[t].last):
        u, stride = np.int64(entry[e].variable), np.int64(entry[e].stride)
        if u == v or not variable[u].movable:
            continue
        at = base + old - np.int64(value[u].x) * stride
        differs = False
        scores = variable[u].scores
        for state in range(variable[u].num_states):
            before, after = theta[at + state * stride], theta[at + change + state * stride]
            if before == after:
                continue
            differs = True
            if before == -np.inf:
                score[scores + state].broken -= m
            else:
                score[scores + state].value -= m * before
            if after == -np.inf:
                score[scores + state].broken += m
            else:
                score[scores + state].value += m * after
        if differs and mark:
            push(search, u, np.uint8(1))


@inner
def shift_real(terms, search, r, step):
    """Moves a real, and the slopes of those coupled to it."""
    old = search.value[r].x
    search.value[r].x = min(max(old + step, terms.variable[r].lower), terms.variable[r].upper)
    step = search.value[r].x - old
    far = abs(step) > MUCH * (terms.variable[r].unit + abs(old))
    search.value[r].moved = 2 if far else max(search.value[r].moved, np.uint8(1))
    for k in range(terms.variable[r].links, terms.variable[r].links_end):
        search.value[terms.link[k].other].slope += search.coupling[terms.link[k].pair] * step


@entry
def push_beside_moved(terms, search):
    """Queues the discrete variables that share a term with a real that moved."""
    for r in range(len(search.value)):
        if not search.value[r].moved:
            continue
        stale = np.uint8(search.value[r].moved == 2)
        search.value[r].moved = 0
        for k in range(terms.variable[r].split, terms.variable[r].last):
            t = np.int64(terms.incidence[k].term)
            first = terms.term[t].first
            for e in range(first, terms.term[t].middle):
                u = np.int64(terms.entry[e].variable)
                if terms.variable[u].movable and terms.variable[u].num_states > 1:
                    push(search, u, stale)


@entry
def worth_of_each(terms, x, variables, broken, total):
    """Adds, per variable, the multiplicity of its terms at -inf, and the sum of its others."""
    for i in range(len(variables)):
        v = variables[i]
        for k in range(terms.variable[v].first, terms.variable[v].last):
            t = np.int64(terms.incidence[k].term)
            value = term_value(terms, x, t, joint_state(terms, x, t))
            if value == -np.inf:
                broken[i] += terms.term[t].multiplicity
            else:
                total[i] += terms.term[t].multiplicity * value


@entry
def count_broken(terms, search):
    """Multiplicity of the tables at -inf."""
    broken = 0.0
    for t in range(terms.num_tables):
        if terms.theta[terms.term[t].base + search.joint[t]] == -np.inf:
            broken += terms.term[t].multiplicity
    return broken


@inner
def joint_state(terms, x, t):
    """The joint state of a term at an assignment."""
    joint = np.int64(0)
    for e in range(terms.term[t].first, terms.term[t].middle):
        joint += np.int64(x[terms.entry[e].variable]) * np.int64(terms.entry[e].stride)
    return joint


@inner
def term_value(terms, x, t, joint):
    """Log-value of a term in one of its joint states."""
    entry, theta = terms.entry, terms.theta
    middle, last = terms.term[t].middle, terms.term[t].last
    size, num_joint, base = last - middle, terms.term[t].num_joint, terms.term[t].base
    A, b = base + joint * size * size, base + num_joint * size * size + joint * size
    value = theta[base + num_joint * (size * size + size) + joint]
    for i in range(size):
        inner = theta[b + i]
        for j in range(size):
            inner += theta[A + i * size + j] * x[entry[middle + j].variable]
        value += inner * x[entry[middle + i].variable]
    return value


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
