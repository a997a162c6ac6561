"""Routes that need an EVM state and forward their calls to another node, which has one.

Parameters are checked by the rules of the route and forwarded unchanged. Only tags for the
newest block are replaced with this node's latest height; otherwise ``eth_call`` could be
executed at a later block than ``eth_blockNumber`` returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from functools import cache
from typing import Any

from ... import jsoncodec
from ...backends.base.capabilities import FORWARDED_CALLS, ForwardedCalls
from ...errors import ForwardedCallFailed
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, ParamSpec, param, specs
from ...jsonrpc.route import Route, RouteTable
from ...wire.params import ParamField
from .codec import hex
from .codec.params import BlockId, Tag
from .errors import SERVER_ERROR, EvmError
from .reader import reader

_FORWARDED = frozenset(
    {
        "eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt",
        "eth_getStorageValues", "eth_getProof", "eth_call", "eth_estimateGas",
        "eth_createAccessList", "eth_fillTransaction", "eth_simulateV1",
        "eth_gasPrice", "eth_maxPriorityFeePerGas",
        "eth_sendRawTransaction", "eth_sendRawTransactionSync",
        "debug_traceTransaction", "debug_traceCall", "debug_traceBlock",
        "debug_traceBlockByNumber", "debug_traceBlockByHash",
    }
)  # fmt: skip
_FIXED = frozenset({"eth_chainId", "net_version"})
_NEWEST = (Tag.LATEST, Tag.SAFE, Tag.FINALIZED)


def with_forwarded(table: RouteTable, ctx: Context) -> RouteTable:
    """Return the table with routes that forward their calls, if the backend can forward."""
    forward = FORWARDED_CALLS.find(ctx.backend)
    if forward is None:
        return table
    return RouteTable(_forwarded(row, forward) for row in table)


def _forwarded(row: Route[Any], forward: ForwardedCalls) -> Route[Any]:
    if row.name in _FIXED:
        return Route(
            row.name, _fixed(row.name, forward), row.params, jsoncodec.Raw, tag=row.tag
        )
    if row.name not in _FORWARDED:
        return row
    handler = _handler(row, forward)
    params = params_with_json(row.params, _tag_or_json, _forwarded_default)
    return Route(
        row.name,
        handler,
        params,
        jsoncodec.Raw,
        writes=row.writes,
        signs=row.signs,
        tag=row.tag,
    )


def _fixed(method: str, forward: ForwardedCalls) -> Callable[[Context, Params], jsoncodec.Raw]:
    """Return a handler for a call whose result never changes, so it is requested only once."""

    @cache
    def result() -> jsoncodec.Raw:
        return forwarded_result(forward, method, b"[]")

    return lambda ctx, params: result()


def _handler(
    row: Route[Any], forward: ForwardedCalls
) -> Callable[[Context, Any], jsoncodec.Raw]:
    names = [spec.name for spec in specs(row.params)]

    def handler(ctx: Context, params: Params) -> jsoncodec.Raw:
        values = [_value(ctx, getattr(params, name)) for name in names]
        while values and values[-1] is None:
            values.pop()
        return forwarded_result(forward, row.name, jsoncodec.encode(values))

    handler.__doc__ = row.doc
    return handler


def _value(ctx: Context, value: Any) -> Any:
    """Return the JSON of a parameter; a tag of the newest block becomes this node's latest
    height."""
    if isinstance(value, Tag):
        return hex.quantity(reader(ctx).latest) if value in _NEWEST else value.value
    return value


def forwarded_result(forward: ForwardedCalls, method: str, params: bytes) -> jsoncodec.Raw:
    """Return the JSON of the result of another node; raise its error as
    :exc:`.errors.EvmError`."""
    try:
        return jsoncodec.Raw(forward.call(method, params))
    except ForwardedCallFailed as failed:
        error = failed.error
        code = error.get("code")
        raise EvmError(
            failed.text,
            code=code if isinstance(code, int) else SERVER_ERROR,
            data=error.get("data"),
        ) from None


def params_with_json(
    kind: type[Params],
    value_of: Callable[[Any, Any], Any],
    default_of: Callable[[ParamSpec], Any],
) -> type[Params]:
    """Return a type of parameters that checks like ``kind`` and keeps their JSON.

    The value of a parameter is ``value_of(read, json)``, where ``read`` is what ``kind`` reads
    from the JSON. ``default_of`` returns the value of an optional parameter that is omitted.
    """
    members = [
        (spec.name, Any, _param_with_json(spec, value_of, default_of)) for spec in specs(kind)
    ]
    return make_dataclass(kind.__name__, members, bases=(Params,), frozen=True, slots=True)


def _param_with_json(
    spec: ParamSpec,
    value_of: Callable[[Any, Any], Any],
    default_of: Callable[[ParamSpec], Any],
) -> Any:
    default = {} if spec.required else {"default": default_of(spec)}
    return param(_ParamWithJson(spec.kind, value_of), doc=spec.doc, wire=spec.wire, **default)


class _ParamWithJson(ParamField):
    """A parameter that is checked by another type and keeps its JSON."""

    def __init__(self, kind: ParamField, value_of: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._kind = kind
        self._value_of = value_of
        self.json_type = kind.json_type

    @property
    def in_json(self) -> Any:
        """JSON Schema of the other type."""
        return self._kind.in_json

    def from_json(self, value: Any) -> Any:
        """Return ``value_of(read, value)``; raise :exc:`ValueError`."""
        return self._value_of(self._kind.from_json(value), value)


def _tag_or_json(read: Any, value: Any) -> Any:
    return read if isinstance(read, Tag) else value


def _forwarded_default(spec: ParamSpec) -> Any:
    if isinstance(spec.kind, BlockId):
        # Nodes have different defaults, so always send the block.
        return Tag.LATEST
    return spec.default if isinstance(spec.default, Tag) else None
