"""The page at ``GET /try``: a form for each call, made from the API descriptions of a mount.

Forms for GET are made from ``/openapi.json``. Forms for JSON-RPC are made from the result of
``rpc.discover`` for the page's reader, so they only have methods that this reader may call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from flask import Response, current_app, render_template, request, url_for

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..errors import NodeRPCError
from ..jsonrpc import describe
from ..jsonrpc.context import Permissions
from ..jsonrpc.describe import DISCOVER
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.reply import to_rpc_error
from ..wire import json_schema as forms
from .html import SHARED_STYLE
from .layers import Example, Layer
from .rule_conflicts import has_get

Json = Any

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FILES = {
    "pages_style": SHARED_STYLE,
    "try_style": "try.css",
    "try_script": "try.js",
    "try_icon": "try.svg",
}
"""Names of the page's static files, by endpoint."""


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter of a form."""

    name: str
    doc: str
    required: bool
    schema: Json
    example: str

    @property
    def types(self) -> list[str]:
        """JSON types that the parameter may have; empty if all types are allowed."""
        found = self.schema.get("type", [])
        return [found] if isinstance(found, str) else found

    @property
    def kind(self) -> str:
        """The parameter's type in words, such as ``integer or text``."""
        named = _NAMES.get(self.schema.get("pattern", ""))
        words = [_WORDS.get(each, each) for each in self.types]
        if named:
            words = [named, *(word for word in words if word != "text")]
        return " or ".join(dict.fromkeys(words)) or "any"

    @property
    def default(self) -> str:
        """The default value as JSON; empty if the parameter has none."""
        return jsoncodec.encode(self.schema["default"]).decode() if self.has_default else ""

    @property
    def has_default(self) -> bool:
        """True if the parameter's schema has a default."""
        return "default" in self.schema

    @property
    def is_long(self) -> bool:
        """True if the value may be a list or an object, which need several lines."""
        return not {"array", "object"}.isdisjoint(self.types)


_WORDS = {"string": "text", "array": "list"}
_NAMES = {
    form["pattern"]: name
    for form, name in (
        # JSON has these as strings; the script of the page adds the quotes.
        (forms.DIGITS, "integer"),
        (forms.BASE64, "base64"),
        (forms.HEX, "hex"),
        (forms.HASH, "base64, or hex behind 0x"),
        (forms.HASH_IN_URI, "hash"),
        (forms.CURSOR, "cursor"),
        (forms.DURATION, "duration"),
    )
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One form: a GET route or a JSON-RPC method, its parameters and its possible
    responses."""

    name: str
    doc: str
    tag: str
    fields: list[Field]
    answers: dict[str, str]
    """Descriptions of the responses, by HTTP status or error code."""


@dataclass(frozen=True, slots=True)
class Content:
    """Content of the page for one API."""

    url: str
    """URL to which calls are sent; for GET, the name of the route is appended to it."""
    operations: Iterable[Operation] = ()
    about: str = ""
    trouble: str = ""
    """Reason why there are no forms or examples."""

    def groups(self) -> dict[str, list[Operation]]:
        """Return the forms by tag, in the order of the API description."""
        found: dict[str, list[Operation]] = {}
        for operation in self.operations:
            found.setdefault(operation.tag or "Others", []).append(operation)
        return found


class Api(NamedTuple):
    """An API of the mount: GET, JSON-RPC, or a layer."""

    title: str
    content: Callable[[], Content]


class TryPage:
    """The page ``/try`` of one mount."""

    def __init__(
        self,
        start: Callable[[], None],
        backend: ChainBackend,
        described: Callable[[], bytes],
        dispatcher: Dispatcher,
        layers: Iterable[Layer],
        permissions: Callable[[], Permissions],
    ) -> None:
        self._start = start
        self._backend = backend
        self._described = described
        self._dispatcher = dispatcher
        self._permissions = permissions
        self._apis = {
            "get": Api("GET", self._routes),
            "json-rpc": Api("JSON-RPC", self._methods),
        }
        for layer in layers:
            for endpoint, found in layer.dispatchers.items():
                content = partial(self._of_layer, layer, endpoint, found)
                self._apis[endpoint] = Api(layer.title, content)

    def page(self) -> Response:
        """Return the page; the query parameter ``api`` chooses the API."""
        name = request.args.get("api", "")
        name = name if name in self._apis else "get"
        content = self._apis[name].content()
        html = render_template(
            "noderpc/try.html",
            apis={each: api.title for each, api in self._apis.items()},
            api=name,
            content=content,
            has_get=_has_get,
            here=_url,
        )
        headers = {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            # Shared caches must not store the page: its methods depend on the reader.
            "Cache-Control": "private, no-cache",
        }
        return Response(html, headers=headers)

    def _routes(self) -> Content:
        document = jsoncodec.decode(self._described())
        known, trouble = self._known()
        return Content(
            document["servers"][0]["url"].rstrip("/") + "/",
            _of_openapi(document, known),
            document["info"]["description"],
            trouble,
        )

    def _methods(self) -> Content:
        known, trouble = self._known()

        def example(method: str, param: Json) -> str:
            values, name = known.get(method) or {}, param["name"]
            return describe.in_json(values[name], param["schema"]) if name in values else ""

        return self._discovered("rpc", self._dispatcher, example, trouble)

    def _of_layer(self, layer: Layer, endpoint: str, dispatcher: Dispatcher) -> Content:
        example = layer.examples(partial(_ask, dispatcher, self._permissions()))
        return self._discovered(endpoint, dispatcher, example)

    def _known(self) -> tuple[Mapping[str, describe.Values | None], str]:
        """Return examples from the chain by method, and the reason for their absence, or an
        empty string."""
        try:
            self._start()
            return describe.of_chain(self._backend), ""
        except NodeRPCError as error:
            return {}, to_rpc_error(error).text_with_hint

    def _discovered(
        self, endpoint: str, dispatcher: Dispatcher, example: Example, trouble: str = ""
    ) -> Content:
        url = _url(endpoint)
        answer = _ask(dispatcher, self._permissions(), DISCOVER)
        if "result" not in answer:
            error = answer["error"]
            texts = (error["message"], error.get("data"))
            return Content(url, trouble=": ".join(str(text) for text in texts if text))
        return Content(url, _of_openrpc(answer["result"], example), trouble=trouble)


def _ask(dispatcher: Dispatcher, permissions: Permissions, method: str, *params: Json) -> Json:
    """Return the response to a call with the permissions of the page's reader."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return jsoncodec.decode(bytes(dispatcher.post(jsoncodec.encode(call), permissions).body))


def _of_openapi(
    document: Json, known: Mapping[str, describe.Values | None]
) -> Iterator[Operation]:
    responses = document["components"]["responses"]
    for path, item in document["paths"].items():
        found = item["get"]
        name = path.removeprefix("/")
        values = known.get(name) or {}
        fields = [
            Field(
                each["name"],
                _plain(each["description"]),
                each["required"],
                each.get("schema") or each["content"]["application/json"]["schema"],
                describe.in_uri(values[each["name"]]) if each["name"] in values else "",
            )
            for each in found.get("parameters", ())
        ]
        answers = {
            status: _resolved(each, responses)["description"]
            for status, each in found["responses"].items()
        }
        tag = _first(found.get("tags"))
        yield Operation(name, _plain(found["summary"]), tag, fields, answers)


def _of_openrpc(document: Json, example: Example) -> Iterator[Operation]:
    errors = document["components"]["errors"]
    for found in document["methods"]:
        name = found["name"]
        fields = [
            Field(
                each["name"],
                _plain(each["description"]),
                each["required"],
                each["schema"],
                example(name, each),
            )
            for each in found["params"]
        ]
        described = (_resolved(each, errors) for each in found["errors"])
        answers = {str(each["code"]): each["message"] for each in described}
        tags = [each["name"] for each in found.get("tags", ())]
        yield Operation(name, _plain(found["summary"]), _first(tags), fields, answers)


def _resolved(found: Json, components: Json) -> Json:
    return components[found["$ref"].rpartition("/")[2]] if "$ref" in found else found


def _plain(text: str) -> str:
    # Descriptions are docstrings, which have Sphinx markup.
    return text.replace("``", "")


def _first(tags: list[str] | None) -> str:
    return tags[0] if tags else ""


def _url(endpoint: str, **values: str) -> str:
    # Add the values of variables in the url_prefix, which links also need.
    return url_for(f".{endpoint}", **{**(request.view_args or {}), **values})


def _has_get(endpoint: str) -> bool:
    return has_get(current_app, f"{request.blueprint}.{endpoint}")
