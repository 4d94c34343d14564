"""Text or Python -> Model."""

from hylift.language.builder import ModelBuilder
from hylift.language.check import check
from hylift.language.formatter import format_model
from hylift.language.parser import parse, read_model
from hylift.language.report import ModelWarning
from hylift.language.syntax import Model

__all__ = [
    "Model",
    "ModelBuilder",
    "ModelWarning",
    "check",
    "format_model",
    "parse",
    "read_model",
]
