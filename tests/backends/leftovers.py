"""Rows that pruning must not leave behind."""

from __future__ import annotations

from typing import Any

from flask_noderpc.backends.sql.store import ChainStore


def assert_no_leftovers(store: ChainStore, base: int) -> None:
    """Check that no table has rows of blocks below ``base``, except rows which that block
    needs."""
    with store._open().readers.snapshot() as at:

        def one(sql: str) -> Any:
            return at.execute(sql).fetchone()[0]

        heights = dict.fromkeys(("blocks", "results", "evidence"), "height")
        tx_hits, block_hits = (f"{kind}_{at.engine.hits}" for kind in ("tx", "block"))
        places = dict.fromkeys(("txs", "tx_slices", tx_hits), "place >> 20")
        for table, height in {**heights, **places, block_hits: "place"}.items():
            assert (one(f"SELECT min({height}) FROM {table}") or base) >= base, table
        for table in ("commits", "missed_votes"):
            assert (one(f"SELECT min(height) FROM {table}") or base) >= base - 1
        for kind in ("tx", "block"):
            all_hits = f"{kind}_{at.engine.hits} AS h"
            counted = (
                f"SELECT value_id, count(DISTINCT place) FROM {all_hits} GROUP BY value_id"
            )
            kept = f"SELECT id, places FROM {kind}_values"
            assert sorted(at.execute(counted)) == sorted(at.execute(kept))
            counted = (
                f"SELECT key_id, count(DISTINCT h.place) FROM {all_hits}"
                f" JOIN {kind}_values ON id = value_id GROUP BY key_id"
            )
            kept = f"SELECT id, places FROM {kind}_keys"
            assert sorted(at.execute(counted)) == sorted(at.execute(kept))
        offences = one("SELECT count(DISTINCT offence) FROM evidence")
        for table, column in (("validator_sets", "since"), ("validator_priorities", "height")):
            # The set of the lowest block's parent may be left, and sets of evidence.
            older = one(f"SELECT count(*) FROM {table} WHERE {column} < {base - 1}")
            assert older <= 1 + offences, table
