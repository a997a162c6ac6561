"""The banner that ``noderpc start`` prints when its node is ready, read by its titles."""

from __future__ import annotations

import re


def rows(text: str) -> dict[str, list[str]]:
    """Return the texts for each title, without lines of the log."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        row = re.fullmatch(r"(.{14}) (\S.*)", line)
        if row is None or re.match(r"\d{4}-", line):
            continue
        title = row[1].strip() or title
        found.setdefault(title, []).append(row[2])
    return found
