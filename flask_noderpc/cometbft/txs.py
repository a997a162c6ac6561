"""Handlers of transactions: mempool, broadcast, and lookup by hash."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ..backends.base.backend import ChainBackend
from ..concurrency import Pending
from ..domain.abci import ExecTxResult
from ..domain.responses import (
    PendingCount,
    PendingTxs,
    ResultBroadcastTx,
    ResultBroadcastTxCommit,
    ResultTx,
)
from ..domain.search import TxResult
from ..errors import (
    BackendError,
    MempoolFull,
    TxNotFound,
    TxRejected,
    ValueNotAllowed,
    WaitTimedOut,
)
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..jsonrpc.waiters import Waiter
from ..protocol.comet import hashes
from ..wire.params import Bytes, Flag, Hash, Int
from .blocks import per_page


@dataclass(frozen=True, slots=True)
class Limit(Params):
    """Parameters of ``unconfirmed_txs``."""

    limit: int | None = param(
        Int(), default=None, doc="Number of transactions to return; by default 30, at most 100."
    )


def unconfirmed_txs(ctx: Context, params: Limit) -> PendingTxs:
    """Oldest pending transactions."""
    return ctx.backend.mempool.pending(per_page(params.limit))


def num_unconfirmed_txs(ctx: Context, params: NoParams) -> PendingCount:
    """Number and size of the pending transactions."""
    return ctx.backend.mempool.pending_count()


@dataclass(frozen=True, slots=True)
class TxByHash(Params):
    """Parameters of ``tx``."""

    hash: bytes = param(Hash(), default=b"", doc="Hash of the transaction.")
    prove: bool = param(
        Flag(), default=False, doc="Add a proof that its block contains the transaction."
    )


def tx(ctx: Context, params: TxByHash) -> ResultTx:
    """A committed transaction, found by its hash."""
    if not params.hash:
        raise ValueNotAllowed("transaction hash cannot be empty")
    found = ctx.backend.reads.tx(params.hash)
    return result_tx(with_proof(ctx.backend, found) if params.prove else found)


def with_proof(backend: ChainBackend, found: TxResult) -> TxResult:
    """Return a transaction with the proof that its block contains it."""
    _, block = backend.reads.block(found.height)
    return replace(found, proof=hashes.tx_proof(block.txs, found.index))


def result_tx(found: TxResult) -> ResultTx:
    """Return the result of ``tx`` for a transaction, with its hash."""
    return ResultTx(
        hashes.tx_hash(found.tx), found.height, found.index, found.result, found.tx, found.proof
    )


@dataclass(frozen=True, slots=True)
class TxParams(Params):
    """Parameters of routes that take a transaction."""

    tx: bytes = param(Bytes(), default=b"", doc="The encoded transaction.")


def _begin_submit(ctx: Context, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
    """Check a transaction, and start to add it to the mempool if it passes the check.

    Return the result of the check, and the pending result of the whole submission.
    """
    _refuse_while_catching_up(ctx)
    return ctx.backend.mempool.begin_submit(tx)


def _refuse_while_catching_up(ctx: Context) -> None:
    if ctx.behaviours.closed_while_catching_up and ctx.backend.network.catching_up():
        raise TxRejected("endpoint is closed while node is catching up")


# CometBFT 1.0: rpc/core/mempool.go.
_REFUSED = "broadcast error on transaction validation: "


def _require_passed(
    ctx: Context, check: ExecTxResult, tx_hash: bytes, prefix: str = ""
) -> None:
    if check.code != 0 and ctx.behaviours.failed_check_is_error:
        # CometBFT 1.0: mempool/errors.go.
        raise TxRejected(
            f"{prefix}tx {tx_hash.hex().upper()} is invalid: code={check.code},"
            f" data={check.data.hex().upper()}, log='{check.log}',"
            f" codespace='{check.codespace}'"
        )


def broadcast_tx_sync(ctx: Context, params: TxParams) -> Pending[ResultBroadcastTx]:
    """Add a transaction to the mempool; return the result of the application's check."""
    (_, stored), tx_hash = _begin_submit(ctx, params.tx), hashes.tx_hash(params.tx)

    def result() -> ResultBroadcastTx:
        check = stored.result()
        _require_passed(ctx, check, tx_hash, _REFUSED)
        return ResultBroadcastTx(check.code, check.data, check.log, check.codespace, tx_hash)

    return Pending(result, stored.is_done)


def broadcast_tx_async(ctx: Context, params: TxParams) -> Pending[ResultBroadcastTx]:
    """Send a transaction; return its hash without the result of the check."""
    _refuse_while_catching_up(ctx)
    # Check the limits now, as the sender does not get errors that the store raises after the
    # response.
    ctx.backend.mempool.check_limits(params.tx)
    (check, stored), tx_hash = _begin_submit(ctx, params.tx), hashes.tx_hash(params.tx)
    ctx.async_txs.add(stored, len(params.tx))
    _require_passed(ctx, check, tx_hash)
    result = ResultBroadcastTx(0, b"", "", "", tx_hash)
    # Return a pending response, as ``broadcast_tx_sync`` does, so that the responses of a
    # connection keep the order of its calls.
    return Pending(lambda: result)


def broadcast_tx_commit(ctx: Context, params: TxParams) -> ResultBroadcastTxCommit:
    """Results of a transaction's check and execution, once a block contains it."""
    tx_hash = hashes.tx_hash(params.tx)
    with ctx.waiters.acquire(ctx.client) as waiter:
        before = ctx.backend.reads.latest_height()
        try:
            check = _begin_submit(ctx, params.tx)[1].result()
        except (TxRejected, MempoolFull) as error:
            kind = TxRejected if isinstance(error, TxRejected) else BackendError
            text = f"error on broadcastTxCommit: {error.text}"
            raise kind(text, error.hint) from error
        _require_passed(ctx, check, tx_hash, _REFUSED)
        if check.code != 0:
            return ResultBroadcastTxCommit(check, ExecTxResult(), tx_hash, 0)
        found = _wait_for(ctx, waiter, tx_hash, before)
        return ResultBroadcastTxCommit(check, found.result, tx_hash, found.height)


def _wait_for(ctx: Context, waiter: Waiter, tx_hash: bytes, before: int) -> TxResult:
    deadline = time.monotonic() + ctx.settings.broadcast_timeout
    seen = ctx.backend.reads.latest_height()
    # Search before the first wait if a block was stored since the submission: another waiting
    # call may already have noticed this block.
    may_be_in_block = seen > before
    while True:
        found = _find_new_tx(ctx.backend, tx_hash, before) if may_be_in_block else None
        if found is not None:
            return found
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise WaitTimedOut(
                "timed out waiting for tx to be included in a block",
                f"{tx_hash.hex().upper()} may still get into one; to wait longer, raise"
                " NODERPC_BROADCAST_TIMEOUT",
            )
        seen, may_be_in_block = waiter.wait_for_block(ctx.backend, seen, remaining), True


def _find_new_tx(backend: ChainBackend, tx_hash: bytes, before: int) -> TxResult | None:
    """Return the transaction if a block above the height ``before`` contains it, otherwise
    ``None``. An earlier block may contain an equal transaction that was sent before."""
    try:
        found = backend.reads.tx(tx_hash)
    except TxNotFound:
        return None
    if found.height > before:
        return found
    for height in range(before + 1, backend.reads.latest_height() + 1):
        txs = backend.reads.block(height)[1].txs
        if found.tx in txs:
            index = txs.index(found.tx)
            return TxResult(
                height, index, found.tx, backend.reads.results(height).tx_results[index]
            )
    return None


def check_tx(ctx: Context, params: TxParams) -> ExecTxResult:
    """Result of the application's check of a transaction, without adding it to the mempool."""
    return ctx.backend.application.check_tx(params.tx)
