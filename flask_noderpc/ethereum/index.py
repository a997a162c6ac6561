"""Index of Ethereum transactions and logs: table ``evm_hits``, one row for each hit.

A key stands for a transaction's hash, or for a log's address or one of its topics. It is 48
bits of a hash, and so a hit may be another's: readers look into the block. A table of values
with numbers, as the index of events has, would be larger: most topics come a few times only.
The place of a hit is its block's height and a number in it; all hits of a log have the same.

Blocks that could not be read, since the extra ``evm`` was missing, are in ``evm_unindexed``
and count as hits of everything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from types import ModuleType

from ..backends.sql import blocks
from ..backends.sql.connection import Connection
from ..backends.sql.packed.results import LAST_POSITION, POSITION_BITS
from ..domain.abci import ExecTxResult

log = logging.getLogger("flask_noderpc.store")


TX, ADDRESS, ANY_LOG = b"tx", b"address", b"any log"
TOPICS = (b"topic 0", b"topic 1", b"topic 2", b"topic 3")

_SLICE = 200

# What Ethermint emits for every Ethereum transaction, and for the logs of one.
_EVENTS = ("ethereum_tx", "tx_log")

_Hit = tuple[int, int]


# The same few addresses and topics come in every block.
@lru_cache(maxsize=2048)
def key(kind: bytes, value: bytes = b"") -> int:
    """Return the 48-bit key of a value of one kind."""
    return int.from_bytes(blake2b(value, digest_size=6, person=kind).digest(), signed=True)


def place(height: int, number: int = 0) -> int:
    """Return the place of a transaction or log: its height and its number in the block.

    More logs than fit share the last number, which makes hits and hides none.
    """
    return min(height, blocks.LAST_HEIGHT) << POSITION_BITS | min(number, LAST_POSITION)


def last_place(height: int) -> int:
    """Return the last place in a block."""
    return place(height, LAST_POSITION)


def height_sql(column: str) -> str:
    """Return the height of a place, in SQL."""
    return f"{column} >> {POSITION_BITS}"


@cache
def _execution() -> ModuleType | None:
    """Return the module that reads Ethereum transactions; ``None`` without the extra."""
    try:
        from .protocol import execution
    except ModuleNotFoundError:
        return None
    return execution


def write(
    at: Connection, height: int, txs: Sequence[bytes], results: Sequence[ExecTxResult]
) -> None:
    """Index a block, if it has anything of Ethereum."""
    if not _of_ethereum(txs, results):
        return
    if _execution() is None:
        at.execute(
            "INSERT INTO evm_unindexed (height) VALUES (?) ON CONFLICT DO NOTHING", (height,)
        )
        return
    at.executemany(
        "INSERT INTO evm_hits (key, place) VALUES (?, ?) ON CONFLICT DO NOTHING",
        hits(height, txs, results),
    )


def hits(height: int, txs: Sequence[bytes], results: Sequence[ExecTxResult]) -> list[_Hit]:
    """Return keys and places of a block's transactions and logs; none without the extra."""
    found, execution = _of_ethereum(txs, results), _execution()
    if not found or execution is None:
        return []
    return sorted({*_tx_hits(execution, height, found), *_log_hits(execution, height, found)})


def forget(at: Connection, height: int) -> None:
    """Take a block out of the index; what it had is found in the block, as it was made.

    Without the extra its hits stay: readers look into the block, and it is not there.
    """
    if at.execute("SELECT 1 FROM evm_hits LIMIT 1").fetchone() is None:
        return
    found = hits(height, *blocks.txs_with_results(at, height))
    at.executemany("DELETE FROM evm_hits WHERE key = ? AND place = ?", found)


def _of_ethereum(
    txs: Sequence[bytes], results: Sequence[ExecTxResult]
) -> list[tuple[bytes, ExecTxResult]]:
    return [
        (tx, result)
        for tx, result in zip(txs, results, strict=False)
        if any(event.type in _EVENTS for event in result.events)
    ]


def _tx_hits(
    execution: ModuleType, height: int, found: Sequence[tuple[bytes, ExecTxResult]]
) -> Iterator[_Hit]:
    for tx, _ in found:
        for eth_hash in execution.transaction_hashes(tx):
            yield key(TX, eth_hash), place(height)


def _log_hits(
    execution: ModuleType, height: int, found: Sequence[tuple[bytes, ExecTxResult]]
) -> Iterator[_Hit]:
    logs = [log for _, result in found for logs in execution.emitted(result) for log in logs]
    if logs:
        yield key(ANY_LOG), place(height)
    for number, each in enumerate(logs):
        here = place(height, number)
        yield key(ADDRESS, each.address), here
        for kind, topic in zip(TOPICS, each.topics, strict=False):
            yield key(kind, topic), here


def announce(at: Connection) -> None:
    """Log how many blocks are about to be indexed."""
    (count,) = at.execute("SELECT count(*) FROM evm_unindexed").fetchone()
    log.warning("Ethereum's transactions and logs are indexed once: %s blocks", count)


def unindexed(at: Connection) -> list[int]:
    """The next few blocks that are listed, and can be indexed now."""
    found = at.execute(
        "SELECT height FROM evm_unindexed ORDER BY height LIMIT ?", (_SLICE,)
    ).fetchall()
    # Asked last: what reads them takes its time to load, and few stores have any.
    return [height for (height,) in found] if found and _execution() else []


def index_some(at: Connection) -> bool:
    """Index the next few of these blocks; return false if there are none."""
    heights = unindexed(at)
    write_stored(at, heights)
    return bool(heights)


def write_stored(at: Connection, heights: Sequence[int]) -> None:
    """Index blocks that are listed."""
    for height in heights:
        write(at, height, *blocks.txs_with_results(at, height))
        at.execute("DELETE FROM evm_unindexed WHERE height = ?", (height,))
