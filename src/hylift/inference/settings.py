"""Checks of arguments and settings that several methods and commands have."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable
from typing import Any, get_args

from hylift.errors import UnsupportedError, check_word
from hylift.graph import FactorGraph
from hylift.inference.capabilities import METHODS, Task
from hylift.words import Wording, either, option, worded


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Raise unless a setting is an integer of at least so much."""
    try:
        fits = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        fits = False
    if not fits:
        raise UnsupportedError(
            worded(option(name), f" must be an integer of at least {least}, not {value!r}")
        )


def check_graph(who: str, graph: Any) -> None:
    """Raise unless the argument is a graph; `who` is such as 'a race takes'."""
    if not isinstance(graph, FactorGraph):
        raise UnsupportedError(
            f"{who} a FactorGraph, such as hl.ground(model, evidence) makes, not a value of type "
            f"'{type(graph).__name__}'"
        )


def check_ground(what: str, graph: FactorGraph, remedy: Wording | None = None) -> None:
    """Raise unless a graph is ground; `what` is such as 'Gibbs needs a ground graph'."""
    if not graph.is_ground:
        raise UnsupportedError(
            f"{what}: this one is lifted, and the joint distribution of the members of a class is "
            "not in it",
            remedy,
        )


def check_tasks(tasks: Iterable[str]) -> None:
    """Raise if one of the tasks does not exist."""
    for task in tasks:
        check_word("task", task, get_args(Task))


def checked_seconds(seconds: Any) -> float:
    """The time; raises unless it is a positive number."""
    if not is_number(seconds) or not seconds > 0:
        raise UnsupportedError(
            worded(option("seconds"), f" must be a positive number, not {seconds!r}")
        )
    return float(seconds)


def checked_seed(seed: Any) -> int:
    """The seed; raises unless it is a non-negative integer."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise UnsupportedError(
            worded(option("seed"), f" must be a non-negative integer, not {seed!r}")
        )
    return number


def refuse_start(name: str, start: object) -> None:
    """Raise if a method is given an earlier posterior and cannot start from one."""
    if start is not None:
        able = [info for info in METHODS if info.can_start]
        raise UnsupportedError(
            f"{name} cannot start from an earlier posterior",
            Wording(
                f"leave start out, or use {either([f'{one.class_name}()' for one in able])}",
                f"leave --start out, or use --method {either([one.key for one in able])}",
            ),
        )


def is_number(value: Any) -> bool:
    """Return whether a setting is a real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
