"""The better of two answers, by what each knows of the whole distribution: its log Z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hylift.inference.checking.gaps import Gaps, difference
from hylift.inference.checking.limits import Limits
from hylift.posterior import Posterior
from hylift.words import counted

SIGNIFICANT = 3.0
"""Standard errors by which estimates of log Z differ in earnest."""
CLOSE_SUM, UNSURE_SUM, LOST_SUM = 0.1, 0.3, 1.0
"""Difference of log Z that does not matter; its standard error in a connected part from which on
modes may have been missed that no group has seen; and that from which on particles of a discrete
graph are lost."""
MESSAGES = ("EP", "BP")
"""Methods that are right more often where particles are lost."""


def excess(found: Posterior, answer: Posterior) -> tuple[float, float]:
    """Difference of the log Z of a run from that of an answer, and the part that the error of the
    run explains, or that does not matter."""
    assert found.log_partition is not None
    assert answer.log_partition is not None
    more = found.log_partition.value - answer.log_partition.value
    return more, SIGNIFICANT * found.log_partition.error + CLOSE_SUM


def are_messages_better(answer: Posterior, found: Posterior, limits: Sequence[Limits]) -> bool:
    """True if the answer is of messages that converged on a discrete graph, and particles in doubt
    are lost, or know of much less than it.

    Not where a proven limit refutes its log Z. A fixed point of messages that is below the bound of
    mean field is not the best one: the product of marginals that has this bound would be better.
    """
    own, log_z = answer.log_partition, found.log_partition
    is_discrete = bool((answer.variables.num_states[~answer.observed] > 0).all())
    if answer.solution.method not in MESSAGES or own is None or log_z is None or not is_discrete:
        return False
    if answer.solution.result != "converged" or log_z.error <= UNSURE_SUM:
        return False
    if any(not one.lower - LOST_SUM <= own.value <= one.upper + LOST_SUM for one in limits):
        return False
    more, slack = excess(found, answer)
    return log_z.error > LOST_SUM or more < -slack - LOST_SUM


def with_sum(answer: Posterior, flat: Posterior) -> Posterior:
    """The answer, with the error of its estimate of log Z, or with that of particles."""
    own, other = answer.log_partition, flat.log_partition
    if own is None or other is None or own.kind != "estimate" or own is other:
        return answer
    more, slack = excess(flat, answer)
    if abs(more) <= slack:
        error = max(own.error, abs(more) + slack - CLOSE_SUM)
        return replace(answer, log_partition=replace(own, error=error))
    note = f"log Z is that of {flat.solution.method}: {answer.solution.method} has {own.value:.6g}."
    return replace(answer, log_partition=other).with_note(note)


def corrected(before: Posterior, found: Posterior) -> Posterior:
    """The answer that was found; if it is another, with a note on how far off the first was."""
    if found.all_marginals is before.all_marginals:
        return found
    size = Gaps.between(before, found).size
    worst = int(np.nanargmax(size))
    name = before.variables.names[int(np.flatnonzero(~before.observed)[worst])]
    return found.with_note(
        f"These are the marginals of {found.solution.method}: {before.solution.method} was off in "
        f"{counted(int((size > 1).sum()), 'variable')}, of which most in this one: "
        f"{difference(name, before.marginal(name), found.marginal(name))}."
    )
