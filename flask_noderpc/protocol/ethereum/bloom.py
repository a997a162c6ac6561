"""Blooms: 2048 bits that show which addresses and topics are not in some logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...domain.ethereum import Log
from .keccak import keccak

SIZE = 256


def bloom(logs: Iterable[Log]) -> bytes:
    """The bits of every address and topic of the logs, 256 bytes."""
    bits = 0
    for log in logs:
        bits |= _bits(log.address)
        for topic in log.topics:
            bits |= _bits(topic)
    return bits.to_bytes(SIZE)


def union(blooms: Iterable[bytes]) -> bytes:
    """The bits of all of them."""
    bits = 0
    for each in blooms:
        bits |= int.from_bytes(each)
    return bits.to_bytes(SIZE)


def may_have(
    bloom: bytes, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]
) -> bool:
    """True if a bloom may contain logs of one of the addresses with one topic per position.

    Nothing given, of addresses or at a position, is anything.
    """
    bits = int.from_bytes(bloom)
    return all(
        not wanted or any(bits & mask == mask for mask in map(_bits, wanted))
        for wanted in (addresses, *topics)
    )


# The same few addresses and topics come in every block.
@lru_cache(maxsize=2048)
def _bits(item: bytes) -> int:
    """Yellow Paper 4.3.1: eleven bits of each of the first three pairs of the hash's bytes."""
    digest = keccak(item)
    return (
        1 << (int.from_bytes(digest[0:2]) & 0x7FF)
        | 1 << (int.from_bytes(digest[2:4]) & 0x7FF)
        | 1 << (int.from_bytes(digest[4:6]) & 0x7FF)
    )
