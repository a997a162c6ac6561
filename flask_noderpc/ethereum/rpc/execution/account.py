"""Handlers of methods that anvil and reth have and geth lacks: whole accounts, code by hash,
and transactions by sender and nonce."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ...domain.records import RPCTransaction
from ...protocol import accounts
from ...protocol.blocks import pending_transaction
from ..codec.params import Address, BlockId, ByHash, Hash, Height, Quantity, Tag
from ..errors import PrunedHistory
from ..reader import reader
from . import state
from .state import AccountParams, evm_state, root_of

_MAX_PENDING = 10_000


def account(ctx: Context, params: AccountParams) -> dict[str, Any]:
    """An account as the state trie stores it: balance, nonce, code hash and storage root."""
    found = accounts.account(evm_state(ctx).record, root_of(ctx, params.block), params.address)
    return {
        "balance": found.balance,
        "nonce": found.nonce,
        "codeHash": found.code_hash,
        "storageRoot": found.storage_root,
    }


def account_info(ctx: Context, params: AccountParams) -> dict[str, Any]:
    """Balance, nonce and code of an account."""
    return {
        "balance": state.balance(ctx, params),
        "nonce": state.transaction_count(ctx, params),
        "code": state.code(ctx, params),
    }


@dataclass(frozen=True, slots=True)
class CodeHashParams(Params):
    """Parameters of ``debug_codeByHash``."""

    hash: bytes = param(Hash(), doc="Keccak-256 hash of the code.")
    block: Height | ByHash = param(
        BlockId(), default=Tag.LATEST, doc="Ignored: code is stored by its hash."
    )


def code_by_hash(ctx: Context, params: CodeHashParams) -> bytes:
    """The code with a hash; empty for an unknown hash.

    Trie nodes are stored in the same table, so the hash of a trie node returns the node.
    """
    return evm_state(ctx).record(params.hash) or b""


@dataclass(frozen=True, slots=True)
class SenderAndNonceParams(Params):
    """Parameters of ``eth_getTransactionBySenderAndNonce``."""

    address: bytes = param(Address(), doc="Address of the sender.")
    nonce: int = param(Quantity(), doc="Nonce of the transaction.")


def by_sender_and_nonce(ctx: Context, params: SenderAndNonceParams) -> RPCTransaction | None:
    """A sender's transaction with a nonce, in a block or pending.

    The block is found by a binary search for the first one after which the sender's nonce is
    higher. On a development chain, a nonce that was set manually can hide the transaction.
    """
    chain = reader(ctx)
    first, latest = chain.height(Tag.EARLIEST), chain.latest

    def is_used(height: int) -> bool:
        return _nonce(ctx, params.address, height) > params.nonce

    if not is_used(latest):
        return _waiting(ctx, params)
    if is_used(first):
        if first > chain.first:
            raise PrunedHistory
        return None
    heights = range(first, latest + 1)
    block = chain.block_at(heights[bisect_left(heights, True, key=is_used)])
    for receipt in block.receipts if block else ():
        sent = receipt.transaction
        if (sent.sender, sent.nonce) == (params.address, params.nonce):
            return receipt.in_block
    return None


def _nonce(ctx: Context, address: bytes, height: int) -> int:
    return accounts.account(evm_state(ctx).record, root_of(ctx, height), address).nonce


def _waiting(ctx: Context, params: SenderAndNonceParams) -> RPCTransaction | None:
    for raw in ctx.backend.mempool.pending_by_sender(params.address, _MAX_PENDING):
        for tx in reader(ctx).decode_pending(raw):
            if tx.nonce == params.nonce:
                return pending_transaction(tx)
    return None
