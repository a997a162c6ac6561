"""``eth_getLogs``: bounded in blocks, in results and in time, and never cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ..domain.ethereum import Block, Log
from ..errors import InvalidParams, SearchTooCostly
from ..ethereum.bloom import may_have
from ..rpc.context import Context
from ..rpc.params import Params, param
from .errors import EvmError
from .filters import FilterObject, LogFilter
from .params import Tag
from .reader import Reader, reader

_SERVER_ERROR = -32000


@dataclass(frozen=True, slots=True)
class Filtered(Params):
    """Of ``eth_getLogs`` and ``eth_newFilter``."""

    filter: LogFilter = param(FilterObject(), doc="Which logs.")


def get_logs(ctx: Context, params: Filtered) -> tuple[Log, ...]:
    """The logs that a filter wants, in the order they were emitted."""
    found: list[Log] = []
    most = ctx.settings.evm_logs_cap
    for log in _logs(ctx, params.filter):
        if len(found) == most:
            raise EvmError(
                f"query returned more than {most} results (NODERPC_EVM_LOGS_CAP raises it)",
                code=_SERVER_ERROR,
            )
        found.append(log)
    return tuple(found)


def _logs(ctx: Context, wanted: LogFilter) -> Iterator[Log]:
    deadline = time.monotonic() + ctx.settings.search_timeout
    for block in _blocks(ctx, wanted):
        if time.monotonic() > deadline:
            raise SearchTooCostly.by_time(ctx.settings.search_timeout)
        if may_have(block.header.bloom, wanted.addresses, wanted.topics):
            for receipt in block.receipts:
                yield from filter(wanted.matches, receipt.logs)


def _blocks(ctx: Context, wanted: LogFilter) -> Iterator[Block]:
    chain = reader(ctx)
    if wanted.block_hash is not None:
        found = chain.by_hash(wanted.block_hash)
        if found is None:
            raise EvmError("unknown block", code=_SERVER_ERROR)
        yield found
        return
    for height in heights(ctx, chain, wanted):
        block = chain.at(height)
        if block is not None:
            yield block


def heights(ctx: Context, chain: Reader, wanted: LogFilter) -> range:
    """The heights of a filter; raise :exc:`~flask_noderpc.errors.InvalidParams`."""
    if Tag.PENDING in (wanted.first, wanted.last):
        raise InvalidParams("pending logs are not supported")
    first, last, head = chain.height(wanted.first), chain.height(wanted.last), chain.latest
    if first > last:
        raise InvalidParams("invalid block range params")
    if last > head:
        raise InvalidParams("block range extends beyond current head block")
    most = ctx.settings.evm_block_range_cap
    if last - first > most:
        raise InvalidParams(
            f"exceed maximum block range {most}", "NODERPC_EVM_BLOCK_RANGE_CAP raises it"
        )
    return range(first, last + 1)
