"""The Kalman filter for any Gaussian graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import LEAK, mass_beyond
from hylift.errors import (
    DivergentModelError,
    ModelError,
    UnknownNameError,
    UnsupportedError,
    did_you_mean,
    too_narrow,
)
from hylift.graph import Atoms, Conditioned, FactorGraph, Names
from hylift.graph.names import Selected
from hylift.grounding.constants import as_integers
from hylift.inference.filtering.births import Births
from hylift.inference.filtering.filtered import Filtered
from hylift.inference.filtering.forms import (
    FloatArray,
    IntArray,
    Measurements,
    forms_of,
)
from hylift.inference.filtering.kernels import assign_places, run
from hylift.inference.filtering.program import PREDICTING, FilterProgram, Operations
from hylift.inference.settings import check_graph
from hylift.progress import Progress, announce_compilation, silent
from hylift.proper.check import check_possible
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import in_standard_form
from hylift.words import listed

TIMELESS = -1


def kalman_filter(
    graph: FactorGraph, time: str | NDArray[Any], *, progress: Progress | None = None
) -> Filtered:
    """Filter each hidden real of a Gaussian graph: its density given all factors and evidence up
    to its time, exact up to rounding.

    `time` is the name of an argument of predicates, such as 'month', or an integer per variable,
    -1 for those without a time. If all constants are non-negative integers, they are the times;
    otherwise constants are numbered in the order of their type. Variables without a time belong to
    the first one. A factor counts from the latest time of its variables on, observed ones included;
    soft evidence from the time of its variable on.

    Given the evidence, all factors must be quadratics of reals, and the model up to each time must
    be proper. A measurement costs the square of `width`, which is about the number of connected
    reals of one time.
    """
    report = progress or silent
    _check_graph(graph)
    announce_compilation()
    times = times_of(graph.variables.names, time)
    steps = np.unique(times[times >= 0])
    step = np.searchsorted(steps, times)
    report(0.0, "absorbing evidence")
    rest = Conditioned.of(graph := in_standard_form(graph))
    forms = forms_of(graph, step)
    check_possible(rest.graph)
    report(0.2, "ordering reals")
    own = step[rest.hidden]
    births = Births.of(forms, own, rest.graph.variables, steps)
    measured = Measurements.of(forms, births.origins)
    ids = measured.ids
    end = np.where(times[rest.hidden] < 0, len(steps) - 1, own)
    program = FilterProgram.of(births, measured, own, end, step[ids], len(steps))
    report(0.6, "filtering")
    out, log_likelihood, error, width = _run(program, rest, steps)
    log_likelihood += _observed_constants(graph, rest, step, len(steps))
    log_likelihood[0] += graph.log_constant
    _check_moments(out, rest, graph, ids)
    report(1.0, "filtered")
    count, order = len(rest.hidden), np.argsort(ids)
    predicted, filtered, seen = (part.T.copy() for part in np.split(out, [count, 2 * count]))
    return Filtered(
        graph.variables,
        rest.hidden,
        times[rest.hidden],
        filtered[0],
        filtered[1],
        predicted[0],
        predicted[1],
        ids[order],
        times[ids[order]],
        measured.value[order],
        seen[0, order],
        seen[1, order],
        steps,
        log_likelihood,
        error,
        width,
    )


def _run(
    program: FilterProgram, rest: Conditioned, steps: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Means and variances of all readings, (step,) log-likelihoods and their rounding errors, and
    the size of the state."""
    ops, variables = program.operations, rest.graph.variables
    place, born, width = _places_of(ops, len(variables))
    out, log_total = np.zeros((program.num_readings, 2)), np.zeros(len(steps))
    error = program.error.copy()
    failed, lost = run(
        ops.kind, ops.target, born, ops.step, ops.offset, ops.size, ops.slope, ops.ptr, place,
        ops.coefficient, np.zeros((width, width)), np.zeros((3, width)), np.zeros(width, bool),
        out, log_total, error,
    )  # fmt: skip
    if lost >= 0:
        at = np.flatnonzero((born == lost) & (np.arange(len(born)) < failed))[-1]
        raise UnsupportedError(
            f"'{variables.names[int(ops.target[at])]}' is so vague at first, and so sure once the "
            f"evidence of time {steps[ops.step[failed]]} is known, that rounding hides what is "
            "left: give narrower priors"
        )
    if failed >= 0:
        operands = slice(ops.ptr[failed], ops.ptr[failed + 1])
        strongest = np.argmax(np.abs(ops.coefficient[operands]))
        name = variables.names[int(ops.variable[operands][strongest])]
        raise _improper(name, int(steps[ops.step[failed]]), ops.phase[failed] < PREDICTING)
    return out, log_total + program.log_constant, error, width


def _places_of(
    ops: Operations, num_variables: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """The place in the state of each operand and of each real that is born, and its size."""
    last, place_of, free = np.full((3, num_variables), -1, dtype=np.int32)
    place = np.empty(len(ops.variable), dtype=np.int32)
    born = np.full(len(ops.kind), -1, dtype=np.int32)
    size = assign_places(
        ops.kind, ops.target, ops.ptr, ops.variable, last, place_of, free, place, born
    )
    return place, born, size


def _improper(name: str, time: int, is_predicted: bool) -> DivergentModelError:
    """The error for factors whose product up to a time has no finite integral."""
    without = " and without evidence of that time" if is_predicted else ""
    found = ImproperDirection(((name, 1.0),), context=f"up to time {time}{without}, ")
    if is_predicted:
        note, remedy = ", so it cannot be predicted", f"{found.rule}, or use infer with Exact"
    else:
        note, remedy = ", so it cannot be filtered", found.rule
    return found.error(note, remedy)


def _observed_constants(
    graph: FactorGraph, rest: Conditioned, step: IntArray, num_steps: int
) -> FloatArray:
    """(step,): the sum of factors without hidden variables, except quadratics, which are forms."""
    value = np.zeros(graph.num_variables)
    value[graph.evidence.variable] = graph.evidence.value
    hidden = np.zeros(graph.num_variables, dtype=bool)
    hidden[rest.hidden] = True
    total = np.zeros(num_steps)
    for group in graph.groups:
        form = group.potential.quadratic()
        if form is not None and form.num_reals:
            continue
        known = group.take(np.flatnonzero(~hidden[group.scope].any(axis=1)))
        if len(known):
            own = step[known.scope].max(axis=1, initial=0)
            total += np.bincount(own, known.multiplicity * known.log_values(value), num_steps)
    return total


def _check_graph(graph: FactorGraph) -> None:
    """Raise if the graph is lifted or has hidden discrete variables."""
    check_graph("kalman_filter needs", graph)
    variables = graph.variables
    if (variables.multiplicity != 1).any():
        name = variables.names[int(np.argmax(variables.multiplicity != 1))]
        raise UnsupportedError(
            f"kalman_filter needs a ground graph, and '{name}' stands for several variables: pass "
            "the graph before lifting"
        )
    hidden = graph.is_hidden
    discrete = hidden & (variables.num_states > 0)
    if discrete.any():
        name = variables.names[int(np.argmax(discrete))]
        raise UnsupportedError(
            f"a Kalman filter is for reals, and '{name}' is discrete: observe it, or use infer "
            "with Exact or BVI"
        )


def _check_moments(
    out: FloatArray, rest: Conditioned, graph: FactorGraph, measured: IntArray
) -> None:
    """Raise if a variance is lost in rounding, or if the bounds of a real matter."""
    reals = np.concatenate([rest.hidden, rest.hidden, measured])
    narrow = ~(out[:, 1] > 0)
    if narrow.any():
        raise too_narrow(graph.variables.names[int(reals[np.argmax(narrow)])])
    count = 2 * len(rest.hidden)
    lower, upper = graph.variables.lower[reals[:count]], graph.variables.upper[reals[:count]]
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        return
    beyond = mass_beyond(lower, upper, out[:count, 0], np.sqrt(out[:count, 1]))
    if beyond.max() > LEAK:
        at = int(np.argmax(beyond))
        name = graph.variables.names[int(reals[at])]
        raise UnsupportedError(
            f"a Kalman filter ignores bounds, and those of '{name}' matter: {beyond[at]:.2g} of "
            "its density lies beyond them. Declare it `real`, or use infer with Exact or BVI"
        )


def times_of(names: Names, time: str | NDArray[Any]) -> IntArray:
    """(variable,): its time, or -1, from the name of an argument or from an array."""
    times = _by_argument(names, time) if isinstance(time, str) else _given(names, time)
    if not (times >= 0).any():
        raise ModelError("no variable has a time")
    return times


def _given(names: Names, time: NDArray[Any]) -> IntArray:
    """The array of times, validated."""
    given = np.asarray(time)
    if given.shape != (len(names),) or not np.issubdtype(given.dtype, np.integer):
        raise ModelError(
            f"time must be the name of an argument, such as 'month', or an integer for each of "
            f"{len(names)} variables, not an array of {given.dtype} of shape {given.shape}"
        )
    if len(given) and given.max() > np.iinfo(np.int64).max:
        at = int(np.argmax(given))
        raise ModelError(f"'{names[at]}' has time {given[at]}: a time must be less than 2^63")
    if len(given) and given.min() < TIMELESS:
        at = int(np.argmin(given))
        raise ModelError(
            f"'{names[at]}' has time {given[at]}: a time must be non-negative, or -1 for a "
            "variable without one"
        )
    return given.astype(np.int64)


def _by_argument(names: Names, argument: str) -> IntArray:
    """Times of atoms from an argument; from several of that name, the latest.

    If all constants are non-negative integers, they are the times; otherwise the time is the place
    of a constant in its type.
    """
    blocks = [block for block in names.blocks if isinstance(block, Atoms)]
    if len(names.blocks) == 1 and isinstance(names.blocks[0], Selected):
        inner = names.blocks[0]
        return _by_argument(inner.names, argument)[inner.ids]
    constants = [block.constants[place] for block in blocks for place in _places(block, argument)]
    if not constants:
        raise _no_argument(blocks, argument)
    numbers = [as_integers(words) for words in constants]
    counted = all(found is not None and found.min(initial=0) >= 0 for found in numbers)
    if not counted and not all(words.equals(constants[0]) for words in constants):
        raise ModelError(
            f"the constants of argument '{argument}' are not non-negative integers, and not the "
            "same for all predicates, so their order is unknown: pass an array of times"
        )
    times = np.full(len(names), TIMELESS, dtype=np.int64)
    for block, offset in zip(names.blocks, names.offsets, strict=False):
        if isinstance(block, Atoms):
            own = times[offset : offset + len(block)]
            ids = block.constant_ids()
            for place in _places(block, argument):
                found = as_integers(block.constants[place]) if counted else None
                np.maximum(own, ids[place] if found is None else found[ids[place]], out=own)
    return times


def _places(block: Atoms, argument: str) -> list[int]:
    """The positions of an argument; a type that occurs several times is numbered."""
    if argument in block.labels:
        return [block.labels.index(argument)]
    numbered = [f"{argument}{1 + number}" for number in range(len(block.labels))]
    places = [place for place, label in enumerate(block.labels) if label in numbered]
    return places if len(places) > 1 else []


def _no_argument(blocks: list[Atoms], argument: str) -> UnknownNameError:
    known = list(dict.fromkeys(label for block in blocks for label in block.labels))
    close = did_you_mean(argument, known)
    if not known:
        close = " The variables here are not atoms with named arguments: pass an array of times."
    elif not close:
        close = f" There are {listed([repr(label) for label in known])}."
    return UnknownNameError(f"no predicate has an argument '{argument}'.{close}")
