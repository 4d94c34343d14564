"""Text or Python -> Model."""

from hylift.language.builder import ModelBuilder
from hylift.language.checks.check import check
from hylift.language.report import ModelWarning
from hylift.language.statements import Model
from hylift.language.text.formatter import format_model
from hylift.language.text.parser import parse, read_model

__all__ = [
    "Model",
    "ModelBuilder",
    "ModelWarning",
    "check",
    "format_model",
    "parse",
    "read_model",
]
