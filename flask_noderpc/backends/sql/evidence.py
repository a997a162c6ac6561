"""Tables of pending evidence, and of evidence in blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.block import Block, Evidence
from ...errors import EvidencePoolFull
from ...protocol.comet.chain_state import evidence_bytes
from ...protocol.comet.hashes import evidence_hash_of
from . import state
from .connection import Connection
from .packed import blocks as packed

# CometBFT has no limit; without one, a misbehaving validator could fill the store.
MAX_PENDING = 1_000


def write(at: Connection, height: int, pieces: Sequence[Evidence]) -> None:
    """Store the evidence of a block."""
    at.executemany(
        "INSERT INTO evidence (height, position, hash, kind, offence, evidence)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                height,
                position,
                evidence_hash_of(piece),
                packed.evidence_kind(piece),
                piece.height,
                packed.pack_evidence(piece, height, position),
            )
            for position, piece in enumerate(pieces)
        ),
    )


def block_evidence(at: Connection, height: int) -> tuple[Evidence, ...]:
    """Return the evidence of a block."""
    found = at.execute(
        "SELECT evidence, position FROM evidence WHERE height = ? ORDER BY position", (height,)
    )
    return tuple([packed.unpack_evidence(row, height, position) for row, position in found])


def is_known(connection: Connection, evidence_hash: bytes) -> bool:
    """Return true if evidence with this hash is pending or committed."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE hash = ?", (evidence_hash,)).fetchone()
        for table in ("pending_evidence", "evidence")
    )


def has_pending(connection: Connection) -> bool:
    """Return true if any evidence is pending."""
    return connection.execute("SELECT 1 FROM pending_evidence").fetchone() is not None


def add(connection: Connection, piece: Evidence) -> None:
    """Add verified evidence to the pool, unless another process has added it already."""
    evidence_hash = evidence_hash_of(piece)
    connection.engine.lock_mempool(connection)
    if is_known(connection, evidence_hash):
        return
    (count,) = connection.execute("SELECT count(*) FROM pending_evidence").fetchone()
    if count >= MAX_PENDING:
        raise EvidencePoolFull(MAX_PENDING)
    columns = (piece.height, piece.timestamp, evidence_bytes(piece))
    connection.execute(
        "INSERT INTO pending_evidence (hash, height, time, size, evidence)"
        " VALUES (?, ?, ?, ?, ?)",
        (evidence_hash, *columns, packed.pack_evidence(piece, piece.height, evidence_hash)),
    )


def reap(connection: Connection, max_bytes: int) -> tuple[Evidence, ...]:
    """Return pending evidence of at most ``max_bytes`` for a block, earliest offences
    first."""
    # Read only the sizes first: pending evidence may take a gigabyte, and a block fits a
    # thousandth of it.
    found = connection.execute(
        "SELECT hash, size FROM pending_evidence ORDER BY height, hash"
    ).fetchall()
    taken = []
    for evidence_hash, size in found:
        if size <= max_bytes:
            max_bytes -= size
            taken.append(pending_piece(connection, evidence_hash))
    return tuple(taken)


def pending_piece(connection: Connection, evidence_hash: bytes) -> Evidence:
    """Return the pending evidence with this hash."""
    row, height = connection.execute(
        "SELECT evidence, height FROM pending_evidence WHERE hash = ?", (evidence_hash,)
    ).fetchone()
    return packed.unpack_evidence(row, height, evidence_hash)


def remove_settled(connection: Connection, blocks: Sequence[Block]) -> None:
    """Remove pending evidence that these blocks contain, or that is too old or too large for a
    block."""
    connection.executemany(
        "DELETE FROM pending_evidence WHERE hash = ?",
        ((evidence_hash_of(piece),) for block in blocks for piece in block.evidence),
    )
    if not blocks or not has_pending(connection):
        return
    last = blocks[-1].header
    params = state.params(connection, last.height + 1)
    assert params is not None
    limits = params.evidence
    # As in CometBFT (evidence/pool.go), evidence is too old only if its age exceeds the limits
    # both in blocks and in time. It is too large if the limit was lowered.
    connection.execute(
        "DELETE FROM pending_evidence WHERE size > ? OR (height < ? AND time < ?)",
        (
            limits.max_bytes,
            last.height - limits.max_age_num_blocks,
            last.time - limits.max_age_duration,
        ),
    )
