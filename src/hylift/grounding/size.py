"""What a grounding will take, before it is done."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hylift.errors import IntractableError
from hylift.graph.size import SizeEstimate, bytes_text
from hylift.grounding.atoms import AtomSpace
from hylift.grounding.rules.count import num_groundings
from hylift.grounding.rules.plan import RulePlan
from hylift.grounding.rules.query import is_product
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Variable

HARMLESS = 0.2
"""Share of the free memory below which a grounding is not looked at more closely."""

SKEW = 5
"""How many times more rows a join may have than one of evenly spread tables of its sizes."""

HOPELESS = 1.5
"""Times all the memory there is beyond which a grounding is refused instead of warned of."""


class SizeWarning(UserWarning):
    """A grounding that may not fit in memory."""


def estimate(world: World, plans: Sequence[RulePlan]) -> SizeEstimate:
    """The size of the graph that these rules make.

    Factors are counted exactly, by the database; variables are all possible atoms, or fewer where
    factors are too few to use them all.
    """
    counts = [num_groundings(world, plan, plan.guards) if plan.slots else 0 for plan in plans]
    return _estimate(world, plans, counts)


def warn_of_size(world: World, plans: Sequence[RulePlan]) -> None:
    """Warns before a grounding that may not fit in memory, and refuses one that cannot."""
    free = free_memory()
    most = _estimate(world, plans, [_guess(world, plan) for plan in plans])
    if most.num_bytes < HARMLESS * free:
        return
    size = estimate(world, plans)
    if size.num_bytes < free / 2:
        return
    largest = max(plans, key=lambda plan: num_groundings(world, plan, plan.guards))
    count = num_groundings(world, largest, largest.guards)
    text = (
        f"grounding makes {size}, and {bytes_text(free)} of memory are free. Most factors, "
        f"{count:,}, come from the rule '{largest.label}': a closed-world predicate that "
        "multiplies or guards it, or a condition after 'where', would make them fewer"
    )
    if size.num_bytes > HOPELESS * total_memory():
        raise IntractableError(text)
    warnings.warn(text, SizeWarning, stacklevel=4)


def _estimate(world: World, plans: Sequence[RulePlan], counts: Sequence[int]) -> SizeEstimate:
    used: dict[str, int] = {}
    num_bytes = 0
    for plan, count in zip(plans, counts, strict=True):
        for atom in plan.slots:
            used[atom.predicate] = used.get(atom.predicate, 0) + count
        # Scope, number of the atom, variables, row and multiplicity.
        num_bytes += count * (12 * len(plan.slots) + 4 * len(plan.types) + 12)
    num_variables = 0
    for name, count in used.items():
        space = AtomSpace.of(world, world.model.predicate_by_name[name])
        num_variables += min(space.size, count)
    return SizeEstimate(num_variables, sum(counts), num_bytes + 16 * num_variables)


def _guess(world: World, plan: RulePlan) -> int:
    """A guess from the sizes of types and tables alone, several times what joins usually make."""
    covered: set[str] = set()
    most = 1.0
    for guard in plan.guards if not is_product(plan) else ():
        if isinstance(guard.test, Atom) and guard.holds:
            names = {term.name for term in guard.test.arguments if isinstance(term, Variable)}
            most *= world.evidence[guard.test.predicate].num_rows
            for name in names & covered:
                most /= max(1, len(plan.ranges[name]))
            covered |= names
    for name, values in plan.ranges.items():
        if name not in covered:
            most *= len(values)
    return int(most * (SKEW if covered else 1))


def free_memory() -> int:
    """Bytes of memory that a process could have now, caches of files included."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return total_memory()
    return min(free, total_memory())


def total_memory() -> int:
    """Bytes of memory that this machine, or the container it runs in, has in all."""
    known = [1 << 40]
    if "SC_PHYS_PAGES" in os.sysconf_names:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        known.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(known)
