"""Rows that pruning must not leave behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from flask_noderpc import SQLiteBackend


def assert_no_leftovers(store: SQLiteBackend, base: int) -> None:
    """Check that no table has rows of blocks below ``base``, but for what that block needs."""
    with closing(sqlite3.connect(store.path)) as at:

        def one(sql: str) -> Any:
            return at.execute(sql).fetchone()[0]

        for table in ("blocks", "txs", "evidence", "block_hits"):
            column = "place" if table == "block_hits" else "height"
            assert (one(f"SELECT min({column}) FROM {table}") or base) >= base, table
        assert one("SELECT min(height) FROM commits") >= base - 1
        assert one("SELECT min(height) FROM signatures") >= base - 1
        for kind in ("tx", "block"):
            counted = (
                f"SELECT value_id, count(DISTINCT place) FROM {kind}_hits GROUP BY value_id"
            )
            kept = f"SELECT id, places FROM {kind}_values"
            assert sorted(at.execute(counted)) == sorted(at.execute(kept))
        assert not one(
            "SELECT count(*) FROM tx_hits WHERE place NOT IN"
            " (SELECT seq FROM txs WHERE seq IS NOT NULL)"
        )
        assert not one(
            f"SELECT count(*) FROM validator_heights WHERE height < {base - 1}"
            " AND height NOT IN (SELECT offence FROM evidence)"
        )
        assert not one(
            "SELECT count(*) FROM validators WHERE members_since NOT IN"
            " (SELECT members_since FROM validator_heights)"
        )
