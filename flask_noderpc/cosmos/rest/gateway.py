"""Translation of REST requests to queries of the application, and of the results to JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from ... import jsoncodec
from ...domain.abci import QueryResult
from ...domain.responses import ResultBroadcastTx
from ...errors import (
    Forbidden,
    InvalidRequest,
    MethodNotFound,
    NodeRPCError,
    NotAuthorized,
    NotSupported,
)
from ...protocol.comet.hashes import tx_hash
from ...protocol.protobuf import Malformed, Message
from ...wire.comet import gojson
from ..authz import errors as authz_errors
from ..bank import errors
from ..bank.errors import PANIC, Code
from ..distribution import errors as distribution_errors
from ..feegrant import errors as feegrant_errors
from ..params import errors as params_errors
from ..protocol.proto import MESSAGES
from ..slashing import errors as slashing_errors
from ..staking import errors as staking_errors
from ..upgrade import errors as upgrade_errors
from . import requests, routes
from .reader import read
from .writer import write

# Codes of gRPC's codes.go, and statuses of grpc-gateway's runtime/errors.go.
_CODES = {
    "Unknown": (2, 500),
    "InvalidArgument": (3, 400),
    "NotFound": (5, 404),
    "PermissionDenied": (7, 403),
    "Unimplemented": (12, 501),
    "Internal": (13, 500),
    "Unavailable": (14, 503),
}
# gRPC names of our exceptions; the first matching class is used, and other errors are
# Internal.
_ERRORS: tuple[tuple[type[Exception], str], ...] = (
    (Forbidden, "PermissionDenied"),
    (InvalidRequest, "InvalidArgument"),
    (MethodNotFound, "Unimplemented"),
    (NotSupported, "Unimplemented"),
    (NodeRPCError, "Unavailable"),
)
# Codes of types/errors/errors.go by a fragment of the error text, like the SDK's
# CheckCometError (client/broadcast.go). The text may come from an upstream node.
_NOT_CHECKED = {
    "tx already exists in cache": 19,
    "mempool is full": 20,
    "tx too large": 21,
}
# SDK: the log of a failed query is gRPC's error followed by the text of the error's code.
_RPC_ERROR = re.compile(r"rpc error: code = (\w+) desc = (.*): [a-z ]+", re.DOTALL)
_ERROR = re.compile(r"(.*): (?:unknown|invalid) request", re.DOTALL)
# SDK: logs of errors with a code of types/errors/errors.go; cosmossdk.io/errors, GRPCStatus.
_CODED = re.compile(r"(.*): (invalid height|invalid request|not found)", re.DOTALL)
_SDK_CODES = {"invalid height": 26, "invalid request": 18, "not found": 38}
_KEEPER_ERRORS = tuple(
    each
    for module in (
        errors,
        staking_errors,
        distribution_errors,
        slashing_errors,
        authz_errors,
        feegrant_errors,
        params_errors,
        upgrade_errors,
    )
    for each in vars(module).values()
    if isinstance(each, Code)
)
_MODES = {2: "broadcast_tx_sync", 3: "broadcast_tx_async"}
_HEADER, _METADATA = "X-Cosmos-Block-Height", "Grpc-Metadata-"
_INVALID_HEIGHT = 'invalid height header "x-cosmos-block-height"'
_UNSPECIFIED = "unsupported return type unspecified; supported types: sync, async"


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, JSON body and headers of a response."""

    status: HTTPStatus
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A REST request; ``height`` is the header ``x-cosmos-block-height``, or empty."""

    method: str
    path: str
    query: str
    body: bytes = b""
    height: str = ""


class Failure(Exception):
    """A gRPC error by name; ``height`` is the height of the query, or 0."""

    def __init__(self, name: str, text: str, height: int = 0) -> None:
        super().__init__(text)
        self.name, self.text, self.height = name, text, height


def _unimplemented() -> Failure:
    return Failure("Unimplemented", "Not Implemented")


Query = Callable[[str, bytes, int], QueryResult]
"""A function that runs a query method at a height, like ``abci_query``."""
Send = Callable[[str, bytes], ResultBroadcastTx]
"""A function that sends a transaction with a node method such as ``broadcast_tx_sync``."""


def answer(
    request: Request, query: Query, send: Send, served: Iterable[routes.Route] = routes.ROUTES
) -> Reply:
    """Return the response to a REST request, by the first of the ``served`` routes that
    matches it."""
    try:
        found = routes.find(request.method, request.path, served)
        if found is None:
            raise _unimplemented()
        route, in_path = found
        data = _data(route, in_path, request)
        if route.path == routes.BROADCAST:
            return _success_reply(route, _broadcast(Message(data), send))
        result = query(route.path, data, _height(request.height))
        reply, height = _success_reply(route, _value(result)), str(result.height)
        return replace(reply, headers=((f"{_METADATA}{_HEADER}", height), (_HEADER, height)))
    except Failure as failure:
        return failure_reply(failure)
    except (requests.InvalidRequest, gojson.GoError, Malformed) as error:
        return failure_reply(Failure("InvalidArgument", str(error)))


def _success_reply(route: routes.Route, value: bytes) -> Reply:
    try:
        return Reply(HTTPStatus.OK, gojson.encode(write(route.response, value)))
    except Malformed as error:
        raise Failure(
            "Internal", f"invalid response from the application to {route.path}: {error}"
        ) from None


def error_reply(error: Exception, text: str) -> Reply:
    """Return the response for an exception; ``text`` is the message for the client."""
    name = next((name for kind, name in _ERRORS if isinstance(error, kind)), "Internal")
    reply = failure_reply(Failure(name, text))
    if isinstance(error, NotAuthorized):
        return Reply(HTTPStatus(error.status), reply.body, tuple(error.headers.items()))
    return reply


def failure_reply(failure: Failure) -> Reply:
    """Return the response for a gRPC error."""
    code, status = _CODES.get(failure.name, _CODES["Unknown"])
    # The text is encoded without Go's escapes for HTML, as protobuf's JSON does not have them.
    text = jsoncodec.encode(failure.text)
    body = b'{"code":%d, "message":%b, "details":[]}' % (code, text)
    at = ((f"{_METADATA}{_HEADER}", str(failure.height)),) if failure.height else ()
    return Reply(HTTPStatus(status), body, at)


def _height(text: str) -> int:
    try:
        height = requests.int64(text or "0")
    except requests.InvalidRequest as error:
        raise _invalid(f"Baseapp.RegisterGRPCServer: {_INVALID_HEIGHT}: {error}") from None
    if height < 0:
        raise _invalid("cannot query with height < 0; please provide a valid height")
    return height


def _invalid(text: str) -> Failure:
    return Failure("Unknown", f"codespace sdk code 18: invalid request: {text}")


def _data(route: routes.Route, in_path: dict[str, str], request: Request) -> bytes:
    if request.method == "POST":
        return read(route.request, _object(request.body))
    in_query = requests.of_query(route.request, request.query, in_path)
    return requests.of_path(route.request, in_path) + in_query


def _object(body: bytes) -> Any:
    if not body.strip():
        return {}
    try:
        gojson.check(body)
    except gojson.GoError as error:
        # The gateway uses Go's json.Decoder, which has another text for this error.
        text = str(error).replace("unexpected end of JSON input", "unexpected EOF")
        raise requests.InvalidRequest(text) from None
    try:
        found = jsoncodec.decode(body)
    except jsoncodec.NotJSON as error:
        # Go accepts some values that this parser rejects: lone surrogates and numbers above a
        # float's range.
        raise requests.InvalidRequest(f"the body can't be parsed: {error}") from None
    return {} if found is None else found


def _value(result: QueryResult) -> bytes:
    if result.code == 0:
        return result.value
    if result.log.startswith("unknown query path"):
        # The chain does not have the module of this method.
        raise _unimplemented()
    named = _RPC_ERROR.fullmatch(result.log)
    if named is not None:
        raise Failure(named[1], named[2], result.height)
    if result.code == PANIC.code:
        text = result.log.removesuffix(f": {PANIC.text}")
        raise Failure("Internal", text, result.height)
    plain = _ERROR.fullmatch(result.log)
    text = plain[1] if plain else result.log
    for code in _KEEPER_ERRORS:
        if f": {result.log}".endswith(f": {code.text}: unknown request"):
            raise Failure("Unknown", _with_codespace(code, text), result.height)
    coded = _CODED.fullmatch(text)
    if coded is not None:
        text = f"codespace sdk code {_SDK_CODES[coded[2]]}: {coded[2]}: {coded[1]}"
    raise Failure("Unknown", text, result.height)


def _with_codespace(code: Code, text: str) -> str:
    """Return the gateway's text for an error of a keeper; SDK: cosmossdk.io/errors,
    GRPCStatus."""
    detail = text.removesuffix(code.text or "").removesuffix(": ")
    shown = f"codespace {code.codespace} code {code.code}: {code.text}"
    return f"{shown}: {detail}" if detail else shown


def _broadcast(request: Message, send: Send) -> bytes:
    tx, mode = request.blob(1), request.integer(2)
    if not request.blobs(1):
        raise Failure("InvalidArgument", "invalid empty tx")
    if mode not in _MODES:
        raise Failure("Unknown", _UNSPECIFIED)
    try:
        sent = send(_MODES[mode], tx)
    except NodeRPCError as error:
        said = str(error).lower()
        code = next((code for text, code in _NOT_CHECKED.items() if text in said), None)
        if code is None:
            raise
        sent = ResultBroadcastTx(code, b"", "", "sdk", tx_hash(tx))
    response = {
        "txhash": sent.hash.hex().upper(),
        "codespace": sent.codespace,
        "code": sent.code,
        "data": sent.data.hex().upper(),
        "raw_log": sent.log,
    }
    return MESSAGES.encode("tx.BroadcastTxResponse", tx_response=response)
