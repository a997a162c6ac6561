"""Ethereum's consensus bytes: what the roots hash, and what the raw routes of debug show."""

from __future__ import annotations

from ...domain.ethereum import LEGACY, ZERO_ADDRESS, Header, Receipt
from .rlp import Item, encode, listed


def encode_receipt(receipt: Receipt) -> bytes:
    """EIP-2718: the list, with the transaction's type in front from type 1 on."""
    logs: list[Item] = [[log.address, log.topics, log.data] for log in receipt.logs]
    body = encode([int(receipt.succeeded), receipt.cumulative_gas_used, receipt.bloom, logs])
    kind = receipt.transaction.type
    return body if kind == LEGACY else bytes((kind,)) + body


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
