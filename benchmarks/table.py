"""Table of results, printed and stored as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .compare import Row


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of text, with a name."""

    name: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...] = ()
    """The measured rows, if the table has requests."""

    def text(self) -> str:
        """Return the table as text."""
        lines = (self.header, *self.lines)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) for cell, width in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def save(self, folder: Path) -> None:
        """Write ``<name>.csv``."""
        with (folder / f"{self.name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows((self.header, *self.lines))


def of_rows(name: str, peers: Sequence[str], rows: Sequence[Row]) -> Table:
    """Return the table of requests a second in each way, with the ratios to the peers."""
    shown = [peer for peer in peers if any(peer in row.ratios for row in rows)]
    header = ("Workload", "Way", "A second", "p50 ms", "p99 ms")
    lines = tuple(
        (
            row.workload,
            row.way,
            f"{row.run.per_second:,.0f}",
            f"{row.run.p50_ms:.2f}",
            f"{row.run.p99_ms:.2f}",
            *(f"{row.ratios[peer]:.2f}" if peer in row.ratios else "" for peer in shown),
            *verdict(row.wanted(), row.missed()),
        )
        for row in rows
    )
    return Table(
        name, (*header, *(f"/ {peer}" for peer in shown), "Target", "Met"), lines, tuple(rows)
    )


def verdict(wanted: Sequence[str], missed: Sequence[str]) -> tuple[str, str]:
    """Return the cells for the minimum ratios, and for whether they hold."""
    if not wanted:
        return "", ""
    return "; ".join(wanted), f"no: {'; '.join(missed)}" if missed else "yes"
