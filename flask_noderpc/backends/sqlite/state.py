"""Reads and writes of validator sets, consensus parameters and commits by height.

The members of a validator set are stored where they change; their priorities, which
change with every height, are one short row a height. So each height costs the same to
read, however far it is from the last change.
"""

from __future__ import annotations

import sqlite3

from ... import jsoncodec
from ...domain.abci import ExecTxResult
from ...domain.block import Commit
from ...domain.genesis import ConsensusParams
from ...domain.validator import ValidatorSet
from ...errors import StoreError
from ...protocol.comet.chain_state import max_data_bytes
from . import rows

Connection = sqlite3.Connection


def validators(connection: Connection, height: int) -> ValidatorSet | None:
    """The set that signs this height."""
    row = connection.execute(
        "SELECT members_since, proposer, priorities FROM validator_heights WHERE height = ?",
        (height,),
    ).fetchone()
    if row is None:
        return None
    since, proposer, priorities = row
    members = connection.execute(
        "SELECT address, key_type, key, voting_power FROM validators"
        " WHERE members_since = ? ORDER BY position",
        (since,),
    )
    pairs = zip(members, jsoncodec.decode(priorities, list[int]), strict=True)
    return ValidatorSet(
        tuple(rows.validator_from(member, priority) for member, priority in pairs), proposer
    )


def members_since(connection: Connection, height: int) -> int:
    """Return the height at which the members of this height's set last changed."""
    row = connection.execute(
        "SELECT members_since FROM validator_heights WHERE height = ?", (height,)
    ).fetchone()
    since: int = row[0]
    return since


def write_members(connection: Connection, since: int, members: ValidatorSet) -> None:
    """Store the members that hold from this height on."""
    connection.executemany(
        "INSERT INTO validators (members_since, position, address, key_type, key, voting_power)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            (since, at, v.address, v.pub_key.type, v.pub_key.value, v.voting_power)
            for at, v in enumerate(members.validators)
        ),
    )


def write_priorities(
    connection: Connection, height: int, since: int, members: ValidatorSet
) -> None:
    """Store the proposer priorities of this height."""
    priorities = [v.proposer_priority for v in members.validators]
    connection.execute(
        "INSERT INTO validator_heights (height, members_since, proposer, priorities)"
        " VALUES (?, ?, ?, ?)",
        (height, since, members.proposer, jsoncodec.encode(priorities).decode()),
    )


def params(connection: Connection, height: int) -> ConsensusParams | None:
    """The parameters in force at this height."""
    row = connection.execute(
        "SELECT params FROM consensus_params WHERE since <= ? ORDER BY since DESC LIMIT 1",
        (height,),
    ).fetchone()
    return None if row is None else rows.params_from(row[0])


def block_limits(connection: Connection) -> tuple[int, int]:
    """Bytes of transactions and gas that fit the next block; -1 is no limit."""
    row = connection.execute(
        "SELECT params FROM consensus_params ORDER BY since DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise StoreError("the store holds no chain yet: init_chain comes first")
    (members,) = connection.execute(
        "SELECT count(*) FROM validators"
        " WHERE members_since = (SELECT max(members_since) FROM validators)"
    ).fetchone()
    block = rows.params_from(row[0]).block
    return max_data_bytes(block, members), block.max_gas


def write_params(connection: Connection, since: int, value: ConsensusParams) -> None:
    """Store the parameters that hold from this height on."""
    connection.execute(
        "INSERT INTO consensus_params (since, params) VALUES (?, ?)",
        (since, rows.params_text(value)),
    )


def commit(connection: Connection, height: int) -> Commit | None:
    """The precommits for the block at this height."""
    row = connection.execute(
        "SELECT round, block_hash, parts_total, parts_hash FROM commits WHERE height = ?",
        (height,),
    ).fetchone()
    if row is None:
        return None
    signatures = connection.execute(
        "SELECT flag, validator_address, time, signature FROM signatures"
        " WHERE height = ? ORDER BY position",
        (height,),
    )
    return rows.commit_from(height, row, signatures)


def tx_results(connection: Connection, height: int) -> tuple[ExecTxResult, ...]:
    """The results of the transactions of this block."""
    found = connection.execute(
        f"SELECT {rows.TX_RESULT_COLUMNS} FROM txs WHERE height = ? ORDER BY position",
        (height,),
    )
    return tuple(rows.exec_tx_result_from(row) for row in found)
