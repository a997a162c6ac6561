"""API descriptions of a mount, made from its route table and its dialect.

OpenAPI 3.1 describes the GET routes, OpenRPC 1.2 the JSON-RPC methods. Examples of parameters
are taken from the chain.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..errors import CallFailed, InvalidParams
from ..protocol.comet.hashes import tx_hash
from ..wire import json_schema as forms
from ..wire.dialect import Dialect
from ..wire.json_schema import Components
from .context import Context
from .params import NoParams, ParamSpec, specs
from .route import Route, RouteTable

Json = Any

DISCOVER = "rpc.discover"

_URI_VALUES = (
    ", and lists and objects as JSON."
    " Integers may also be in double quotes. An empty value counts as omitted."
)
_ERROR = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {"type": "string"},
            },
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "error"],
}

# Errors that every method may return.
_ERRORS = {
    "InvalidParams": (InvalidParams(), "A parameter is invalid; the text names it."),
    "CallFailed": (CallFailed(), "The call failed; the text says why."),
}

# Content of the 403 for a host that is not served, which is plain text.
_HOST_REFUSED = {"text/plain": {"schema": {"type": "string"}}}


def openapi(routes: Iterable[Route[Any]], dialect: Dialect, base: str) -> Json:
    """Return the OpenAPI document of GET routes at the path ``base``."""
    components = Components()
    paths = {f"/{route.name}": {"get": _get(route, dialect, components)} for route in routes}
    return {
        "openapi": "3.1.0",
        "info": _info(dialect) | {"description": dialect.params.uri_texts + _URI_VALUES},
        "servers": [{"url": f"{base}{prefix}" or "/"} for prefix in dialect.http.mounts],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "responses": {
                "Error": _response("The call failed.", _ERROR),
                "Forbidden": _response("The client may not call this.", _ERROR, _HOST_REFUSED),
            },
        },
    }


def openrpc(routes: Iterable[Route[Any]], dialect: Dialect) -> Json:
    """Return the OpenRPC document of the routes."""
    components = Components()
    methods = [
        {
            "name": route.name,
            "summary": route.doc,
            **({"tags": [{"name": route.tag}]} if route.tag else {}),
            "params": [_method_param(spec, dialect) for spec in specs(route.params)],
            "result": {"name": "result", "schema": dialect.described(route.result, components)},
            "errors": [{"$ref": f"#/components/errors/{name}"} for name in _ERRORS],
        }
        for route in routes
    ]
    errors = {
        name: {"code": dialect.envelope.code(error), "message": message}
        for name, (error, message) in _ERRORS.items()
    }
    return {
        "openrpc": "1.2.6",
        "info": _info(dialect),
        "methods": methods,
        "components": {"schemas": components.schemas, "errors": errors},
    }


def with_discover(
    routes: RouteTable, dialect: Dialect, has: Callable[[str], bool]
) -> RouteTable:
    """Return the table with ``rpc.discover``, which lists the methods for which ``has`` returns
    true."""

    def discover(ctx: Context, params: NoParams) -> jsoncodec.Raw:
        """OpenRPC document of the methods that the node serves."""
        if "openrpc" not in ctx.memo:
            listed = [route for route in table if has(route.name)]
            ctx.memo["openrpc"] = jsoncodec.Raw(jsoncodec.encode(openrpc(listed, dialect)))
        document: jsoncodec.Raw = ctx.memo["openrpc"]
        return document

    table = RouteTable(
        (*routes, Route(DISCOVER, discover, NoParams, jsoncodec.Raw, tag="Node"))
    )
    return table


def _info(dialect: Dialect) -> dict[str, Json]:
    return {"title": f"flask-noderpc, {dialect.name}", "version": version("flask-noderpc")}


def _get(route: Route[Any], dialect: Dialect, components: Components) -> Json:
    found = {
        "operationId": route.name,
        "summary": route.doc,
        **({"tags": [route.tag]} if route.tag else {}),
        "responses": {
            "200": _response("The response.", _answer(route, dialect, components)),
            **{str(status.value): _failure(status) for status in sorted(dialect.failures)},
        },
    }
    parameters = [_uri_param(spec, dialect) for spec in specs(route.params)]
    return found | ({"parameters": parameters} if parameters else {})


def _answer(route: Route[Any], dialect: Dialect, components: Components) -> Json:
    members = {
        "jsonrpc": {"const": "2.0"},
        "id": {"const": -1},
        "result": dialect.described(route.result, components),
    }
    if route.result in dialect.error_member:
        members["error"] = {"const": ""}
    return {"type": "object", "properties": members, "required": list(members)}


def _failure(status: HTTPStatus) -> Json:
    name = "Forbidden" if status == HTTPStatus.FORBIDDEN else "Error"
    return {"$ref": f"#/components/responses/{name}"}


def _response(description: str, schema: Json, others: Json = None) -> Json:
    content = {"application/json": {"schema": schema}}
    return {"description": description, "content": content | (others or {})}


def _uri_param(spec: ParamSpec, dialect: Dialect) -> Json:
    form = dialect.params.reader(spec.kind).in_uri
    schema = form | _default(spec, form)
    found = {"name": spec.wire, "in": "query", "required": spec.required}
    found["description"] = spec.doc
    if form["type"] in ("array", "object"):
        return found | {"content": {"application/json": {"schema": schema}}}
    return found | {"schema": schema}


def _method_param(spec: ParamSpec, dialect: Dialect) -> Json:
    form = dialect.params.reader(spec.kind).in_json
    return {
        "name": spec.wire,
        "required": spec.required,
        "description": spec.doc,
        "schema": form | _default(spec, form),
    }


def _default(spec: ParamSpec, form: Json) -> dict[str, Json]:
    # Omit the default of a string, which is empty, and would need quotes in a URI.
    is_plain = isinstance(spec.default, int) and form.get("type") != "string"
    return {"default": spec.default} if is_plain else {}


Values = Mapping[str, Any]
"""Example values by parameter name: hashes as bytes, other bytes as strings."""

_PEER = "1f8a5e2c3b4d6a7988c0e1d2f3a4b5c6d7e8f901@127.0.0.1:26656"


def of_chain(backend: ChainBackend) -> dict[str, Values | None]:
    """Return example values from the chain for routes that need parameters, by route; ``None``
    if the chain has no example yet."""
    latest = backend.reads.latest_height()
    by_hash = {"hash": backend.reads.block_meta(latest).block_id.hash} if latest else None
    recent = backend.reads.latest_txs(1)
    a_tx = {"tx": "name=satoshi"}
    return {
        "block_by_hash": by_hash,
        "header_by_hash": by_hash,
        "block": {} if latest else None,
        "header": {} if latest else None,
        "commit": {} if latest else None,
        "block_results": {} if latest else None,
        "blockchain": {} if latest else None,
        "tx": {"hash": tx_hash(recent[0].tx), "prove": True} if recent else None,
        "tx_search": {"query": "tx.height>0"},
        "block_search": {"query": "block.height>0"},
        "check_tx": a_tx,
        "broadcast_tx_sync": a_tx,
        "broadcast_tx_async": a_tx,
        "broadcast_tx_commit": a_tx,
        "broadcast_evidence": {
            "evidence": {"type": "tendermint/DuplicateVoteEvidence", "value": {}}
        },
        "abci_query": {"data": "name"},
        "dial_seeds": {"seeds": [_PEER]},
        "dial_peers": {"peers": [_PEER]},
    }


def examples_of(backend: ChainBackend) -> dict[str, dict[str, Any] | None]:
    """Return the examples of :func:`of_chain` in the notation of a URI."""
    return {
        route: None if values is None else {name: in_uri(each) for name, each in values.items()}
        for route, values in of_chain(backend).items()
    }


def in_uri(value: Json) -> str:
    """Return an example value in the notation of a URI, which every dialect accepts."""
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    return as_text(value) if not isinstance(value, str) else jsoncodec.encode(value).decode()


def in_json(value: Json, form: Json) -> str:
    """Return an example value as text for a JSON parameter with the schema ``form``: the
    content of a string, or JSON."""
    if form in (forms.BASE64, forms.HASH, forms.HEX):
        content = value if isinstance(value, bytes) else str(value).encode()
        return content.hex() if form == forms.HEX else base64.b64encode(content).decode()
    return as_text(value)


def as_text(value: Json) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else jsoncodec.encode(value).decode()
