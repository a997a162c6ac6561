"""Lets senders find their transaction in a block, where each gets one at once.

hardhat: eth_sendTransaction answers when the block is there; its tests read the state next.
"""

from __future__ import annotations

import time

from ...domain.ethereum import Transaction
from ...errors import NotSupported
from ...jsonrpc.context import Context
from ..codec.params import Tag
from . import state

_MAX_WAIT_S = 10.0


def settle(ctx: Context, tx: Transaction) -> None:
    """Wait until a transaction that was sent had its turn, if it gets one at once."""
    if not _at_once(ctx):
        return
    if state.transaction_count(ctx, state.AccountParams(tx.sender, Tag.PENDING)) <= tx.nonce:
        # Others have to come before it.
        return
    latest = state.AccountParams(tx.sender, Tag.LATEST)
    deadline = time.monotonic() + _MAX_WAIT_S
    seen = ctx.backend.latest_height()
    while state.transaction_count(ctx, latest) <= tx.nonce:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        seen = ctx.backend.wait_for_height(seen, remaining)


def _at_once(ctx: Context) -> bool:
    try:
        return ctx.settings.dev and ctx.backend.control.automines()
    except NotSupported:
        return False
