"""What methods say of themselves is what they do."""

from dataclasses import dataclass, fields
from typing import ClassVar, get_args

import pytest

import hylift as hl
from hylift.errors import UnsupportedError
from hylift.inference import Request
from hylift.inference.capabilities import (
    METHODS,
    OPTIONS,
    MethodInfo,
    class_name,
    fitting_methods,
    info_of,
    method_by_key,
)
from hylift.inference.prepared import Prepared
from hylift.inference.variational.problem.families import Reals
from hylift.posterior import Posterior

COIN = hl.FactorGraph.build({"a": hl.boolean}, [(hl.Table.from_values([1, 3]), ["a"])])

each_method = pytest.mark.parametrize("info", METHODS, ids=lambda info: info.key)


@each_method
def test_a_method_carries_its_capabilities(info: MethodInfo) -> None:
    method = method_by_key(info.key)

    assert type(method) is getattr(hl, class_name(info))
    assert info_of(method) is info
    assert method.name.startswith(info.label)


@each_method
def test_options_are_fields_of_the_method(info: MethodInfo) -> None:
    names = {field.name for field in fields(type(method_by_key(info.key)))}

    assert {option.name for option in info.options if option.is_field} <= names


def test_every_option_is_for_some_method() -> None:
    assert all(fitting_methods(option) for option in OPTIONS)
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)


def test_choices_are_those_that_the_methods_take() -> None:
    choices = {option.name: option.choices for option in OPTIONS}

    assert choices["reals"] == get_args(Reals)


@pytest.mark.parametrize(
    "info", [one for one in METHODS if one.key not in ("gabp",)], ids=lambda info: info.key
)
def test_only_methods_that_can_start_take_an_earlier_posterior(info: MethodInfo) -> None:
    start = hl.infer(COIN, hl.BVI(3), tasks=("marginals", "map"))
    method = hl.MaxWalkSAT(flips=10) if info.key == "maxwalksat" else method_by_key(info.key)
    if info.key == "mean-field":
        start = hl.infer(COIN, method, tasks=("marginals", "map"))

    if info.can_start:
        assert hl.infer(COIN, method, tasks=info.answers, start=start).solution.method
        return
    with pytest.raises(UnsupportedError, match="cannot start from an earlier posterior"):
        hl.infer(COIN, method, tasks=info.answers, start=start)


def test_a_method_of_ones_own_may_say_what_it_can_do() -> None:
    plain = hl.race(COIN, [_Own(), hl.Exact()])
    trusted = hl.race(COIN, [hl.BVI(), _Trusted()])

    assert plain.yardstick is not None
    assert trusted.yardstick is not None
    assert (plain.yardstick.label, plain["own"].lift) == ("exact", "exact")
    assert (trusted.yardstick.label, trusted["own"].lift) == ("own", "none")


@dataclass(frozen=True)
class _Own:
    name: str = "own"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        return hl.MeanField().solve(prepared, request)


@dataclass(frozen=True)
class _Trusted(_Own):
    info: ClassVar[MethodInfo] = MethodInfo("own", "", "own", lift="none", trust="exact")
