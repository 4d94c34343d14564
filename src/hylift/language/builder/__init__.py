"""Models written in Python."""

from hylift.language.builder.expressions import (
    Expression,
    LogicalVariable,
    Predicate,
    absolute,
    exists,
    exp,
    forall,
    gaussian,
    log,
    maximum,
    minimum,
    normal,
)
from hylift.language.builder.model_builder import ModelBuilder, Type

__all__ = [
    "Expression",
    "LogicalVariable",
    "ModelBuilder",
    "Predicate",
    "Type",
    "absolute",
    "exists",
    "exp",
    "forall",
    "gaussian",
    "log",
    "maximum",
    "minimum",
    "normal",
]
