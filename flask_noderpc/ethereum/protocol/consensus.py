"""Consensus encodings of headers and blocks, and bloom filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...protocol.secp256k1eth import keccak
from ..domain.records import ZERO_ADDRESS, Header, Log
from .rlp import Item, encode, listed

SIZE = 256


def bloom(logs: Iterable[Log]) -> bytes:
    """The bits of every address and topic of the logs, 256 bytes."""
    bits = 0
    for log in logs:
        bits |= _bits(log.address)
        for topic in log.topics:
            bits |= _bits(topic)
    return bits.to_bytes(SIZE)


def may_have(
    bloom: bytes, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]
) -> bool:
    """True if a bloom may contain logs of one of the addresses with one topic per position.

    Nothing given, of addresses or at a position, is anything.
    """
    bits = int.from_bytes(bloom)
    return all(
        not alternatives or any(bits & mask == mask for mask in map(_bits, alternatives))
        for alternatives in (addresses, *topics)
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


def encode_header(header: Header) -> bytes:
    """The header's list; EIP-1559 appends the base fee.

    Its hash is not the block's: that is the node's own.
    """
    items: list[Item] = [
        header.parent_hash,
        header.uncles_hash,
        header.miner or ZERO_ADDRESS,
        header.state_root,
        header.transactions_root,
        header.receipts_root,
        header.bloom,
        header.difficulty,
        header.number,
        header.gas_limit,
        header.gas_used,
        header.timestamp,
        header.extra_data,
        header.mix_hash,
        header.nonce or bytes(8),
    ]
    if header.base_fee is not None:
        items.append(header.base_fee)
    return encode(items)


def encode_block(header: Header, raws: list[bytes]) -> bytes:
    """Header, transactions in their canonical bytes, and no uncles."""
    # A legacy transaction is a list among the others, which are strings.
    body = b"".join(raw if raw[0] > 0x7F else encode(raw) for raw in raws)
    return listed(encode_header(header) + listed(body) + listed(b""))
