"""Read and write validator sets and consensus parameters by height.

Members (validators without priorities) and parameters are stored when they change, and are in
force until the next row. Proposer priorities change at every height. They are stored when the
members change, when they are rescaled, and every 128 heights; between these heights they are
computed.

The column ``until`` is the last height of a row. Rows of parameters and priorities have it if
another row follows, so that the loss of a row is detected. Rows of members have it if the
following rows were pruned; otherwise the checksum of the members in the priorities detects a
lost row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...domain.genesis import ConsensusParams
from ...domain.validator import Validator, ValidatorSet
from ...errors import StoreError
from ...protocol.comet.chain_state import max_data_bytes
from ...protocol.comet.validators import is_rescaled_next, rotated
from .connection import Connection
from .packed import state as packed
from .packed.blocks import DamagedRow, reseal

PRIORITIES_EACH = 128
"""Maximum number of heights between two stored rows of priorities in an appended chain."""

# Maximum number of heights over which priorities are computed. Stored priorities can be this
# far apart in a backfilled chain, which only has those that an upstream node returned.
_MAX_ROTATIONS = 1_024


# For each table: key column, packed column, and name in errors.
_COLUMNS = {
    "validator_sets": ("since", "members", "validator set"),
    "validator_priorities": ("height", "priorities", "proposer priorities"),
    "consensus_params": ("since", "params", "consensus parameters"),
}
_Row = tuple[bytes, int, int | None]


def _at_or_below(at: Connection, table: str, height: int) -> _Row | None:
    key, column, _ = _COLUMNS[table]
    row: _Row | None = at.execute(
        f"SELECT {column}, {key}, until FROM {table} WHERE {key} <= ?"
        f" ORDER BY {key} DESC LIMIT 1",
        (height,),
    ).fetchone()
    return row


def _row_in_force(at: Connection, table: str, height: int) -> _Row | None:
    """Return the packed row in force at a height, with its first and last height, or
    ``None``."""
    row = _at_or_below(at, table, height)
    return row if row is not None and _is_in_force(row, height) else None


def _is_in_force(row: Sequence[Any], height: int) -> bool:
    _, _, until = row
    return until is None or until >= height


# Read all in one statement, because each statement is a round trip to a remote database.
_SET = (
    "SELECT (SELECT min(height) FROM {heights}), (SELECT max(height) FROM {heights}),"
    " (SELECT initial_height FROM chain), (SELECT trusted_height FROM chain), s.*, p.* FROM"
    " (SELECT members, since, until FROM validator_sets WHERE since <= ?"
    "  ORDER BY since DESC LIMIT 1) AS s"
    " CROSS JOIN (SELECT priorities, height, until FROM validator_priorities WHERE height <= ?"
    "  ORDER BY height DESC LIMIT 1) AS p"
)


def validators(at: Connection, height: int) -> ValidatorSet | None:
    """Return the validator set that signs this height; ``None`` if it is not known."""
    stored = at.execute(_SET.format(heights=at.engine.heights), (height, height)).fetchone()
    if stored is None or not _is_known(at, height, stored[:4]):
        return None
    return _set_of(stored[4:], height)


def _set_of(stored: Sequence[Any], height: int) -> ValidatorSet | None:
    """Return the validator set of a height from the rows of its members and priorities."""
    members, (row, at_height, until) = stored[:3], stored[3:]
    if not _is_in_force(members, height):
        return None
    if until is not None and until < height:
        raise DamagedRow("proposer priorities", height, "they are missing")
    if at_height < members[1] or height - at_height > _MAX_ROTATIONS:
        # The stored priorities are of an older set, or of a height too far below, so those of
        # this height can't be computed.
        return None
    found = packed.unpack_priorities(row, at_height, until, packed.unpack_members(*members))
    # CometBFT: state/store.go, LoadValidators.
    return rotated(found, height - at_height) if height > at_height else found


def _is_known(at: Connection, height: int, known: Sequence[Any]) -> bool:
    """Return true if the set of a height should be stored: from one height below the lowest
    block (that set signed its last commit) to two above the latest, and at heights of offences
    in stored evidence."""
    low, high, first, trusted = known
    if first is None or height < first:
        return False
    last = high or trusted or first - 1
    if (low or last + 1) - 1 <= height <= last + 2:
        return True
    offence = at.execute("SELECT 1 FROM evidence WHERE offence = ?", (height,)).fetchone()
    return offence is not None and height < (low or 0)


def addresses(at: Connection, height: int) -> Sequence[bytes]:
    """Return the addresses of the validator set that signs this height; empty if the set is
    unknown."""
    row = _row_in_force(at, "validator_sets", height)
    return () if row is None else packed.addresses(*row)


def addresses_in(row: Sequence[Any], height: int) -> Sequence[bytes]:
    """Return the addresses of a set from the last row at or below the height; its columns are
    NULL if there is no such row."""
    return packed.addresses(*row) if row[0] is not None and _is_in_force(row, height) else ()


def addresses_by_height(at: Connection, heights: Sequence[int]) -> dict[int, Sequence[bytes]]:
    """Return the addresses of the validator sets of several heights, by height."""
    low, high = min(heights), max(heights)
    rows = at.execute(
        "SELECT members, since, until FROM validator_sets WHERE since <= ? AND since >="
        " coalesce((SELECT max(since) FROM validator_sets WHERE since <= ?), 0)"
        " ORDER BY since",
        (high, low),
    ).fetchall()
    found: dict[int, Sequence[bytes]] = dict.fromkeys(heights, ())
    for row, since, until in rows:
        known = packed.addresses(row, since, until)
        last = high if until is None else until
        found |= {height: known for height in heights if since <= height <= last}
        found |= {height: () for height in heights if height > last}
    return found


def write_set(at: Connection, height: int, found: ValidatorSet) -> None:
    """Store the validator set of this height: its priorities, and its members if they differ
    from the members at the previous height."""
    row = _row_in_force(at, "validator_sets", height)
    if row is None or row[0] != packed.pack_members(found.validators, *row[1:]):
        write_members(at, height, found.validators)
    write_priorities(at, height, found)


def write_members(at: Connection, since: int, members: Sequence[Validator]) -> None:
    """Store the members in force from this height on."""
    at.execute(
        "INSERT INTO validator_sets (since, size, members) VALUES (?, ?, ?)"
        " ON CONFLICT (since) DO UPDATE SET"
        " until = NULL, size = excluded.size, members = excluded.members",
        (since, len(members), packed.pack_members(members, since)),
    )


def write_priorities(at: Connection, height: int, members: ValidatorSet) -> None:
    """Store the proposer priorities of this height."""
    _end_before(at, "validator_priorities", height)
    (above,) = at.execute(
        "SELECT min(height) FROM validator_priorities WHERE height > ?", (height,)
    ).fetchone()
    until = None if above is None else above - 1
    at.execute(
        "INSERT INTO validator_priorities (height, until, priorities) VALUES (?, ?, ?)"
        " ON CONFLICT (height) DO UPDATE SET"
        " until = excluded.until, priorities = excluded.priorities",
        (height, until, packed.pack_priorities(members, height, until)),
    )


def drop_derived(at: Connection, height: int, before: ValidatorSet) -> None:
    """Remove the stored priorities of a height if they can be computed from ``before``, the
    set of the previous height."""
    if height % PRIORITIES_EACH == 0:
        return
    # The block of this height may not be written yet.
    stored = at.execute(_SET.format(heights=at.engine.heights), (height, height)).fetchone()
    found = None if stored is None else _set_of(stored[4:], height)
    if found is None:
        return
    if rotated(before) == found and not is_rescaled_next(found):
        (until,) = at.execute(
            "DELETE FROM validator_priorities WHERE height = ? RETURNING until", (height,)
        ).fetchone() or (None,)
        set_until(at, "validator_priorities", height - 1, until)


def extend_down(at: Connection, table: str, since: int, height: int) -> None:
    """Extend the lowest row of a table, which begins at ``since``, down to ``height``."""
    _, column, kind = _COLUMNS[table]
    row = at.execute(
        f"SELECT {column}, until FROM {table} WHERE since = ?", (since,)
    ).fetchone()
    if row is not None:
        body, until = row
        moved = reseal(body, kind, (since, until), (height, until))
        at.execute(f"DELETE FROM {table} WHERE since >= ? AND since < ?", (height, since))
        at.execute(
            f"UPDATE {table} SET since = ?, {column} = ? WHERE since = ?",
            (height, moved, since),
        )


def set_until(at: Connection, table: str, since: int, until: int | None) -> None:
    """Set the last height at which a row is in force; ``None`` for no end."""
    key, column, kind = _COLUMNS[table]
    row, before = at.execute(
        f"SELECT {column}, until FROM {table} WHERE {key} = ?", (since,)
    ).fetchone()
    at.execute(
        f"UPDATE {table} SET until = ?, {column} = ? WHERE {key} = ?",
        (until, reseal(row, kind, (since, before), (since, until)), since),
    )


def _end_before(at: Connection, table: str, height: int) -> None:
    """End the row in force below a height, because a new row begins there."""
    row = _at_or_below(at, table, height - 1)
    if row is not None and (row[2] is None or row[2] >= height):
        set_until(at, table, row[1], height - 1)


def reopen_last_row(at: Connection, table: str, height: int) -> None:
    """Clear the last height of the last row if it covers this height, because the rows above
    were removed."""
    row = _at_or_below(at, table, height)
    if row is not None and row[2] is not None and row[2] >= height:
        set_until(at, table, row[1], None)


_PARAMS = "SELECT params, since, until FROM consensus_params"


def params(at: Connection, height: int) -> ConsensusParams | None:
    """Return the consensus parameters in force at this height; ``None`` if they are not
    known."""
    row = _row_in_force(at, "consensus_params", height)
    return None if row is None else packed.unpack_params(*row)


def block_limits(at: Connection) -> tuple[int, int]:
    """Return the maximum bytes and the maximum gas of the next block's transactions; -1 means
    unlimited."""
    row = at.execute(f"{_PARAMS} ORDER BY since DESC LIMIT 1").fetchone()
    if row is None:
        raise StoreError("the store has no chain yet; call init_chain or init_at first")
    (members,) = at.execute(
        "SELECT size FROM validator_sets ORDER BY since DESC LIMIT 1"
    ).fetchone()
    block = packed.unpack_params(*row).block
    return max_data_bytes(block, members), block.max_gas


def write_params(
    at: Connection, since: int, value: ConsensusParams, until: int | None = None
) -> None:
    """Store the parameters in force from this height on, up to and including height ``until``
    if set."""
    _end_before(at, "consensus_params", since)
    at.execute(
        "INSERT INTO consensus_params (since, until, params) VALUES (?, ?, ?)"
        " ON CONFLICT (since) DO UPDATE SET until = excluded.until, params = excluded.params",
        (since, until, packed.pack_params(value, since, until)),
    )
