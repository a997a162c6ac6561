"""A chain that geth made, and geth's responses; golden/README names their origin."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import rlp
from rlp.codec import consume_length_prefix

from flask_noderpc import jsoncodec
from flask_noderpc.ethereum.domain.records import Header, Inclusion, Log
from flask_noderpc.ethereum.protocol.execution import Receipt
from flask_noderpc.ethereum.protocol.transactions import decode

_HERE = Path(__file__).parent / "golden"

RawBlock = Any
"""Header, transactions and more, as lists of bytes."""


@cache
def blocks() -> tuple[RawBlock, ...]:
    """Return the blocks 1 to 54, with all types of transactions, and all forks until Prague."""
    chain = (_HERE / "chain.rlp").read_bytes()
    found, at = [], 0
    while at < len(chain):
        _, _, size, start = consume_length_prefix(chain, at)
        found.append(rlp.decode(chain[at : start + size]))
        at = start + size
    return tuple(found)


def raws(block: RawBlock) -> list[bytes]:
    """Return the canonical bytes of a block's transactions."""
    return [tx if isinstance(tx, bytes) else rlp.encode(tx) for tx in block[1]]


@cache
def replies() -> Any:
    return jsoncodec.decode((_HERE / "replies.json").read_bytes())


def data(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def header(block: RawBlock) -> Header:
    """Return the header of a block until London."""
    fields = block[0]
    numbers = [int.from_bytes(field) for field in fields]
    return Header(
        number=numbers[8],
        hash=None,
        parent_hash=fields[0],
        uncles_hash=fields[1],
        miner=fields[2],
        state_root=fields[3],
        transactions_root=fields[4],
        receipts_root=fields[5],
        bloom=fields[6],
        difficulty=numbers[7],
        gas_limit=numbers[9],
        gas_used=numbers[10],
        timestamp=numbers[11],
        extra_data=fields[12],
        mix_hash=fields[13],
        nonce=fields[14],
        base_fee=numbers[15] if len(fields) > 15 else None,
    )


def receipt(reply: Any, raw: bytes) -> Receipt:
    """Return geth's receipt of the transaction with these bytes."""
    tx = decode(raw)
    inclusion = Inclusion(
        data(reply["blockHash"]),
        int(reply["blockNumber"], 16),
        0,
        int(reply["transactionIndex"], 16),
    )
    logs = tuple(
        Log(
            data(log["address"]),
            tuple(map(data, log["topics"])),
            data(log["data"]),
            int(log["logIndex"], 16),
            tx.hash,
            inclusion,
        )
        for log in reply["logs"]
    )
    return Receipt(
        tx,
        inclusion,
        reply["status"] == "0x1",
        int(reply["gasUsed"], 16),
        int(reply["cumulativeGasUsed"], 16),
        None,
        logs,
    )
