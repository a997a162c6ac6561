"""Handlers that revert or replace the newest blocks of a development chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidTransaction
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ....wire.params import ParamField
from ...domain.execution import CallArgs
from ..codec.call_objects import TransactionObject
from ..codec.params import Data, mismatch
from ..errors import INVALID_PARAMS, EvmError
from ..execution.sending import RawTransaction, hand_in_raw
from . import signing
from .control import MAX_BLOCKS, Number, check_blocks, checked_control


@dataclass(frozen=True, slots=True)
class RollbackParams(Params):
    """Parameters of ``anvil_rollback``."""

    depth: int = param(Number(), default=1, doc="Number of blocks to remove; 1 when omitted.")


def rollback(ctx: Context, params: RollbackParams) -> None:
    """Remove the newest blocks; the chain's clock is not reset."""
    _check_depth(ctx, params.depth, "Rollback")
    with checked_control(ctx) as chain_control:
        chain_control.rollback(params.depth)


def _check_depth(ctx: Context, depth: int, what: str) -> None:
    height = ctx.backend.reads.latest_height()
    if depth > max(0, height - ctx.backend.reads.initial_height() + 1):
        raise EvmError(
            f"{what} depth must not exceed current chain height: current height {height},"
            f" depth {depth}",
            code=INVALID_PARAMS,
        )


_Tx = CallArgs | bytes


class PlacedTransactions(ParamField):
    """Pairs of a transaction and the index of the new block that includes it."""

    json_type = "array"

    def from_json(self, value: Any) -> tuple[tuple[_Tx, int], ...]:
        """Return the pairs; raise :exc:`ValueError` if one is invalid."""
        if not isinstance(value, list):
            raise mismatch(value, "[]pair")
        if len(value) > MAX_BLOCKS:
            raise ValueError(
                f"expected at most {MAX_BLOCKS} transactions, got {len(value)}; send fewer"
            )
        return tuple(map(_pair, value))


def _pair(value: Any) -> tuple[_Tx, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("expected pairs [transaction, index of its block]")
    tx, index = value
    kind = Data() if isinstance(tx, str) else TransactionObject()
    return kind.from_json(tx), Number().from_json(index)


@dataclass(frozen=True, slots=True)
class ReorgParams(Params):
    """Parameters of ``anvil_reorg``."""

    depth: int = param(Number(), doc="Number of blocks to replace.")
    tx_block_pairs: tuple[tuple[_Tx, int], ...] = param(
        PlacedTransactions(),
        default=(),
        doc="Pairs of a transaction (object or signed bytes) and its block's index, from 0.",
    )


def reorg(ctx: Context, params: ReorgParams) -> None:
    """Replace the newest blocks with the same number of new ones, which include the given
    transactions.

    All blocks are made even if a transaction is refused; its error is raised afterwards.
    """
    depth, pairs = params.depth, params.tx_block_pairs
    check_blocks(depth)
    if any(index >= depth for _, index in pairs):
        raise EvmError(
            f"tx_block_pairs: expected block indices below the depth, {depth}",
            code=INVALID_PARAMS,
        )
    refused: list[EvmError] = []
    with checked_control(ctx) as chain_control, chain_control.manual_mining():
        _check_depth(ctx, depth, "Reorg")
        chain_control.rollback(depth)
        for block in range(depth):
            refused += _submitted(ctx, [tx for tx, index in pairs if index == block])
            chain_control.mine()
    if refused:
        raise refused[0]


def _submitted(ctx: Context, txs: Sequence[_Tx]) -> list[EvmError]:
    """Submit transactions for the next block; return the errors of the refused
    transactions."""
    refused = []
    for tx in txs:
        try:
            if isinstance(tx, bytes):
                hand_in_raw(ctx, RawTransaction(tx))
            else:
                signing.fill_and_submit(ctx, tx)
        except EvmError as error:
            refused.append(error)
        except InvalidTransaction as error:
            refused.append(EvmError(error.text_with_hint))
    return refused
