"""An assignment and its scores, kept up to date while single variables change."""

import numpy as np

from hylift.inference.local.kernels import add_quadratic, entry, joint_state, part
from hylift.numerics.kernels import inner

FIRST, SIZE, STAMP = 0, 1, 2

MUCH = 1e-4
"""A real that moved by more than this, relative to its unit and its value, makes others' chains
stale."""


@inner
def push(mark, lists, counts, v, stale):
    """Marks a discrete variable to be looked at again, and so its chains where it is stale."""
    mark[v].stale |= stale
    if mark[v].queued:
        return
    mark[v].queued = 1
    lists[0, (counts[FIRST] + counts[SIZE]) % lists.shape[1]] = v
    counts[SIZE] += 1


@part
def pop(search):
    counts, lists = search.counts, search.lists
    v = np.int64(lists[0, counts[FIRST]])
    counts[FIRST] = (counts[FIRST] + 1) % lists.shape[1]
    counts[SIZE] -= 1
    search.mark[v].queued = 0
    return v


@entry
def load(terms, search, start):
    """Takes over an assignment: computes all scores, and queues every discrete variable."""
    for v in range(len(search.x)):
        search.x[v] = start[v]
        search.curve[v] = 0.0
        search.slope[v] = 0.0
        search.mark[v].queued = 0
        search.mark[v].moved = 0
    for k in range(len(search.score)):
        search.score[k].value = 0.0
        search.score[k].broken = 0.0
    for k in range(len(search.coupling)):
        search.coupling[k] = 0.0
    search.counts[FIRST] = 0
    search.counts[SIZE] = 0
    for t in range(len(terms.term)):
        joint, m = joint_state(terms, search.x, t), terms.term[t].multiplicity
        search.joint[t] = joint
        if t < terms.num_tables:
            _score_table(terms, search, t, m)
        else:
            add_quadratic(terms, t, joint, m, search.x, search.curve, search.slope, search.coupling)
    for v in range(len(search.x)):
        if terms.variable[v].num_states > 1 and terms.variable[v].movable:
            push(search.mark, search.lists, search.counts, v, np.uint8(1))


@part
def _score_table(terms, search, t, m):
    term = terms.term[t]
    for e in range(term.first, term.last):
        u, stride = terms.entry[e].variable, terms.entry[e].stride
        at = term.base + search.joint[t] - np.int64(search.x[u]) * stride
        score = terms.variable[u].scores
        for state in range(terms.variable[u].num_states):
            value = terms.theta[at + state * stride]
            if value == -np.inf:
                search.score[score + state].broken += m
            else:
                search.score[score + state].value += m * value


@inner
def flip(terms, search, v, state, mark):
    """Puts a discrete variable into another state; marked, its neighbours are queued."""
    step, record = state - np.int64(search.x[v]), terms.variable[v]
    search.x[v] = state
    for k in range(record.first, record.last):
        t = np.int64(terms.incidence[k].term)
        old = search.joint[t]
        search.joint[t] = old + step * terms.incidence[k].stride
        if k < record.split:
            _rescore(terms, search, t, v, old, mark)
            continue
        m = -terms.term[t].multiplicity
        for joint in (old, search.joint[t]):
            add_quadratic(terms, t, joint, m, search.x, search.curve, search.slope, search.coupling)
            m = -m
        if not mark:
            continue
        for e in range(terms.term[t].first, terms.term[t].last):
            u = np.int64(terms.entry[e].variable)
            if terms.variable[u].num_states == 0:
                search.mark[u].moved = 2
            elif u != v and terms.variable[u].movable:
                push(search.mark, search.lists, search.counts, u, np.uint8(1))


@part
def _rescore(terms, search, t, v, old, mark):
    """Scores of the other variables of a table whose joint state was another one."""
    theta, score, term = terms.theta, search.score, terms.term[t]
    m, change = term.multiplicity, search.joint[t] - old
    for e in range(term.first, term.last):
        u, stride = np.int64(terms.entry[e].variable), np.int64(terms.entry[e].stride)
        if u == v or not terms.variable[u].movable:
            continue
        at = term.base + old - np.int64(search.x[u]) * stride
        differs = False
        scores = terms.variable[u].scores
        for state in range(terms.variable[u].num_states):
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
            push(search.mark, search.lists, search.counts, u, np.uint8(1))


@inner
def shift_real(terms, search, r, step):
    """Moves a real, and the slopes of those coupled to it."""
    old, record = search.x[r], terms.variable[r]
    new = min(max(old + step, record.lower), record.upper)
    search.x[r] = new
    if abs(new - old) > MUCH * (record.unit + abs(old)):
        search.mark[r].moved = 2
    elif search.mark[r].moved == 0:
        search.mark[r].moved = 1
    for k in range(record.links, record.links_end):
        search.slope[terms.link[k].other] += search.coupling[terms.link[k].pair] * (new - old)


@part
def push_beside_moved(terms, search):
    """Queues the discrete variables that share a term with a real that moved."""
    for r in range(len(search.mark)):
        if not search.mark[r].moved:
            continue
        stale = np.uint8(search.mark[r].moved == 2)
        search.mark[r].moved = 0
        for k in range(terms.variable[r].split, terms.variable[r].last):
            t = np.int64(terms.incidence[k].term)
            for e in range(terms.term[t].first, terms.term[t].middle):
                u = np.int64(terms.entry[e].variable)
                if terms.variable[u].movable and terms.variable[u].num_states > 1:
                    push(search.mark, search.lists, search.counts, u, stale)
