"""Reads of a version 0.1 store, for its migration.

In version 0.1 a block had one row without packed columns, and one row for each signature and
transaction; events were JSON.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ... import jsoncodec
from ...domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from ...domain.block import (
    Block,
    BlockID,
    Commit,
    CommitSig,
    DuplicateVoteEvidence,
    Evidence,
    Header,
    LightClientAttackEvidence,
    PartSetHeader,
    Version,
)
from ...domain.genesis import ConsensusParams, ConsensusParamsUpdate, Genesis
from ...domain.time import ZERO_TIME
from ...domain.validator import PublicKey, Validator, ValidatorSet, ValidatorUpdate

Connection = sqlite3.Connection

RENAMED = (
    "blocks",
    "chain",
    "commits",
    "consensus_params",
    "evidence",
    "pending_evidence",
    "txs",
    "validators",
)
"""Tables of version 0.1 whose names version 0.2 uses as well; a migration renames them to
``v1_…``."""

# Tables and columns that the commits of version 0.1 added one after another, with the index of
# new columns that this version's tables need.
_TABLES = {
    "pending_evidence": "hash BLOB PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL",
    "rewinds": "number INTEGER PRIMARY KEY, height INTEGER NOT NULL",
    "filters": "id TEXT PRIMARY KEY, kind TEXT NOT NULL, cursor INTEGER NOT NULL,"
    " criteria TEXT NOT NULL, expires INTEGER NOT NULL",
    "tx_values": "id INTEGER PRIMARY KEY",
    "tx_hits": "place INTEGER NOT NULL",
    "block_values": "id INTEGER PRIMARY KEY",
    "block_hits": "place INTEGER NOT NULL",
}
_COLUMNS: dict[str, tuple[dict[str, str], str]] = {
    "chain": ({"application": "TEXT NOT NULL DEFAULT ''"}, ""),
    "filters": ({"owner": "TEXT NOT NULL DEFAULT ''"}, ""),
    "lease": ({"last_error": "TEXT NOT NULL DEFAULT ''"}, ""),
    "mempool": (
        dict.fromkeys(("other_hash", "sender", "fee_cap", "tip"), "BLOB")
        | {"nonce": "INTEGER"},
        "CREATE UNIQUE INDEX mempool_sender ON mempool (sender, nonce);"
        "CREATE INDEX mempool_other_hash ON mempool (other_hash)",
    ),
    "tx_cache": (
        {"arrival": "INTEGER"},
        "CREATE INDEX tx_cache_arrival ON tx_cache (arrival)",
    ),
    # Without numbers of transactions there was no index: this version indexes all of them.
    "txs": ({"seq": "INTEGER"}, "UPDATE txs SET seq = rowid"),
}

_HEADER = (
    "height, version_block, version_app, time, last_block_hash, last_parts_total,"
    " last_parts_hash, last_commit_hash, data_hash, validators_hash,"
    " next_validators_hash, consensus_hash, app_hash, last_results_hash,"
    " evidence_hash, proposer_address"
)
_RESULTS = "begin_events, end_events, validator_updates, param_updates, next_app_hash"
_TX_RESULT = "code, data, log, info, gas_wanted, gas_used, codespace, events"

_KINDS: dict[str, type[Evidence]] = {
    "duplicate_vote": DuplicateVoteEvidence,
    "light_client_attack": LightClientAttackEvidence,
}


def is_applied(steps: Sequence[str]) -> bool:
    """Return true if a commit of version 0.1 has applied these migration steps."""
    return bool(steps) and all(name.startswith("m0") for name in steps)


def complete(at: Connection) -> None:
    """Add the tables and columns of version 0.1 that a store of one of its earlier commits
    lacks."""
    for table, definition in _TABLES.items():
        at.execute(f"CREATE TABLE IF NOT EXISTS {table} ({definition}) STRICT")
    for table, (columns, then) in _COLUMNS.items():
        known = {name for _, name, *_ in at.execute(f"PRAGMA table_info({table})").fetchall()}
        missing = [name for name in columns if name not in known]
        for name in missing:
            at.execute(f"ALTER TABLE {table} ADD COLUMN {name} {columns[name]}")
        for statement in then.split(";") if missing and then else ():
            at.execute(statement)


def chain(at: Connection) -> tuple[Genesis, bytes, str] | None:
    """Return the genesis, the app hash before the first block, and the application's name;
    ``None`` once they are migrated."""
    row = at.execute(
        "SELECT genesis, app_state, app_hash, application FROM v1_chain"
    ).fetchone()
    if row is None:
        return None
    document, app_state, app_hash, application = row
    genesis = jsoncodec.decode(document, Genesis)
    return replace(genesis, app_state=app_state), app_hash, application


def highest(at: Connection) -> int | None:
    """Return the height of the highest block that is not migrated yet, or ``None``."""
    found: int | None = at.execute("SELECT max(height) FROM v1_blocks").fetchone()[0]
    return found


def block(at: Connection, height: int, chain_id: str) -> tuple[Block, BlockResults]:
    """Return a block without its last commit and transactions, and its results without those
    of transactions."""
    pieces = at.execute(
        "SELECT kind, body FROM v1_evidence WHERE height = ? ORDER BY position", (height,)
    )
    evidence = tuple(jsoncodec.decode(body, _KINDS[kind]) for kind, body in pieces)
    return Block(_header(at, height, chain_id), (), evidence), _results(at, height)


def tx_count(at: Connection, height: int) -> int:
    """Return the number of a block's transactions in the old table."""
    found = at.execute("SELECT count(*) FROM v1_txs WHERE height = ?", (height,)).fetchone()
    return int(found[0])


def txs(at: Connection, height: int, first: int, most: int) -> list[tuple[bytes, ExecTxResult]]:
    """Return a block's transactions from position ``first`` on, with their results, until their
    total size exceeds ``most`` bytes."""
    rows = at.execute(
        f"SELECT tx, {_TX_RESULT} FROM v1_txs WHERE height = ? AND position >= ?"
        " ORDER BY position",
        (height, first),
    )
    found = []
    for tx, *row in rows:
        found.append((tx, _tx_result(row)))
        most -= len(tx) + sum(len(each) for each in row if isinstance(each, str | bytes))
        if most < 0:
            break
    return found


def indexed(at: Connection, height: int) -> list[int]:
    """Return the positions of a block's indexed transactions."""
    found = at.execute(
        "SELECT position FROM v1_txs WHERE height = ? AND seq IS NOT NULL ORDER BY position",
        (height,),
    )
    return [position for (position,) in found]


def _header(at: Connection, height: int, chain_id: str) -> Header:
    _, block, app, time, last_hash, last_total, last_parts, *hashes = at.execute(
        f"SELECT {_HEADER} FROM v1_blocks WHERE height = ?", (height,)
    ).fetchone()
    last_id = BlockID(last_hash, PartSetHeader(last_total, last_parts))
    return Header(Version(block, app), chain_id, height, time, last_id, *hashes)


def _results(at: Connection, height: int) -> BlockResults:
    begin, end, updates, params, app_hash = at.execute(
        f"SELECT {_RESULTS} FROM v1_blocks WHERE height = ?", (height,)
    ).fetchone()
    return BlockResults(
        height,
        (),
        _events(begin),
        _events(end),
        jsoncodec.decode(updates, tuple[ValidatorUpdate, ...]),
        jsoncodec.decode(params, ConsensusParamsUpdate | None),
        app_hash,
    )


def _tx_result(row: Sequence[Any]) -> ExecTxResult:
    code, data, log, info, gas_wanted, gas_used, codespace, events = row
    return ExecTxResult(code, data, log, info, gas_wanted, gas_used, _events(events), codespace)


# Key or value of an event attribute: a string if it was UTF-8, otherwise base64 in a list with
# one element.
_Text = str | tuple[bytes]
_EventRow = tuple[str, tuple[tuple[_Text, _Text, bool], ...]]


def _bytes(value: _Text) -> bytes:
    return value.encode() if isinstance(value, str) else value[0]


def _events(text: str) -> tuple[Event, ...]:
    return tuple(
        Event(
            kind,
            tuple(EventAttribute(_bytes(k), _bytes(v), index) for k, v, index in attributes),
        )
        for kind, attributes in jsoncodec.decode(text, tuple[_EventRow, ...])
    )


def block_id(at: Connection, height: int) -> tuple[BlockID, int]:
    """Return the ID and size of a block."""
    digest, total, parts_hash, size = at.execute(
        "SELECT hash, parts_total, parts_hash, size FROM v1_blocks WHERE height = ?", (height,)
    ).fetchone()
    return BlockID(digest, PartSetHeader(total, parts_hash)), size


def commit_heights(at: Connection) -> list[int]:
    """Return the heights of the commits that are not migrated yet."""
    return [height for (height,) in at.execute("SELECT height FROM v1_commits")]


def commit(at: Connection, height: int) -> Commit | None:
    """Return the commit for a block, or ``None``."""
    row = at.execute(
        "SELECT round, block_hash, parts_total, parts_hash FROM v1_commits WHERE height = ?",
        (height,),
    ).fetchone()
    if row is None:
        return None
    round_number, block_hash, total, parts_hash = row
    found = at.execute(
        "SELECT flag, validator_address, time, signature FROM signatures"
        " WHERE height = ? ORDER BY position",
        (height,),
    )
    signatures = tuple(
        CommitSig(flag, address, ZERO_TIME if time is None else time, signature)
        for flag, address, time, signature in found
    )
    return Commit(height, round_number, BlockID(block_hash, PartSetHeader(total, parts_hash)),
                  signatures)  # fmt: skip


def pending_evidence(at: Connection) -> Iterator[Evidence]:
    """Yield the pending evidence."""
    for kind, body in at.execute("SELECT kind, body FROM v1_pending_evidence").fetchall():
        yield jsoncodec.decode(body, _KINDS[kind])


def params(at: Connection) -> Iterator[tuple[int, ConsensusParams]]:
    """Yield all consensus parameters, each with the height from which it was in force."""
    for since, text in at.execute("SELECT since, params FROM v1_consensus_params").fetchall():
        yield since, jsoncodec.decode(text, ConsensusParams)


def next_set(at: Connection) -> int | None:
    """Return the height from which the lowest validator set that is not migrated yet is in
    force, or ``None``."""
    found: int | None = at.execute("SELECT min(members_since) FROM v1_validators").fetchone()[0]
    return found


def members(at: Connection, since: int) -> tuple[Validator, ...]:
    """Return the members of the validator set in force from height ``since``, without
    priorities."""
    found = at.execute(
        "SELECT address, key_type, key, voting_power FROM v1_validators"
        " WHERE members_since = ? ORDER BY position",
        (since,),
    )
    return tuple(
        Validator(address, PublicKey(kind, key), power) for address, kind, key, power in found
    )


def priorities(at: Connection, limit: int) -> list[tuple[int, int, str, bytes]]:
    """Return rows of the lowest heights that are not migrated yet: the height, the height from
    which its members are in force, the priorities as JSON, and the proposer."""
    return at.execute(
        "SELECT height, members_since, priorities, proposer FROM validator_heights"
        " ORDER BY height LIMIT ?",
        (limit,),
    ).fetchall()


def with_priorities(
    found: Sequence[Validator], priorities: str, proposer: bytes
) -> ValidatorSet:
    """Return a validator set with its priorities."""
    pairs = zip(found, jsoncodec.decode(priorities, list[int]), strict=True)
    return ValidatorSet(tuple(replace(v, proposer_priority=p) for v, p in pairs), proposer)
