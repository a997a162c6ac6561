"""Validator sets, consensus parameters and genesis documents as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from .... import jsoncodec
from ....domain.genesis import ConsensusParams, Genesis
from ....domain.validator import PublicKey, Validator, ValidatorSet
from .row import DamagedRow, opened, seal


def pack_members(members: Sequence[Validator]) -> bytes:
    """Addresses, keys and powers of a validator set, without its priorities."""
    keys = [v.pub_key for v in members]
    return seal(
        (
            [v.address for v in members],
            [(key.type, key.value) for key in keys],
            [v.voting_power for v in members],
        )
    )


@lru_cache(maxsize=8)
def addresses(row: bytes, since: int) -> list[bytes]:
    """Return the addresses of a set that :func:`pack_members` packed; raise
    :exc:`DamagedRow`."""
    found: list[bytes] = opened(row, "validator set", since)[0]
    return found


@lru_cache(maxsize=8)
def unpack_members(row: bytes, since: int) -> tuple[Validator, ...]:
    """The inverse of :func:`pack_members`; raise :exc:`DamagedRow`."""
    return tuple(
        Validator(address, PublicKey(*key), power)
        for address, key, power in zip(*opened(row, "validator set", since), strict=True)
    )


def pack_priorities(members: ValidatorSet) -> bytes:
    """Proposer and priorities of a validator set."""
    return seal((members.proposer, [v.proposer_priority for v in members.validators]))


def unpack_priorities(row: bytes, height: int, members: Sequence[Validator]) -> ValidatorSet:
    """Return the set of a height; raise :exc:`DamagedRow`."""
    proposer, priorities = opened(row, "proposer priorities", height)
    if len(priorities) != len(members):
        raise DamagedRow("validator set", height, "it has others than its priorities")
    return ValidatorSet(
        tuple(
            Validator(v.address, v.pub_key, v.voting_power, priority)
            for v, priority in zip(members, priorities, strict=True)
        ),
        proposer,
    )


def pack_params(params: ConsensusParams) -> bytes:
    """Consensus parameters."""
    return seal(jsoncodec.encode(params))


# Asked for by each transaction that comes.
@lru_cache(maxsize=8)
def unpack_params(row: bytes, since: int) -> ConsensusParams:
    """The inverse of :func:`pack_params`; raise :exc:`DamagedRow`."""
    return jsoncodec.decode(opened(row, "consensus parameters", since), ConsensusParams)


def pack_genesis(genesis: Genesis) -> bytes:
    """A genesis document without its application state."""
    return seal(jsoncodec.encode(replace(genesis, app_state=b"")))


def unpack_genesis(row: bytes) -> Genesis:
    """The inverse of :func:`pack_genesis`; raise :exc:`DamagedRow`."""
    return jsoncodec.decode(opened(row, "genesis document", 0), Genesis)


def pack_app_state(document: bytes) -> bytes:
    """The application state of a genesis document."""
    return seal(document)


def unpack_app_state(row: bytes) -> bytes:
    """The inverse of :func:`pack_app_state`; raise :exc:`DamagedRow`."""
    document: bytes = opened(row, "genesis document", 0)
    return document
