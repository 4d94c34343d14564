"""The check of an answer on nodes: a finer grid cannot show what lies between all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hylift.inference.attempts import Attempts
from hylift.inference.checking.better import correction, excess
from hylift.inference.checking.check import Check, with_notes
from hylift.inference.checking.gaps import Gaps
from hylift.inference.exact.nodes.conditional import known_reals
from hylift.inference.prepared import Prepared
from hylift.posterior import Posterior, Trust
from hylift.posterior.trust import Verdict
from hylift.rewrite.kinds import Kinds

COARSE = 0.01
"""Error of log Z from which on a grid is too coarse to stand by itself."""


def rests_on_nodes(posterior: Posterior, prepared: Prepared) -> bool:
    """True if marginals of exact inference are of functions whose reals are all on nodes: unlike
    variances, these may have peaks anywhere."""
    if posterior.all_marginals is None or posterior.trust.verdict == "certified":
        return False
    kinds = Kinds.of(prepared.ground)
    on_nodes = known_reals(kinds)
    return any(on_nodes[group.reals].all(axis=1).any() for group in kinds.functions)


def checked_on_nodes(posterior: Posterior, attempts: Attempts) -> Posterior:
    """The answer with the verdict of particles, or theirs where it has missed something.

    Particles that are in doubt themselves leave it unchecked, unless they contradict it.
    """
    check = Check(attempts, posterior)
    found = check.run()
    if found is None or found.log_partition is None or posterior.log_partition is None:
        return with_notes(posterior, attempts)
    more, slack = excess(found, posterior)
    name, own = found.solution.method, found.all_marginals is posterior.all_marginals
    if own and more == 0.0:  # nodes have smaller errors of log Z than particles
        found = replace(found, log_partition=posterior.log_partition)
    if own or (found.trust.verdict == "checked" and more >= -slack) or more > slack:
        if not own:
            found = found.with_note(correction(posterior, found))
        return with_notes(found, attempts)
    size = np.nanmax(Gaps.between(posterior, found).size, initial=0.0)
    is_near = size <= 1.0 and abs(more) <= slack
    ids = np.flatnonzero(~posterior.observed)
    verb = "agrees" if is_near else "does not agree"
    why = f"{name} {verb} with this answer, but is in doubt itself, and knows of nothing more."
    is_coarse = posterior.log_partition.error > COARSE
    is_doubted = check.is_blind or is_coarse or (found.trust.verdict == "checked" and not is_near)
    verdict: Verdict = "doubtful" if is_doubted else "unchecked"
    trust = Trust.same(posterior.variables, ids, verdict, why)
    return with_notes(replace(posterior, checked=trust), attempts)
