"""What a mount answers, for machines: made of its table and its dialect, so never stale.

OpenAPI 3.1 describes GET, OpenRPC 1.2 the methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from .. import json
from ..wire.dialect import Dialect
from ..wire.json_schema import Components
from .context import Context
from .params import NoParams, ParamSpec, specs
from .route import Route, RouteTable

Json = Any

_URI_VALUES = (
    "Texts stand in double quotes, or as hex behind 0x, and lists and objects as JSON."
    " An empty value counts as not given."
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
                "data": {},
            },
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "error"],
}


def openapi(routes: Iterable[Route[Any]], dialect: Dialect, base: str) -> Json:
    """The document of GET, whose paths stand behind ``base``."""
    components = Components()
    paths = {f"/{route.name}": {"get": _get(route, dialect, components)} for route in routes}
    return {
        "openapi": "3.1.0",
        "info": _info(dialect) | {"description": _URI_VALUES},
        "servers": [{"url": base or "/"}],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "responses": {"Error": _response("The call failed.", _ERROR)},
        },
    }


def openrpc(routes: Iterable[Route[Any]], dialect: Dialect) -> Json:
    """The document of the methods."""
    components = Components()
    methods = [
        {
            "name": route.name,
            "summary": route.doc,
            "params": [_method_param(spec) for spec in specs(route.params)],
            "result": {"name": "result", "schema": dialect.described(route.result, components)},
        }
        for route in routes
    ]
    return {
        "openrpc": "1.2.6",
        "info": _info(dialect),
        "methods": methods,
        "components": {"schemas": components.schemas},
    }


def with_discover(routes: RouteTable, dialect: Dialect) -> RouteTable:
    """The table, and ``rpc.discover`` behind it, which tells of it."""

    def discover(ctx: Context, params: NoParams) -> json.Raw:
        """This interface, as an OpenRPC document."""
        if "openrpc" not in ctx.memo:
            ctx.memo["openrpc"] = json.Raw(json.encode(openrpc(whole, dialect)))
        found: json.Raw = ctx.memo["openrpc"]
        return found

    whole = RouteTable((*routes, Route("rpc.discover", discover, NoParams, json.Raw)))
    return whole


def _info(dialect: Dialect) -> dict[str, Json]:
    return {"title": f"flask-noderpc, {dialect.name}", "version": version("flask-noderpc")}


def _get(route: Route[Any], dialect: Dialect, components: Components) -> Json:
    found = {
        "operationId": route.name,
        "summary": route.doc,
        "responses": {
            "200": _response("The answer.", _answer(route, dialect, components)),
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    parameters = [_uri_param(spec) for spec in specs(route.params)]
    return found | ({"parameters": parameters} if parameters else {})


def _answer(route: Route[Any], dialect: Dialect, components: Components) -> Json:
    return {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"const": -1},
            "result": dialect.described(route.result, components),
        },
        "required": ["jsonrpc", "id", "result"],
    }


def _response(said: str, schema: Json) -> Json:
    return {"description": said, "content": {"application/json": {"schema": schema}}}


def _uri_param(spec: ParamSpec) -> Json:
    schema = _param_schema(spec)
    found = {"name": spec.wire, "in": "query", "required": spec.required}
    found["description"] = spec.doc
    if spec.kind.json_type in ("array", "object"):
        return found | {"content": {"application/json": {"schema": schema}}}
    return found | {"schema": schema}


def _method_param(spec: ParamSpec) -> Json:
    return {
        "name": spec.wire,
        "required": spec.required,
        "description": spec.doc,
        "schema": _param_schema(spec),
    }


def _param_schema(spec: ParamSpec) -> Json:
    kind = spec.kind.json_type
    found: dict[str, Json] = {} if kind == "any" else {"type": kind}
    if spec.default is not None and isinstance(spec.default, bool | int | str):
        found["default"] = spec.default
    return found
