"""Results of blocks, and transactions with theirs, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .... import jsoncodec
from ....domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from ....domain.genesis import ConsensusParamsUpdate
from ....domain.search import TxResult
from ....domain.validator import PublicKey, ValidatorUpdate
from .row import DamagedRow, opened, seal, with_form

POSITION_BITS = 20
LAST_POSITION = (1 << POSITION_BITS) - 1
"""Of a place: the position of a transaction in its block, below its height."""

_SLICE_BYTES = 64 << 10


def pack_results(results: BlockResults) -> bytes:
    """The results of a block, without those of its transactions."""
    update = results.consensus_param_updates
    return seal(
        (
            _event_fields(results.begin_block_events),
            _event_fields(results.end_block_events),
            [(u.pub_key.type, u.pub_key.value, u.power) for u in results.validator_updates],
            None if update is None else jsoncodec.encode(update),
            results.app_hash,
            len(results.tx_results),
            *with_form(results.form),
        ),
        "results",
        results.height,
    )


def unpack_results(
    row: bytes, height: int, of_txs: Callable[[int], tuple[ExecTxResult, ...]]
) -> BlockResults:
    """The inverse of :func:`pack_results`; raise :exc:`DamagedRow`.

    ``of_txs`` returns the results of that many transactions.
    """
    begin, end, updates, params, app_hash, count, *form = opened(row, "results", height)
    tx_results = of_txs(count)
    if len(tx_results) != count:
        raise DamagedRow("transactions", height, f"{len(tx_results)} of {count} are there")
    return BlockResults(
        height,
        tx_results,
        _events_from(begin),
        _events_from(end),
        tuple(ValidatorUpdate(PublicKey(kind, key), power) for kind, key, power in updates),
        None if params is None else jsoncodec.decode(params, ConsensusParamsUpdate),
        app_hash,
        *form,
    )


def unpack_block_events(row: bytes, height: int) -> tuple[Event, ...]:
    """Return the events of a block from the same row; raise :exc:`DamagedRow`."""
    begin, end, *_ = opened(row, "results", height)
    return _events_from(begin) + _events_from(end)


# Transactions with their results.


def place(height: int, position: int = 0) -> int:
    """Return the place of a transaction: its height and its position in the block."""
    return height << POSITION_BITS | position


def slices(
    height: int,
    txs: Sequence[bytes],
    results: Sequence[ExecTxResult] | None,
    begin: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """Yield rows of consecutive transactions, each with the place of its first.

    A row has at most 64 KB, or one transaction that is larger. Without results it has the
    transactions alone. They begin at a position of the block.
    """
    first, size = 0, 0
    packed = [b""] * len(txs) if results is None else [_pack_result(each) for each in results]
    for position, (tx, result) in enumerate(zip(txs, packed, strict=True)):
        size += len(tx) + len(result)
        if size > _SLICE_BYTES and position > first:
            here = txs[first:position], packed[first:position]
            yield _slice(height, begin + first, *here)
            first, size = position, len(tx) + len(result)
    if txs:
        yield _slice(height, begin + first, txs[first:], packed[first:])


def _slice(
    height: int, first: int, txs: Sequence[bytes], packed: Sequence[bytes]
) -> tuple[int, bytes]:
    return place(height, first), seal((txs, packed), "transactions", height, first)


class Slice:
    """Consecutive transactions of a block, whose results are decoded when asked for."""

    def __init__(self, row: bytes, first: int) -> None:
        self.height, self.first = first >> POSITION_BITS, first & LAST_POSITION
        self.txs, self._results = opened(row, "transactions", self.height, self.first)

    def has(self, height: int, position: int) -> bool:
        """Return true if the transaction of this height and position is one of these."""
        return self.height == height and 0 <= position - self.first < len(self.txs)

    def results(self) -> list[ExecTxResult]:
        """Return all results; none if they were not known."""
        return [_unpack_result(packed) for packed in self._results if packed]

    def tx_result(self, position: int) -> TxResult:
        """Return the transaction at a position of the block; raise :exc:`DamagedRow`."""
        if not self.has(self.height, position):
            raise DamagedRow("transactions", self.height, f"number {position} is missing")
        at = position - self.first
        return TxResult(self.height, position, self.txs[at], _unpack_result(self._results[at]))


def _pack_result(result: ExecTxResult) -> bytes:
    return jsoncodec.pack(
        (
            result.code,
            result.data,
            result.log,
            result.info,
            result.gas_wanted,
            result.gas_used,
            result.codespace,
            _event_fields(result.events),
            *with_form(result.form),
        )
    )


def _unpack_result(packed: bytes) -> ExecTxResult:
    fields = jsoncodec.unpack(packed)
    code, data, log, info, gas_wanted, gas_used, codespace, events, *form = fields
    return ExecTxResult(
        code, data, log, info, gas_wanted, gas_used, _events_from(events), codespace, *form
    )


def _event_fields(events: Sequence[Event]) -> list[tuple[str, list[object]]]:
    return [
        (event.type, [field for a in event.attributes for field in (a.key, a.value, a.index)])
        for event in events
    ]


def _events_from(events: Sequence[tuple[str, list[Any]]]) -> tuple[Event, ...]:
    return tuple(
        [
            Event(kind, tuple(map(EventAttribute, flat[::3], flat[1::3], flat[2::3])))
            for kind, flat in events
        ]
    )
