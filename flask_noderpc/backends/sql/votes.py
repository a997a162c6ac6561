"""Votes that a block lacks: table ``missed_votes``, from which a validator's signing record is
one query. Most votes are for their block, and stand in the packed commit alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...domain.block import BlockIDFlag, Commit
from .connection import Connection


def write(at: Connection, signed: Sequence[tuple[Commit, Sequence[bytes]]]) -> None:
    """Write the votes that commits lack, in place of those that were stored; each commit comes
    with the addresses of the set that signed it."""
    at.executemany(
        "DELETE FROM missed_votes WHERE height = ?", [(commit.height,) for commit, _ in signed]
    )
    lacking = [
        (commit.height, address, flag)
        for commit, addresses in signed
        for address, flag in missed(commit, addresses)
    ]
    ids = _validator_ids(at, dict.fromkeys(address for _, address, _ in lacking))
    at.executemany(
        "INSERT INTO missed_votes (height, validator_id, flag) VALUES (?, ?, ?)",
        [(height, ids[address], flag) for height, address, flag in lacking],
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


def _validator_ids(at: Connection, addresses: Iterable[bytes]) -> dict[bytes, int]:
    """Return the ids of validators; new ones get theirs."""
    wanted = [(address,) for address in addresses]
    at.executemany("INSERT INTO validators (address) VALUES (?) ON CONFLICT DO NOTHING", wanted)
    found = at.each("SELECT id FROM validators WHERE address = ?", wanted)
    return {address: rows[0][0] for (address,), rows in zip(wanted, found, strict=True)}
