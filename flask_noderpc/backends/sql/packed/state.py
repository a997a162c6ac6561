"""Packed rows of validator sets, consensus parameters and genesis documents."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from .... import jsoncodec
from ....domain.genesis import ConsensusParams, Genesis
from ....domain.validator import PublicKey, Validator, ValidatorSet
from .blocks import DamagedRow, seal, unseal


def pack_members(members: Sequence[Validator], since: int, until: int | None = None) -> bytes:
    """Pack the addresses, keys and voting powers of a validator set, without its
    priorities."""
    keys = [v.pub_key for v in members]
    return seal(
        (
            [v.address for v in members],
            [(key.type, key.value) for key in keys],
            [v.voting_power for v in members],
        ),
        "validator set",
        since,
        until,
    )


@lru_cache(maxsize=8)
def addresses(row: bytes, since: int, until: int | None = None) -> list[bytes]:
    """Return the addresses of a set that :func:`pack_members` packed; raise
    :exc:`DamagedRow`."""
    found: list[bytes] = unseal(row, "validator set", since, until)[0]
    return found


@lru_cache(maxsize=8)
def unpack_members(row: bytes, since: int, until: int | None = None) -> tuple[Validator, ...]:
    """Return the members that :func:`pack_members` packed; raise :exc:`DamagedRow`."""
    fields = unseal(row, "validator set", since, until)
    return tuple(
        Validator(address, PublicKey(*key), power)
        for address, key, power in zip(*fields, strict=True)
    )


def pack_priorities(members: ValidatorSet, height: int, until: int | None = None) -> bytes:
    """Pack the proposer and the priorities of a validator set, with a checksum of its
    members."""
    found = members.validators
    priorities = [v.proposer_priority for v in found]
    fields = members.proposer, priorities, _members_checksum(found)
    return seal(fields, "proposer priorities", height, until)


def _members_checksum(members: Sequence[Validator]) -> int:
    powers = repr([v.voting_power for v in members])
    return zlib.crc32(powers.encode(), zlib.crc32(b"".join([v.address for v in members])))


def unpack_priorities(
    row: bytes, height: int, until: int | None, members: Sequence[Validator]
) -> ValidatorSet:
    """Return the validator set of a height, from its members and packed priorities; raise
    :exc:`DamagedRow`."""
    proposer, priorities, checksum = unseal(row, "proposer priorities", height, until)
    if len(priorities) != len(members) or checksum != _members_checksum(members):
        raise DamagedRow("validator set", height, "its members do not fit its priorities")
    return ValidatorSet(
        tuple(
            Validator(v.address, v.pub_key, v.voting_power, priority)
            for v, priority in zip(members, priorities, strict=True)
        ),
        proposer,
    )


def pack_params(params: ConsensusParams, since: int, until: int | None = None) -> bytes:
    """Pack consensus parameters."""
    return seal(jsoncodec.encode(params), "consensus parameters", since, until)


# Cache the result, because the check of each new transaction needs it.
@lru_cache(maxsize=8)
def unpack_params(row: bytes, since: int, until: int | None = None) -> ConsensusParams:
    """Return the parameters that :func:`pack_params` packed; raise :exc:`DamagedRow`."""
    found = unseal(row, "consensus parameters", since, until)
    return jsoncodec.decode(found, ConsensusParams)


def pack_genesis(genesis: Genesis) -> bytes:
    """Pack a genesis document without its application state."""
    return seal(jsoncodec.encode(replace(genesis, app_state=b"")), "genesis document", 0)


def unpack_genesis(row: bytes) -> Genesis:
    """Return the document that :func:`pack_genesis` packed; raise :exc:`DamagedRow`."""
    return jsoncodec.decode(unseal(row, "genesis document", 0), Genesis)


def pack_app_state(document: bytes) -> bytes:
    """Pack the application state of a genesis document."""
    return seal(document, "state of the genesis", 0)


def unpack_app_state(row: bytes) -> bytes:
    """Return the state that :func:`pack_app_state` packed; raise :exc:`DamagedRow`."""
    document: bytes = unseal(row, "state of the genesis", 0)
    return document


def pack_beginning(fields: tuple[str, int, int | None, bytes | None]) -> bytes:
    """Pack a copy of the columns chain ID, initial height, trusted height, and app hash before
    the first block."""
    return seal(fields, "beginning of the chain", 0)


def check_beginning(row: bytes, fields: tuple[str, int, int | None, bytes | None]) -> None:
    """Raise :exc:`DamagedRow` if the columns differ from their packed copy."""
    if unseal(row, "beginning of the chain", 0) != list(fields):
        raise DamagedRow(
            "beginning of the chain", 0, "its columns differ from their packed copy"
        )
