"""Table 3 as the paper prints it, and the times that its text states of TensorFlow."""

from __future__ import annotations

from experiments.instances import kalman
from experiments.report import Printed

Figure = tuple[str, int | None, str]
"""Method, number of components, measure."""


def _table(
    lines: dict[tuple[str, int | None], tuple[str, str]],
) -> dict[Figure, Printed]:
    """From the distance and the time of each method."""
    return {
        (*method, measure): Printed.of(text)
        for method, texts in lines.items()
        for measure, text in zip(("l1", "seconds"), texts, strict=True)
    }


PRINTED: dict[kalman.Shape, dict[Figure, Printed]] = {
    "tree": _table(
        {
            ("EPBP", None): ("0.18 ± 0.15", "233.6"),
            ("BVI", 1): ("2.86e-5 ± 3.71e-5", "577.2"),
            ("L-BVI", 1): ("1.88e-5 ± 1.85e-5", "23.0"),
            ("C2F-BVI", 1): ("1.64e-5 ± 1.80e-5", "22.8"),
        }
    ),
    "cycle": _table(
        {
            ("EPBP", None): ("0.34 ± 0.41", "149.2"),
            ("BVI", 1): ("3.26e-5 ± 5.08e-5", "222.1"),
            ("L-BVI", 1): ("4.65e-5 ± 5.78e-5", "151.0"),
            ("C2F-BVI", 1): ("2.16e-4 ± 4.38e-4", "140.8"),
        }
    ),
}


def _times(*texts: str) -> dict[tuple[str, int | None], Printed]:
    methods = ("BVI", "L-BVI", "NPVI", "L-NPVI")
    return {(method, 1): Printed.of(text) for method, text in zip(methods, texts, strict=True)}


TENSORFLOW: dict[kalman.Shape, dict[tuple[str, int | None], Printed]] = {
    "tree": _times("107.8", "5.6", "105.7", "5.11"),
    "cycle": _times("16.3", "12.6", "15.7", "12.8"),
}
