"""Tables of evidence: pending, and included in blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...domain.block import Block, Evidence
from ...errors import EvidencePoolFull
from ...protocol.comet.chain_state import evidence_bytes
from ...protocol.comet.hashes import evidence_hash_of
from . import rows, state

Connection = sqlite3.Connection

# CometBFT has no bound; a validator that misbehaves could fill the store.
MAX_PENDING = 1_000


def write(connection: Connection, height: int, pieces: Sequence[Evidence]) -> None:
    """Store the evidence of a block."""
    connection.executemany(
        "INSERT INTO evidence (height, position, kind, body, hash, offence)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                height,
                position,
                *rows.evidence_columns(piece),
                evidence_hash_of(piece),
                piece.height,
            )
            for position, piece in enumerate(pieces)
        ),
    )


def write_stored_hashes(connection: Connection) -> None:
    """Add the hashes to evidence that an earlier version stored."""
    found = connection.execute("SELECT height, position, kind, body FROM evidence").fetchall()
    connection.executemany(
        "UPDATE evidence SET hash = ? WHERE height = ? AND position = ?",
        (
            (evidence_hash_of(rows.evidence_from(kind, body)), height, position)
            for height, position, kind, body in found
        ),
    )


def write_stored_offences(connection: Connection) -> None:
    """Add the heights of the offences to evidence that an earlier version stored."""
    found = connection.execute("SELECT height, position, kind, body FROM evidence").fetchall()
    connection.executemany(
        "UPDATE evidence SET offence = ? WHERE height = ? AND position = ?",
        (
            (rows.evidence_from(kind, body).height, height, position)
            for height, position, kind, body in found
        ),
    )


def is_known(connection: Connection, evidence_hash: bytes) -> bool:
    """Return true if evidence of this hash is pending or committed."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE hash = ?", (evidence_hash,)).fetchone()
        for table in ("pending_evidence", "evidence")
    )


def waits(connection: Connection) -> bool:
    """Return true if any evidence is pending."""
    return connection.execute("SELECT 1 FROM pending_evidence").fetchone() is not None


def add(connection: Connection, piece: Evidence) -> None:
    """Add verified evidence, unless another process was first."""
    evidence_hash = evidence_hash_of(piece)
    if is_known(connection, evidence_hash):
        return
    (count,) = connection.execute("SELECT count(*) FROM pending_evidence").fetchone()
    if count >= MAX_PENDING:
        raise EvidencePoolFull(MAX_PENDING)
    columns = (piece.height, piece.timestamp, evidence_bytes(piece))
    connection.execute(
        "INSERT INTO pending_evidence (hash, height, time, size, kind, body)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (evidence_hash, *columns, *rows.evidence_columns(piece)),
    )


def reap(connection: Connection, max_bytes: int) -> tuple[Evidence, ...]:
    """Return pending evidence that fits a block, earliest offences first."""
    # Sizes first: pending evidence may be a gigabyte, of which a block takes one thousandth.
    found = connection.execute(
        "SELECT hash, size FROM pending_evidence ORDER BY height, hash"
    ).fetchall()
    taken = []
    for evidence_hash, size in found:
        if size <= max_bytes:
            max_bytes -= size
            taken.append(_waiting(connection, evidence_hash))
    return tuple(taken)


def _waiting(connection: Connection, evidence_hash: bytes) -> Evidence:
    row = connection.execute(
        "SELECT kind, body FROM pending_evidence WHERE hash = ?", (evidence_hash,)
    )
    return rows.evidence_from(*row.fetchone())


def settle(connection: Connection, blocks: Sequence[Block]) -> None:
    """Remove pending evidence that is now in a block, or too old or too large for one."""
    connection.executemany(
        "DELETE FROM pending_evidence WHERE hash = ?",
        ((evidence_hash_of(piece),) for block in blocks for piece in block.evidence),
    )
    if not blocks or not waits(connection):
        return
    last = blocks[-1].header
    params = state.params(connection, last.height + 1)
    assert params is not None
    limits = params.evidence
    # CometBFT: evidence/pool.go, too old by both ages. Too large it is when the limit sank.
    connection.execute(
        "DELETE FROM pending_evidence WHERE size > ? OR (height < ? AND time < ?)",
        (
            limits.max_bytes,
            last.height - limits.max_age_num_blocks,
            last.time - limits.max_age_duration,
        ),
    )
