"""Votes that a block lacks: table ``missed_votes``, from which a validator's signing record is
one query. Most votes are for their block, and stand in the packed commit alone."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.block import BlockIDFlag, Commit
from .connection import Connection


def write(at: Connection, commit: Commit, addresses: Sequence[bytes]) -> None:
    """Write the votes that a commit lacks, in place of those that were stored."""
    at.execute("DELETE FROM missed_votes WHERE height = ?", (commit.height,))
    at.executemany(
        "INSERT INTO missed_votes (height, validator_id, flag) VALUES (?, ?, ?)",
        [
            (commit.height, _validator_id(at, address), flag)
            for address, flag in missed(commit, addresses)
        ],
    )


def missed(commit: Commit, addresses: Sequence[bytes]) -> list[tuple[bytes, int]]:
    """Return the addresses whose votes are absent or for no block, with their flags."""
    if len(addresses) != len(commit.signatures):
        return []
    return [
        (address, int(sig.block_id_flag))
        for address, sig in zip(addresses, commit.signatures, strict=True)
        if sig.block_id_flag != BlockIDFlag.COMMIT
    ]


def stored(at: Connection, height: int) -> list[tuple[bytes, int]]:
    """Return what is stored of a height."""
    return at.execute(
        "SELECT address, flag FROM missed_votes LEFT JOIN validators ON id = validator_id"
        " WHERE height = ?",
        (height,),
    ).fetchall()


def _validator_id(at: Connection, address: bytes) -> int:
    row = at.execute("SELECT id FROM validators WHERE address = ?", (address,)).fetchone()
    if row is not None:
        return int(row[0])
    added = at.execute("INSERT INTO validators (address) VALUES (?) RETURNING id", (address,))
    return int(added.fetchone()[0])
