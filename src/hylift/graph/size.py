"""How large a graph is, or would be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """Numbers of variables and factors, and the memory that their arrays take."""

    num_variables: int
    num_factors: int
    num_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.num_variables:,} variables, {self.num_factors:,} factors, "
            f"{bytes_text(self.num_bytes)}"
        )


def bytes_text(num_bytes: float) -> str:
    """Bytes in a unit that people read."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.1f} TB"
