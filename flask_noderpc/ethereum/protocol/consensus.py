"""Consensus encodings of headers and blocks, and bloom filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...protocol.secp256k1eth import keccak
from ..domain.records import ZERO_ADDRESS, Header, Log
from .rlp import Item, encode, encode_list

SIZE = 256


def bloom(logs: Iterable[Log]) -> bytes:
    """Return the bloom filter of all addresses and topics of the logs, 256 bytes."""
    bits = 0
    for log in logs:
        bits |= _bits(log.address)
        for topic in log.topics:
            bits |= _bits(topic)
    return bits.to_bytes(SIZE)


def may_have(
    bloom: bytes, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]
) -> bool:
    """Return true if a block with this bloom filter may have a log of one of the addresses
    with one of the listed topics at each position.

    An empty list of addresses, or of topics at a position, matches everything.
    """
    bits = int.from_bytes(bloom)
    return all(
        not alternatives or any(bits & mask == mask for mask in map(_bits, alternatives))
        for alternatives in (addresses, *topics)
    )


# Cached, as a few addresses and topics occur in every block.
@lru_cache(maxsize=2048)
def _bits(item: bytes) -> int:
    """Return an integer with the three bits of an address or topic (Yellow Paper 4.3.1): the
    first three byte pairs of its hash, modulo 2048, are the positions of the bits."""
    digest = keccak(item)
    return (
        1 << (int.from_bytes(digest[0:2]) & 0x7FF)
        | 1 << (int.from_bytes(digest[2:4]) & 0x7FF)
        | 1 << (int.from_bytes(digest[4:6]) & 0x7FF)
    )


def encode_header(header: Header) -> bytes:
    """Return the RLP list of a header; EIP-1559 appends the base fee.

    The hash of this list is not the block's hash, which is CometBFT's.
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
    """Return the RLP of a block: header, canonical bytes of its transactions, no uncles."""
    # A legacy transaction is a list; other types are strings.
    body = b"".join(raw if raw[0] > 0x7F else encode(raw) for raw in raws)
    return encode_list(encode_header(header) + encode_list(body) + encode_list(b""))
