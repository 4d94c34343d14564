"""The API reference has every public name."""

import re
from pathlib import Path

import pytest

import hylift

PAGE = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", hylift.__all__)
def test_a_public_name_has_an_entry_and_is_in_the_overview(name: str) -> None:
    overview, _, entries = PAGE.partition("\n## ")

    assert len(re.findall(rf"^::: hylift\.([a-z_]+\.)*{name}$", entries, re.MULTILINE)) == 1
    assert f"`{name}`" in overview


def test_the_overview_names_only_what_there_is() -> None:
    rows = re.findall(r"^\|(.*)\|$", PAGE.partition("\n## ")[0], re.MULTILINE)

    named = re.findall(r"`(\w+)`", " ".join(rows))

    assert sorted(named) == sorted(hylift.__all__)
