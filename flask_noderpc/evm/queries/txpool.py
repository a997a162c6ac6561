"""Handlers of the ``txpool`` namespace: pending transactions by sender and nonce."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...domain.ethereum import PlacedTransaction, Transaction
from ...errors import NotSupported
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.ethereum import accounts
from ...protocol.ethereum.blocks import pending_transaction
from ...protocol.ethereum.crypto import to_checksum
from ..codec.params import Address
from ..reader import reader

Pool = dict[str, Any]


def status(ctx: Context, params: NoParams) -> Pool:
    """Numbers of pending transactions, and of those queued behind a nonce gap."""
    pending, queued = _parted(ctx)
    return {"pending": _count(pending), "queued": _count(queued)}


def content(ctx: Context, params: NoParams) -> Pool:
    """All pending transactions, by sender and nonce."""
    return _shown(ctx, lambda placed: placed)


def inspect(ctx: Context, params: NoParams) -> Pool:
    """All pending transactions, each as a line of text."""
    return _shown(ctx, lambda placed: _line(placed.transaction))


@dataclass(frozen=True, slots=True)
class SenderParams(Params):
    """Parameters of ``txpool_contentFrom``."""

    sender: bytes = param(Address(), doc="Address of the sender.")


def content_from(ctx: Context, params: SenderParams) -> Pool:
    """Pending transactions of one sender, by nonce."""
    pending, queued = _parted(ctx)
    return {
        "pending": _by_nonce(pending.get(params.sender, ()), lambda placed: placed),
        "queued": _by_nonce(queued.get(params.sender, ()), lambda placed: placed),
    }


_Senders = dict[bytes, list[PlacedTransaction]]


def _parted(ctx: Context) -> tuple[_Senders, _Senders]:
    """Return the transactions that can be next, in order, and those behind a nonce gap."""
    next_nonce = _nonces(ctx)
    by_sender: _Senders = defaultdict(list)
    for tx in reader(ctx).waiting():
        by_sender[tx.sender].append(pending_transaction(tx))
    pending: _Senders = {}
    queued: _Senders = {}
    for sender, found in by_sender.items():
        found.sort(key=lambda placed: placed.transaction.nonce)
        first = next_nonce(sender, found[0].transaction.nonce)
        gap = next(
            (i for i, placed in enumerate(found) if placed.transaction.nonce != first + i),
            len(found),
        )
        if found[:gap]:
            pending[sender] = found[:gap]
        if found[gap:]:
            queued[sender] = found[gap:]
    return pending, queued


def _nonces(ctx: Context) -> Callable[[bytes, int], int]:
    """The next nonce of a sender; without a state, the first that waits."""
    try:
        evm = ctx.backend.evm_state
    except NotSupported:
        return lambda sender, first: first
    root = evm.root(reader(ctx).latest)
    return lambda sender, first: accounts.account(evm.record, root, sender).nonce


def _count(senders: _Senders) -> int:
    return sum(map(len, senders.values()))


def _shown(ctx: Context, show: Callable[[PlacedTransaction], Any]) -> Pool:
    pending, queued = _parted(ctx)
    return {
        name: {to_checksum(sender): _by_nonce(found, show) for sender, found in senders.items()}
        for name, senders in (("pending", pending), ("queued", queued))
    }


def _by_nonce(
    found: tuple[PlacedTransaction, ...] | list[PlacedTransaction],
    show: Callable[[PlacedTransaction], Any],
) -> Pool:
    return {str(placed.transaction.nonce): show(placed) for placed in found}


def _line(tx: Transaction) -> str:
    # geth: internal/ethapi, with a sign for "times".
    cost = f"{tx.value} wei + {tx.gas} gas \u00d7 {tx.fee_cap} wei"
    return f"contract creation: {cost}" if tx.to is None else f"{to_checksum(tx.to)}: {cost}"
