"""Transactions of an account as a CSV or JSON file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import cache

from flask import Response

from .. import jsoncodec
from ..domain.time import to_text
from .history import Found, HistoryRow
from .node import Node

_COLUMNS = "hash", "height", "time", "code", "kind", "direction", "amount", "ethereum_hash"


def export(node: Node, address: str, found: Found, kind: str) -> Response:
    """Return the rows as a CSV or JSON file for download."""
    lines = list(_lines(node, found.rows))
    if kind == "json":
        body = jsoncodec.encode({"address": address, "txs": lines, "cursor": found.following})
        mime = "application/json"
    else:
        table = io.StringIO()
        writer = csv.DictWriter(table, _COLUMNS)
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in each.items()} for each in lines)
        body, mime = table.getvalue().encode(), "text/csv; charset=utf-8"
    # The address has only letters and digits.
    name = f"{address}.{kind}"
    return Response(
        body,
        content_type=mime,
        headers={"Content-Disposition": f"attachment; filename={name}"},
    )


def _lines(node: Node, rows: Sequence[HistoryRow]) -> Iterator[dict[str, str | int]]:
    read = cache(node.time_of)
    for row in rows:
        made = read(row.height)
        yield {
            "hash": row.hash,
            "height": row.height,
            "time": "" if made is None else to_text(made),
            "code": row.code,
            "kind": row.kind,
            "direction": row.direction,
            "amount": row.amount,
            "ethereum_hash": row.ethereum_hash,
        }


def _cell(value: str | int) -> str | int:
    """Return a value that a spreadsheet does not take for a formula."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
