"""Random raw HTTP requests: calls as clients write them, and mutations of these."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import urlencode

from flask.testing import FlaskClient

from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.jsonrpc import describe

# Filters get random IDs, and keys of the node would sign.
_OMITTED = ("eth_newFilter", "eth_newBlockFilter", "eth_newPendingTransactionFilter")
_TOKEN = re.compile(rb'"[^"\\]*"|-?\d+|true|false|null|(?<==)[^&\s]+')
_VALUES: tuple[bytes, ...] = (
    *(b"null", b"true", b"0", b"1", b"-1", b"3", b"1.5", b"1e400", b"9" * 25, b"{}", b"[]"),
    *(b'""', b'"0x"', b'"0x1"', b'"0X01"', b'"latest"', b'"pending"', b'"\\u0000"', b'"\xff"'),
    *(b'"' + digits * 32 + b'"' for digits in (b"00", b"Af")),
    *(b'"tx.height>0"', b'"a\'b"', b"0x61", b"%22a%22", b"%ff", b"%zz", b"+", b""),
)
_BYTES: tuple[bytes, ...] = (
    b"\0",
    b"\xff",
    b"%",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"&",
    b"=",
    b"#",
)
_BYTES += (b"?", b";", b" ", b"\t", b"\r\n", b"\n", b"\xe2\x82\xac", b'"id":1,', b"/" * 3)
_HEADERS = (
    "Origin: https://page.example",
    "Origin: https://evil.example",
    "Origin: null",
    "Host: evil.example",
    "Content-Type: text/plain",
    "Content-Type: application/json; charset=utf-8",
    "Content-Type: application/x-www-form-urlencoded",
    "Content-Encoding: gzip",
    "Accept-Encoding: gzip",
    "accept-encoding: br, GZIP;q=0.5",
    "Accept-Encoding: gzip;q=0",
    "Accept: text/html",
    "Cookie: a=1",
    "Origin: https://p\u00e4ge.example",
    "If-None-Match: *",
    'If-None-Match: W/"a", "b"',
    "Connection: close",
    "Connection: keep-alive",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Content-Length: 3",
    "Content-Length: -1",
    "Transfer-Encoding: gzip",
    "Range: bytes=0-10",
    "X-Forwarded-For: 10.0.0.9",
    "X_Underscore: 1",
    "Bad Header",
    " Folded: 1",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)
# Headers of a client on another machine.
_REMOTE = ("X-Forwarded-For: 192.0.2.7", "Accept-Encoding: gzip")
_IDS = (*(b"%d" % number for number in range(10)), b'"a"', b'"a,b"', b"-5", b"1.5", b"null")
_ID = re.compile(rb'"id": ?[^,}]+')
_METHODS = (b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"DELETE", b"get", b"BREW")


@dataclass(frozen=True)
class Raw:
    """A request before it is encoded."""

    method: bytes
    target: bytes
    body: bytes = b""
    headers: tuple[str, ...] = field(default=("Host: localhost",))
    version: bytes = b"HTTP/1.1"
    chunked: bool = False
    line_end: bytes = b"\r\n"

    def encode(self) -> bytes:
        """Return the request's bytes, with the length of its body."""
        body, headers = self.body, self.headers
        if self.chunked:
            headers += ("Transfer-Encoding: chunked",)
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body, b""))
        elif body:
            headers += (f"Content-Length: {len(body)}",)
        first = b"%b %b %b" % (self.method, self.target, self.version)
        lines = (first, *(line.encode() for line in headers), b"")
        return b"".join(line + self.line_end for line in lines) + body


def calls(
    client: FlaskClient, backend: ChainBackend, evm: Mapping[str, Any], raws: Sequence[bytes]
) -> list[Raw]:
    """Return a call of each method that an app describes, a GET of each route, and calls that
    send Ethereum transactions."""
    found = list(_described(client, "/", describe.of_chain(backend)))
    bodies = list(_evm_calls(client, evm))
    bodies += [
        json.dumps(_call("eth_sendRawTransaction", [f"0x{raw.hex()}"])).encode() for raw in raws
    ]
    headers = ("Host: localhost", "Content-Type: application/json")
    return found + [Raw(b"POST", b"/evm", body, headers) for body in bodies]


def _call(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _methods(client: FlaskClient, path: str) -> Sequence[Any]:
    answer = client.post(path, json=_call("rpc.discover", [])).get_json()
    methods: Sequence[Any] = answer["result"]["methods"]
    assert methods
    return methods


def _described(
    client: FlaskClient, path: str, known: Mapping[str, describe.Values | None]
) -> Iterator[Raw]:
    for method in _methods(client, path):
        name = method["name"]
        values = known.get(name) or {}
        schemas = {param["name"]: param["schema"] for param in method["params"]}
        params = {key: describe.in_json(value, schemas[key]) for key, value in values.items()}
        yield Raw(b"POST", b"/", json.dumps(_call(name, params)).encode())
        query = urlencode({key: describe.in_uri(value) for key, value in values.items()})
        yield Raw(b"GET", f"/{name}?{query}".rstrip("?").encode())


def _evm_calls(client: FlaskClient, values: Mapping[str, Any]) -> Iterator[bytes]:
    for method in _methods(client, "/evm"):
        if method["name"] not in _OMITTED:
            params = [values.get(param["name"]) for param in method["params"]]
            yield json.dumps(_call(method["name"], params)).encode()


class Mutator:
    """Makes requests from some calls: unchanged, mutated, in batches, and repeated."""

    def __init__(self, corpus: Sequence[Raw], random: Random) -> None:
        self._corpus, self._random = corpus, random
        self._recent: list[bytes] = []
        found = {token for raw in corpus for token in _TOKEN.findall(raw.target + raw.body)}
        self._tokens = sorted(found.union(_VALUES))
        self._mutations: tuple[Callable[[Raw], Raw], ...] = (
            *(self._other_token,) * 5,
            self._other_bytes,
            self._other_header,
            self._other_head,
            self._other_spelling,
            self._other_id,
            self._batch,
        )

    def next(self) -> bytes:
        """Return the bytes of the next connection: one request, or several."""
        return b"".join(self._one() for _ in range(self._random.choice((1, 1, 2, 3))))

    def _one(self) -> bytes:
        """Return a request; a third of them repeat one of the last hundred, some with another
        ID."""
        random = self._random
        if self._recent and random.random() < 1 / 3:
            digit = b'"id": %d,' % random.randrange(10)
            recent = random.choice(self._recent[-100:])
            return recent.replace(b'"id": 1,', random.choice((b'"id": 1,', digit)))
        raw = random.choice(self._corpus)
        if random.random() < 1 / 4:
            raw = replace(raw, headers=raw.headers + _REMOTE)
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            raw = random.choice(self._mutations)(raw)
        self._recent.append(raw.encode())
        return self._recent[-1]

    def _other_token(self, raw: Raw) -> Raw:
        text = raw.body or raw.target
        found = list(_TOKEN.finditer(text))
        if not found:
            return self._other_bytes(raw)
        place = self._random.choice(found)
        return _written(
            raw, text[: place.start()] + self._random.choice(self._tokens) + text[place.end() :]
        )

    def _other_bytes(self, raw: Raw) -> Raw:
        text = raw.body or raw.target
        first, last = sorted(self._random.choices(range(len(text) + 1), k=2))
        last = min(last, first + self._random.choice((0, 1, 1, 10)))
        inserted = self._random.choice((*_BYTES, text[first:last] * 2, b""))
        return _written(raw, text[:first] + inserted + text[last:])

    def _other_header(self, raw: Raw) -> Raw:
        header = self._random.choice(_HEADERS)
        if self._random.random() < 1 / 8:
            return replace(raw, headers=(*raw.headers[1:], header))
        return replace(raw, headers=(*raw.headers, header))

    def _other_head(self, raw: Raw) -> Raw:
        random = self._random
        which = random.randrange(4)
        if which == 0:
            return replace(raw, method=random.choice(_METHODS))
        if which == 1:
            return replace(raw, version=random.choice((b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0")))
        if which == 2:
            return replace(raw, chunked=True)
        return replace(raw, target=random.choice(self._corpus).target)

    def _other_spelling(self, raw: Raw) -> Raw:
        """Return the request with a different encoding, or with a small fault."""
        random = self._random
        path, _, query = raw.target.partition(b"?")
        at = random.randrange(len(path) + 1)
        escaped = path[:at] + b"".join(b"%%%02x" % byte for byte in path[at : at + 1])
        return random.choice(
            (
                replace(raw, target=b"http://localhost" + raw.target),
                replace(raw, target=escaped + raw.target[at + 1 :]),
                replace(raw, target=raw.target + b"&" + query),
                replace(raw, headers=tuple(map(str.lower, raw.headers))),
                replace(raw, headers=tuple(line.replace(": ", ":") for line in raw.headers)),
                replace(raw, line_end=b"\n"),
            )
        )

    def _other_id(self, raw: Raw) -> Raw:
        """Return the call with another ID, or without one."""
        other = self._random.choice((*(b'"id": ' + each for each in _IDS), b'"none": 0'))
        return replace(raw, body=_ID.sub(other, raw.body, count=1))

    def _batch(self, raw: Raw) -> Raw:
        bodies = [each.body for each in self._random.choices(self._corpus, k=4) if each.body]
        return replace(raw, method=b"POST", body=b"[" + b",".join([*bodies, raw.body]) + b"]")


def _written(raw: Raw, text: bytes) -> Raw:
    return replace(raw, body=text) if raw.body else replace(raw, target=text)
