"""The result of a race."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnknownNameError, UnsupportedError, did_you_mean
from hylift.posterior import LogPartition
from hylift.posterior.export import without_infinities
from hylift.racing import text
from hylift.racing.finish import Finish, Skipped
from hylift.racing.yardstick import Yardstick

EQUAL = 1e-9
"""Relative difference of energies that rounding makes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Race:
    """Methods that answered one graph, and how well; `print` shows a table."""

    finishes: tuple[Finish, ...]
    skipped: tuple[Skipped, ...]
    """Methods that refused the graph, or failed, each with its reason."""
    yardstick: Yardstick | None
    """The method that the others are compared with; None where none has trustworthy marginals."""
    seconds: float
    """Time limit of each method."""

    def __getitem__(self, label: str) -> Finish:
        for finish in self.finishes:
            if finish.label == label:
                return finish
        for one in self.skipped:
            if one.label == label:
                what = "" if one.has_failed else "took no part: "
                raise UnknownNameError(f"'{label}' {what}{one.reason}")
        labels = [finish.label for finish in self.finishes]
        raise UnknownNameError(
            f"no method named '{label}' finished: choose among {', '.join(labels)}."
            f"{did_you_mean(label, labels)}"
        )

    def __iter__(self) -> Iterator[Finish]:
        return iter(self.finishes)

    def __len__(self) -> int:
        return len(self.finishes)

    @property
    def best(self) -> Finish:
        """The method with the most trustworthy marginals: the yardstick."""
        if self.yardstick is None:
            raise UnsupportedError("no method of this race has marginals to trust: see best_map")
        return self[self.yardstick.label]

    @property
    def nearest(self) -> Finish:
        """The method nearest to the yardstick, by the mean divergence of the marginals."""
        found = [one for one in self.finishes if one.mean_kl is not None]
        if not found:
            raise UnsupportedError("no two methods of this race have marginals to compare")
        return min(found, key=lambda one: (one.mean_kl, one.seconds))

    @property
    def best_map(self) -> Finish:
        """The method that found the assignment of least energy; of several the fastest."""
        if self.least_energy is None:
            raise UnsupportedError("no method of this race has a MAP assignment")
        found = [one for one in self.finishes if one.energy is not None]
        gaps = self.above_least(np.array([one.energy for one in found]))
        return min(zip(gaps, found, strict=True), key=lambda pair: (pair[0], pair[1].seconds))[1]

    @property
    def least_energy(self) -> float | None:
        """Of the assignments that were found."""
        return min((one.energy for one in self.finishes if one.energy is not None), default=None)

    def above_least(self, energies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Differences of energies from the least one that was found; 0 within rounding."""
        least = self.least_energy
        if least is None or not math.isfinite(least):
            return np.zeros(np.shape(energies))
        gap = energies - least
        return np.where(gap <= EQUAL * (1 + abs(least)), 0.0, gap)

    def table(self) -> pa.Table:
        """An Arrow table with a row per method, those without an answer last.

        Their result is 'skipped' or 'failed', and the column skipped has the reason. Columns
        method, lift, seconds, log_z, log_z_kind, log_z_error, mean_kl, max_kl, mean_l1, max_l1,
        energy, energy_kind, result, verdict, steps, memory (bytes), is_yardstick, notes, skipped.
        """
        rows = [_row(one, self.yardstick) for one in self.finishes]
        rows += [
            {"method": one.label, "result": one.result, "skipped": one.reason}
            for one in self.skipped
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the posteriors, for JSON; a number that is infinite is the word 'inf'."""
        rows = self.table().to_pylist()
        finished = [row for row in rows if row["skipped"] is None]
        for row, finish in zip(finished, self.finishes, strict=True):
            del row["skipped"]
            row["notes"] = [*([finish.refused] if finish.refused else []), *finish.notes]
        by = self.yardstick
        return {
            "seconds": self.seconds,
            "yardstick": None if by is None else {"method": by.label, "reason": by.reason},
            "finished": without_infinities(finished),
            "skipped": [
                {"method": one.label, "result": one.result, "reason": one.reason}
                for one in self.skipped
            ],
        }

    def __repr__(self) -> str:
        by = f", yardstick {self.yardstick.label}" if self.yardstick else ""
        return f"Race({len(self.finishes)} finished, {len(self.skipped)} skipped{by})"

    def __str__(self) -> str:
        return text.plain_text(self)


SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("lift", pa.string()),
        ("seconds", pa.float64()),
        ("log_z", pa.float64()),
        ("log_z_kind", pa.string()),
        ("log_z_error", pa.float64()),
        ("mean_kl", pa.float64()),
        ("max_kl", pa.float64()),
        ("mean_l1", pa.float64()),
        ("max_l1", pa.float64()),
        ("energy", pa.float64()),
        ("energy_kind", pa.string()),
        ("result", pa.string()),
        ("verdict", pa.string()),
        ("steps", pa.int64()),
        ("memory", pa.int64()),
        ("is_yardstick", pa.bool_()),
        ("notes", pa.string()),
        ("skipped", pa.string()),
    ]
)


def _row(finish: Finish, yardstick: Yardstick | None) -> dict[str, object]:
    posterior, compared = finish.posterior, finish.comparison
    solution, assignment = posterior.solution, posterior.assignment
    row: dict[str, object] = {
        "method": finish.label,
        "lift": finish.lift,
        "seconds": finish.seconds,
        "energy": finish.energy,
        "energy_kind": None if assignment is None else assignment.kind,
        "result": solution.result,
        "verdict": posterior.trust.verdict,
        "steps": solution.steps,
        "memory": finish.memory,
        "is_yardstick": yardstick is not None and yardstick.label == finish.label,
        "notes": " ".join([*([finish.refused] if finish.refused else []), *finish.notes]) or None,
    }
    log_z: LogPartition | None = posterior.log_partition
    if log_z is not None:
        row |= {"log_z": log_z.value, "log_z_kind": log_z.kind, "log_z_error": log_z.error}
    if compared is not None:
        row |= {"mean_kl": compared.mean_kl, "max_kl": compared.max_kl}
        row |= {"mean_l1": compared.mean_l1, "max_l1": compared.max_l1}
    return row
