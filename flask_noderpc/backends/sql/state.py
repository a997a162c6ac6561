"""Reads and writes of validator sets and consensus parameters by height.

Members and parameters are stored where they change, and hold until the next row: ``until`` is
set where the following rows were pruned. Proposer priorities change with every
height: they are stored where the members change, where they were rescaled and each 128
heights, and derived between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...domain.genesis import ConsensusParams
from ...domain.validator import Validator, ValidatorSet
from ...errors import StoreError
from ...protocol.comet.chain_state import max_data_bytes
from ...protocol.comet.validators import is_rescaled_next, rotated
from .packed import state as packed

Connection = sqlite3.Connection

PRIORITIES_EACH = 128
"""Heights between two stored rows of priorities."""

# A chain that was filled downwards has them where the upstream was asked.
_MAX_ROTATIONS = 1_024


def _in_force(at: Connection, table: str, column: str, height: int) -> tuple[bytes, int] | None:
    """Return a column of the row that holds at a height, and from where on it does."""
    row = at.execute(
        f"SELECT {column}, since, until FROM {table} WHERE since <= ?"
        " ORDER BY since DESC LIMIT 1",
        (height,),
    ).fetchone()
    if row is None or (row[2] is not None and row[2] < height):
        return None
    return row[0], row[1]


def validators(at: Connection, height: int) -> ValidatorSet | None:
    """Return the set that signs this height; ``None`` where it is not known."""
    if not _is_known(at, height):
        return None
    members = _in_force(at, "validator_sets", "members", height)
    stored = at.execute(
        "SELECT priorities, height FROM validator_priorities"
        " WHERE height <= ? ORDER BY height DESC LIMIT 1",
        (height,),
    ).fetchone()
    if members is None or stored is None:
        return None
    row, at_height = stored
    if at_height < members[1] or height - at_height > _MAX_ROTATIONS:
        # Of an older set, or of a height too far below: those of this one are not known.
        return None
    found = packed.unpack_priorities(row, at_height, packed.unpack_members(*members))
    # CometBFT: state/store.go, LoadValidators.
    return rotated(found, height - at_height) if height > at_height else found


def _is_known(at: Connection, height: int) -> bool:
    """Return true from below the lowest block, whose commit that set signed, to two above the
    highest, and where the evidence in a block has an offence."""
    low, high, first, trusted = at.execute(
        "SELECT (SELECT min(height) FROM blocks), (SELECT max(height) FROM blocks),"
        " (SELECT initial_height FROM chain), (SELECT trusted_height FROM chain)"
    ).fetchone()
    if first is None or height < first:
        return False
    last = high or trusted or first - 1
    if (low or last + 1) - 1 <= height <= last + 2:
        return True
    offence = at.execute("SELECT 1 FROM evidence WHERE offence = ?", (height,)).fetchone()
    return offence is not None and height < (low or 0)


def addresses(at: Connection, height: int) -> Sequence[bytes]:
    """Return the addresses of the set that signs this height, as far as it is known."""
    row = _in_force(at, "validator_sets", "members", height)
    return () if row is None else packed.addresses(*row)


def write_set(at: Connection, height: int, found: ValidatorSet) -> None:
    """Store the set of this height with its priorities; its members only if they are not those
    of the height before."""
    row = _in_force(at, "validator_sets", "members", height)
    if row is None or row[0] != packed.pack_members(found.validators):
        write_members(at, height, found.validators)
    write_priorities(at, height, found)


def write_members(at: Connection, since: int, members: Sequence[Validator]) -> None:
    """Store the members that hold from this height on."""
    at.execute(
        "INSERT OR REPLACE INTO validator_sets (since, size, members) VALUES (?, ?, ?)",
        (since, len(members), packed.pack_members(members)),
    )


def write_priorities(at: Connection, height: int, members: ValidatorSet) -> None:
    """Store the proposer priorities of this height."""
    at.execute(
        "INSERT OR REPLACE INTO validator_priorities (height, priorities) VALUES (?, ?)",
        (height, packed.pack_priorities(members)),
    )


def drop_derived(at: Connection, height: int, before: ValidatorSet) -> None:
    """Remove the priorities of a height if they, and all that are derived from them, follow
    from the set of the height before."""
    found = validators(at, height)
    if found is None or height % PRIORITIES_EACH == 0:
        return
    if rotated(before) == found and not is_rescaled_next(found):
        at.execute("DELETE FROM validator_priorities WHERE height = ?", (height,))


def hold_from(at: Connection, table: str, height: int) -> None:
    """Let the lowest set, or the lowest parameters, hold one height earlier."""
    at.execute(
        f"UPDATE OR REPLACE {table} SET since = ? WHERE since = ?",
        (height, height + 1),
    )


_PARAMS = "SELECT params, since FROM consensus_params"


def params(at: Connection, height: int) -> ConsensusParams | None:
    """Return the parameters in force at this height."""
    row = _in_force(at, "consensus_params", "params", height)
    return None if row is None else packed.unpack_params(*row)


def block_limits(at: Connection) -> tuple[int, int]:
    """Bytes of transactions and gas that fit the next block; -1 is no limit."""
    row = at.execute(f"{_PARAMS} ORDER BY since DESC LIMIT 1").fetchone()
    if row is None:
        raise StoreError("the store holds no chain yet: init_chain or init_at comes first")
    (members,) = at.execute(
        "SELECT size FROM validator_sets ORDER BY since DESC LIMIT 1"
    ).fetchone()
    block = packed.unpack_params(*row).block
    return max_data_bytes(block, members), block.max_gas


def write_params(
    at: Connection, since: int, value: ConsensusParams, until: int | None = None
) -> None:
    """Store the parameters that hold from this height on, or until another one only."""
    at.execute(
        "INSERT OR REPLACE INTO consensus_params (since, until, params) VALUES (?, ?, ?)",
        (since, until, packed.pack_params(value)),
    )
