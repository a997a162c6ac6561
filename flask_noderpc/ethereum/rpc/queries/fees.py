"""Handlers for gas prices, which are derived from the base fees and tips of latest blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....wire.json_schema import typed
from ....wire.params import ParamField
from ...domain.records import MIN_BLOB_FEE, Header
from ...protocol.blocks import Block, fee_after
from ...protocol.execution import Receipt
from ...protocol.validity import CHANGE_DENOMINATOR, ELASTICITY
from ..codec import hex
from ..codec.params import BlockNumber, Height, Tag, mismatch
from ..errors import EvmError
from ..reader import Reader, SearchBudget, reader
from .logs import scan_slot

# geth: eth/gasprice/feehistory.go.
_MAX_BLOCKS = 1024
_MAX_PERCENTILES = 100

# geth: eth/gasprice/gasprice.go, with the defaults of a full node.
_SAMPLED_BLOCKS, _SAMPLED_TXS, _PERCENTILE = 20, 3, 60
_MIN_TIP, _MAX_TIP = 2, 500 * 10**9


def gas_price(ctx: Context, params: NoParams) -> int:
    """The base fee of the next block plus a suggested tip; 0 on a chain without a fee
    market."""
    return base_fee(ctx, params) + priority_fee(ctx, params)


def priority_fee(ctx: Context, params: NoParams) -> int:
    """A suggested tip, from the tips in the latest blocks, or from the base fee if they have
    no transactions with tips."""
    tips = sorted(_latest_tips(ctx))
    if not tips:
        return _tip(base_fee(ctx, params))
    return min(tips[(len(tips) - 1) * _PERCENTILE // 100], _MAX_TIP)


def _latest_tips(ctx: Context) -> Iterator[int]:
    """Yield the three lowest tips of each of the latest 20 blocks, in wei per gas."""
    chain = reader(ctx)
    first, block = ctx.backend.reads.base_height(), chain.block(Tag.LATEST)
    for _ in range(_SAMPLED_BLOCKS):
        if block is None or block.partial_header.number < first:
            return
        fee = block.partial_header.base_fee or 0
        tips = (receipt.effective_gas_price - fee for receipt in block.receipts)
        yield from sorted(tip for tip in tips if tip >= _MIN_TIP)[:_SAMPLED_TXS]
        block = chain.parent(block)


def base_fee(ctx: Context, params: NoParams) -> int:
    """The base fee of the next block; 0 on a chain without a fee market."""
    latest = reader(ctx).block(Tag.LATEST)
    return 0 if latest is None else fee_after(latest.partial_header) or 0


def blob_base_fee(ctx: Context, params: NoParams) -> int:
    """Base fee of blob gas: always the minimum of EIP-4844, as headers count no blob gas."""
    return MIN_BLOB_FEE


def _tip(fee: int) -> int:
    # Ethermint suggests the maximum increase of the base fee in one block.
    return fee * (ELASTICITY - 1) // CHANGE_DENOMINATOR


class Count(ParamField):
    """A number of blocks: a JSON number, or a string in hex or decimal."""

    json_type = "integer"
    in_json = typed("integer", "string")

    def from_json(self, value: Any) -> int:
        """Return the number."""
        if isinstance(value, str) and value[:2] in ("0x", "0X"):
            return hex.read_quantity(value)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value[:20])
        if not isinstance(value, int) or isinstance(value, bool):
            raise mismatch(value, "math.HexOrDecimal64")
        if not 0 <= value <= hex.MAX_UINT64:
            raise ValueError(f"invalid hex or decimal integer {value}")
        return value


class Percentiles(ParamField):
    """A list of percentiles."""

    json_type = "array"

    def from_json(self, value: Any) -> tuple[float, ...]:
        """Return the percentiles; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, list):
            raise mismatch(value, "[]float64")
        for each in value:
            if not isinstance(each, int | float) or isinstance(each, bool):
                raise mismatch(each, "float64")
        try:
            return tuple(map(float, value))
        except OverflowError:
            raise mismatch(value[0], "float64") from None


@dataclass(frozen=True, slots=True)
class FeeHistory(Params):
    """Parameters of ``eth_feeHistory``."""

    count: int = param(Count(), doc="Number of blocks.")
    newest: Height = param(BlockNumber(), doc="Height or tag of the newest block.")
    percentiles: tuple[float, ...] = param(
        Percentiles(),
        default=(),
        doc="Percentiles of each block's tips to return, in ascending order.",
    )


def is_committed(ctx: Context, params: FeeHistory) -> bool:
    """Return true unless the range ends at the pending block."""
    return params.newest is not Tag.PENDING


def fee_history(ctx: Context, params: FeeHistory) -> dict[str, Any]:
    """Base fees, ratios of used gas to the limit, and tips, for each block of a range."""
    _check(params.percentiles)
    chain = reader(ctx)
    newest = chain.height(params.newest)
    if newest > chain.latest:
        raise EvmError(f"request beyond head block: requested {newest}, head {chain.latest}")
    span = range(max(0, newest - min(params.count, _MAX_BLOCKS) + 1), newest + 1)
    if not params.count:
        return {"oldestBlock": 0, "gasUsedRatio": None}
    budget = SearchBudget(ctx.settings)
    blocks: list[Block] = []
    with scan_slot(ctx, span):
        for height in span:
            block = chain.block_at(height)
            if block is not None:
                budget.spend(1 + len(block.receipts))
                if blocks and blocks[-1].partial_header.number != height - 1:
                    # Drop block 0, which always exists, where the blocks after it were
                    # pruned: the history has no gaps.
                    blocks.clear()
                blocks.append(block)
    if not blocks:
        raise EvmError("header not found")
    return _history(blocks, _fee_behind(chain, blocks[-1].partial_header), params.percentiles)


def _check(percentiles: Sequence[float]) -> None:
    if len(percentiles) > _MAX_PERCENTILES:
        raise _invalid(f"over the query limit {_MAX_PERCENTILES}")
    for index, each in enumerate(percentiles):
        if not 0 <= each <= 100:
            raise _invalid(f"{each:f}")
        if index and each <= percentiles[index - 1]:
            raise _invalid(f"#{index - 1}:{percentiles[index - 1]:f} >= #{index}:{each:f}")


def _invalid(reason: str) -> EvmError:
    return EvmError(f"invalid reward percentile: {reason}")


def _fee_behind(chain: Reader, newest: Header) -> int:
    """Return the base fee of the following block, for which a chain may have its own rules."""
    following = chain.block_at(max(newest.number + 1, chain.first))
    return (
        fee_after(newest) or 0 if following is None else following.partial_header.base_fee or 0
    )


def _history(
    blocks: Sequence[Block], fee_behind: int, percentiles: Sequence[float]
) -> dict[str, Any]:
    headers = [block.partial_header for block in blocks]
    fees = [header.base_fee or 0 for header in headers]
    shown: dict[str, Any] = {
        "oldestBlock": headers[0].number,
        "baseFeePerGas": (*fees, fee_behind),
        "gasUsedRatio": tuple(_ratio(header) for header in headers),
        "baseFeePerBlobGas": (MIN_BLOB_FEE,) * (len(blocks) + 1),
        "blobGasUsedRatio": (0.0,) * len(blocks),
    }
    if percentiles:
        shown["reward"] = tuple(_rewards(block, percentiles) for block in blocks)
    return shown


def _ratio(header: Header) -> float:
    return header.gas_used / header.gas_limit if header.gas_limit else 0.0


def _rewards(block: Block, percentiles: Sequence[float]) -> tuple[int, ...]:
    """Return the tip of the transaction at each percentile of the block's gas."""
    fee = block.partial_header.base_fee or 0
    receipts = sorted(block.receipts, key=lambda receipt: receipt.effective_gas_price)
    used = sum(receipt.gas_used for receipt in receipts)
    return tuple(_tip_at(receipts, math.floor(used * each / 100), fee) for each in percentiles)


def _tip_at(receipts: Sequence[Receipt], gas: int, fee: int) -> int:
    seen = 0
    for receipt in receipts:
        seen += receipt.gas_used
        if seen >= gas:
            return max(0, receipt.effective_gas_price - fee)
    return 0
