"""Transcripts: readable files of requests and responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"


@dataclass(frozen=True)
class Exchange:
    """A message and its response."""

    name: str
    sent: str
    answer: str


def exchanges(name: str) -> Iterator[Exchange]:
    """Yield the exchanges of a file, in order."""
    title, sent = "", ""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "#":
            title = rest
        elif mark == ">>":
            sent = rest
        elif mark == "<<":
            yield Exchange(title, sent, rest)
