"""What methods say of themselves is what they do."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, get_args

import pytest

import hylift as hl
from hylift.errors import UnsupportedError
from hylift.inference import Request
from hylift.inference.capabilities import (
    METHODS,
    NO_EXACT,
    OPTIONS,
    MethodInfo,
    fitting_methods,
    info_of,
)
from hylift.inference.method import method_by_key
from hylift.inference.prepared import Prepared
from hylift.inference.variational.problem import Reals
from hylift.posterior import Posterior

COIN = hl.FactorGraph.build({"a": hl.boolean}, [(hl.Table.from_values([1, 3]), ["a"])])

each_method = pytest.mark.parametrize("info", METHODS, ids=lambda info: info.key)


@each_method
def test_a_method_carries_its_capabilities(info: MethodInfo) -> None:
    method = method_by_key(info.key)

    assert type(method) is getattr(hl, info.class_name)
    assert info_of(method) is info
    assert type(method_by_key(info.key, **dict(info.quick))) is type(method)
    assert method.name.startswith(info.label)


def test_the_table_of_the_documentation_has_every_method_and_what_it_answers() -> None:
    text = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    table = text.partition("| method | takes | answers | its log Z |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[1:]]
    documented = {re.findall(r"`hl\.(\w+)", row[0])[0]: row[2:] for row in rows}

    assert documented.keys() == {info.class_name for info in METHODS}
    for info in METHODS:
        answers, log_z = documented[info.class_name]
        named = {task for task in ("marginals", "map") if task in answers.lower()}
        assert (log_z != "none") == ("logz" in info.answers), info.key
        assert answers.startswith("all") or named == {*info.answers} - {"logz"}, info.key


@each_method
def test_options_are_fields_of_the_method(info: MethodInfo) -> None:
    names = {field.name for field in fields(type(method_by_key(info.key)))}

    assert {option.name for option in info.options if option.is_field} <= names


def test_every_option_is_for_some_method() -> None:
    of_auto = NO_EXACT
    assert all(fitting_methods(option) for option in OPTIONS if option is not of_auto)
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)


def test_choices_are_those_that_the_methods_take() -> None:
    choices = {option.name: option.choices for option in OPTIONS}

    assert choices["reals"] == get_args(Reals)


@pytest.mark.parametrize(
    "info", [one for one in METHODS if one.key not in ("gabp",)], ids=lambda info: info.key
)
def test_only_methods_that_can_start_take_an_earlier_posterior(info: MethodInfo) -> None:
    start = hl.infer(COIN, hl.BVI(3), tasks=("marginals", "map"))
    method = method_by_key(info.key, **dict(info.quick))
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
    info: ClassVar[MethodInfo] = MethodInfo("own", "own", lift="none", trust="exact")
