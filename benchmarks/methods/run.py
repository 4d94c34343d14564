"""The benchmark: measured, and told as tables."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence

from benchmarks.methods.measured import measure
from benchmarks.methods.models import MODELS
from benchmarks.methods.page import check_page, rewrite
from benchmarks.methods.tables import Table, tables
from benchmarks.setting import Setting


def run(setting: Setting) -> None:
    """every method on models of every kind: seconds, errors, log Z, MAP, lifted and ground"""
    if setting.markdown is not None and setting.markdown != "-":
        check_page(setting.markdown)
    measured = []
    for model in MODELS:
        print(f"{model.name}: {model.about}", file=sys.stderr, flush=True)
        measured.append(measure(model))
    found = tables(measured)
    if setting.markdown is None:
        print(*found, sep="\n\n")
        return
    content = as_markdown(found)
    if setting.markdown == "-":
        print(content)
    else:
        rewrite(setting.markdown, content)
        print(f"figures in {setting.markdown}")


def as_markdown(found: Sequence[Table]) -> str:
    """The tables, and on what they were measured."""
    where = (
        f"Measured with Python {platform.python_version()} on a machine with "
        f"{os.cpu_count()} cores. Times are worth comparing with each other, not with those of "
        "another machine."
    )
    return "\n\n".join([where, *(table.markdown() for table in found)])
