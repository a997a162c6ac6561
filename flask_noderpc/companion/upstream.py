"""Client of a node's JSON-RPC: sends calls, alone or in batches, and decodes results by the
node's dialect."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, TypeVar

from .. import jsoncodec
from ..backends.sql.block_writes import Precomputed
from ..domain.abci import BlockResults
from ..domain.responses import ResultBlock
from ..errors import (
    DecodeError,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    short_repr,
)
from ..wire.dialect import Dialect
from ..wire.dialects import dialect_named
from .address import Address
from .decoding import IN_THIS_PROCESS, Decoders
from .http import DEFAULT_LIMITS, HttpClient, Unusable, UpstreamLimits, describe_beginning

# Default of max_request_batch_size since CometBFT 0.38.8; earlier versions have no limit.
MAX_BATCH = 10
# After this many successes a larger batch is tried, as the reason for the last refusal may be
# gone.
_TRIED_AFTER = 200


class BatchSize:
    """Number of calls per batch: halved after a refusal or a too large response, doubled after
    200 successful requests.

    ``rate`` is the maximum number of calls per second to the node, 0 for no limit; a batch has
    at most the calls of a second, but may have two.
    """

    def __init__(self, rate: float = 0.0) -> None:
        self._most = min(MAX_BATCH, max(2, int(rate))) if rate else MAX_BATCH
        self.calls = self._most
        self._successes = 0

    def record_refusal(self, calls: int) -> None:
        """Halve the number of calls, after a batch of ``calls`` was refused."""
        self.calls = max(1, min(self.calls, calls) // 2)
        self._successes = 0

    def record_success(self) -> None:
        """Count a request that succeeded."""
        self._successes += 1
        if self.calls < self._most and self._successes >= _TRIED_AFTER:
            self.calls = min(self._most, 2 * self.calls)
            self._successes = 0


T = TypeVar("T")

Param = int | bytes | str | bool | Mapping[str, Any]
"""A parameter: an integer, bytes, a string, a flag, or a JSON object."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method with its parameters by name."""

    method: str
    params: Mapping[str, Param]

    def encode(self, number: int) -> dict[str, Any]:
        """Return the JSON-RPC request object, with ``number`` as its ID."""
        params = {name: _param(value) for name, value in self.params.items()}
        return {"jsonrpc": "2.0", "id": number, "method": self.method, "params": params}

    def __str__(self) -> str:
        height = self.params.get("height")
        return f"{self.method} of height {height}" if type(height) is int else self.method


def call(method: str, **params: Param) -> Call:
    """Return a call of a method with these parameters."""
    return Call(method, params)


def _param(value: Param) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    # CometBFT's JSON has 64-bit integers as strings.
    return str(value) if type(value) is int else value


CallResult = jsoncodec.Raw | UpstreamRefused
"""The JSON of a call's result, or the node's error."""
LoadedBlock = ResultBlock | UpstreamRefused
LoadedResults = BlockResults | UpstreamRefused


class NotDecoded(Unusable):
    """The result can't be decoded in the upstream's dialect, which may have changed."""


class _Error(jsoncodec.Struct):
    code: int = 0
    message: str = ""
    data: Any = ""


class _Response(jsoncodec.Struct):
    id: Any = None
    result: jsoncodec.Raw = jsoncodec.Raw()
    error: _Error | str | None = None


class Upstream:
    """One node of the chain; may be shared among threads and greenlets.

    :meth:`Address.parse` describes the syntax of ``url``. ``dialect`` is by default read from
    the node, and ``name``, for error messages, is by default its address. ``decoders`` are
    processes that decode many blocks. Methods raise :exc:`UpstreamUnavailable` if there is no
    usable response, :exc:`UpstreamRefused` with the node's own error, and
    :exc:`~flask_noderpc.errors.Busy` if ``limits`` do not allow the request in time.
    """

    def __init__(
        self,
        url: str | Address,
        *,
        dialect: str = "",
        limits: UpstreamLimits = DEFAULT_LIMITS,
        name: str = "",
        decoders: Decoders = IN_THIS_PROCESS,
    ) -> None:
        self._decoders = decoders
        self._http = HttpClient(url, limits, name)
        self.address, self.name, self.limits = self._http.address, self._http.name, limits
        self._batch = BatchSize(limits.rate)
        self._given = dialect_named(dialect, "NODERPC_UPSTREAM_DIALECT") if dialect else None
        self._found: Dialect | None = None

    @property
    def dialect(self) -> Dialect:
        """Dialect of the node, read from it at the first use and again after
        :meth:`reconnect`."""
        known = self._given or self._found
        if known is None:
            known = self._found = _dialect_of(self)
        return known

    @property
    def known_dialect(self) -> str:
        """Name of the node's dialect; an empty string until the dialect has been read."""
        known = self._given or self._found
        return known.name if known else ""

    def reconnect(self) -> None:
        """Forget the dialect, as the node may have been upgraded; it is read again at its next
        use."""
        self._found = None

    def get(self, result: type[T], method: str, **params: Param) -> T:
        """Return the decoded result of a call."""
        asked = Call(method, params)
        return self.load(result, asked, self._raw(asked))

    def raw(self, method: str, **params: Param) -> jsoncodec.Raw:
        """Return the JSON of a call's result."""
        return self._raw(Call(method, params))

    def _raw(self, asked: Call) -> jsoncodec.Raw:
        (found,) = self._ask([asked], self.limits.timeout)
        if isinstance(found, UpstreamError):
            raise found
        return found

    def head_of(self, asked: Call, size: int) -> bytes:
        """Return the first ``size`` bytes of the response to a call, without receiving the
        rest."""
        return self._http.head_of(jsoncodec.encode(asked.encode(0)), size)

    def page(self, name: str, accept: str) -> bytes:
        """Return the body of a page below the node's path, with any HTTP status."""
        return self._http.get(name, accept)

    def raw_at(self, method: str, params: Sequence[str]) -> jsoncodec.Raw:
        """Return the JSON of the result of a call with parameters by position."""
        asked = Call(method, {})
        body = jsoncodec.encode({**asked.encode(0), "params": params})
        found = self._answer(asked, self._http.post(body, _Response))
        if isinstance(found, UpstreamError):
            raise found
        return found

    def takes_any_id(self) -> bool:
        """Return true if the node accepts a request with an ID that is not an integer."""
        asked = Call("health", {})
        body = jsoncodec.encode({**asked.encode(0), "id": 0.5})
        found = self._answer(asked, self._http.post(body, _Response))
        return not isinstance(found, UpstreamRefused)

    def takes_batch(self, count: int) -> bool:
        """Return true if the node accepts a batch of ``count`` calls."""
        calls = [Call("health", {}).encode(number) for number in range(count)]
        kind = _Response | list[_Response]
        response = self._http.post(jsoncodec.encode(calls), kind, calls=count)
        return isinstance(response, list) and len(response) == count

    def load(self, result: type[T], asked: Call, found: jsoncodec.Raw) -> T:
        """Decode the JSON of the result of a call."""
        try:
            return self.dialect.decode(result, found)
        except DecodeError as error:
            reason = (
                f"{asked}: the result can't be decoded: {error};"
                f" {describe_beginning(memoryview(found))}"
            )
            raise NotDecoded(self.name, reason) from None

    def load_blocks(
        self, calls: Sequence[Call], answers: Sequence[CallResult]
    ) -> Sequence[tuple[LoadedBlock, LoadedResults, Precomputed | None]]:
        """Decode pairs of results of calls, of a block and of its results; keep errors
        unchanged."""
        documents = [each for each in answers if isinstance(each, jsoncodec.Raw)]
        if len(documents) == len(answers):
            pairs = list(zip(documents[::2], documents[1::2], strict=True))
            found = self._decoders.decode(self.dialect.name, pairs)
            if found is not None:
                return found
        kinds = cycle((ResultBlock, BlockResults))
        decoded: list[Any] = [
            each if isinstance(each, UpstreamRefused) else self.load(kind, asked, each)
            for kind, asked, each in zip(kinds, calls, answers, strict=False)
        ]
        return [(*pair, None) for pair in zip(decoded[::2], decoded[1::2], strict=True)]

    def ask(self, calls: Sequence[Call], timeout: float | None = None) -> list[CallResult]:
        """Send calls; return the JSON of each result or the node's error, in the order of the
        calls.

        The calls are sent in batches of as many as the node accepts.
        """
        answers: list[CallResult] = []
        while len(answers) < len(calls):
            some = calls[len(answers) : len(answers) + self._batch.calls]
            answers += self._ask(some, timeout or self.limits.timeout)
        return answers

    def _ask(self, calls: Sequence[Call], timeout: float) -> list[CallResult]:
        objects = [each.encode(number) for number, each in enumerate(calls)]
        body = jsoncodec.encode(objects if len(objects) > 1 else objects[0])
        if len(calls) == 1:
            try:
                found = self._http.post(body, _Response, timeout=timeout)
            except Unusable as error:
                reason = f"{calls[0]}: {error.reason}"
                raise Unusable(self.name, reason, error.retry_after) from None
            self._batch.record_success()
            return [self._answer(calls[0], found)]
        kind = _Response | list[_Response]
        try:
            response = self._http.post(body, kind, calls=len(calls), timeout=timeout)
        except Unusable:
            return self._ask_in_smaller_batches(calls, timeout)
        if isinstance(response, _Response):
            return self._ask_in_smaller_batches(calls, timeout)
        self._batch.record_success()
        by_id = {each.id: each for each in response if type(each.id) is int}
        if by_id.keys() != set(range(len(calls))):
            return self._ask_in_smaller_batches(calls, timeout)
        return [self._answer(asked, by_id[number]) for number, asked in enumerate(calls)]

    def _ask_in_smaller_batches(
        self, calls: Sequence[Call], timeout: float
    ) -> list[CallResult]:
        """Send the calls again in smaller batches, after the response to a batch was
        unusable."""
        self._batch.record_refusal(len(calls))
        rest = iter(calls)
        answers: list[CallResult] = []
        while some := list(islice(rest, self._batch.calls)):
            answers += self._ask(some, timeout)
        return answers

    def _answer(self, asked: Call, response: _Response) -> CallResult:
        error = response.error
        if isinstance(error, str) and error:
            return UpstreamRefused(self.name, 0, error)
        if isinstance(error, _Error):
            data = error.data if isinstance(error.data, str) else short_repr(error.data)
            return UpstreamRefused(self.name, error.code, error.message, data)
        if not memoryview(response.result):
            raise Unusable(self.name, f"{asked}: the response has neither result nor error")
        return response.result

    @property
    def connected(self) -> int:
        """Number of connections opened so far."""
        return self._http.connected

    def interrupt(self) -> None:
        """Make the requests in flight fail at once."""
        self._http.interrupt()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


_BY_VERSION = {
    "0.34": "comet-0.34",
    "0.35": "comet-0.34",
    "0.37": "comet-0.37",
    "0.38": "comet-0.38",
    "0.39": "comet-0.39",
    "0.40": "comet-0.40",
    "1": "comet-1.0",
}


def _dialect_of(node: Upstream) -> Dialect:
    """Return the dialect of a node; raise the errors of :meth:`Upstream.raw`.

    Forks have their own version numbers, so for an unknown version, the members of responses
    decide.
    """
    status = _members(node, "status")
    key = _member(_member(status, "validator_info"), "pub_key")
    if str(_member(key, "type")).startswith("engine/"):
        # Such keys are not CometBFT's, even if the node reports a version of CometBFT.
        return dialect_named("document")
    version = str(_member(_member(status, "node_info"), "version") or "")
    parts = version.removeprefix("v").split("-")[0].split(".")
    name = _BY_VERSION.get(".".join(parts[:2])) or _BY_VERSION.get(parts[0]) or _by_shape(node)
    if name == "comet-0.39" and not node.takes_any_id():
        # Version 0.40.0 reports itself as 0.39.0, but only accepts integers as IDs.
        name = "comet-0.40"
    return dialect_named(name)


def _by_shape(node: Upstream) -> str:
    results = _members(node, "block_results")
    if "total_gas_used" in results:
        # Sei's sei-tendermint (rpc/coretypes/responses.go), whose events are like those of
        # 0.34.
        return "comet-0.34"
    if "finalize_block_events" in results:
        params = _member(_members(node, "consensus_params"), "consensus_params")
        if _member(params, "feature") is not None:
            # CometBFT 1.0: proto/tendermint/types/params.proto, FeatureParams.
            return "comet-1.0"
        return "comet-0.39" if _member(params, "authority") is not None else "comet-0.38"
    try:
        node.raw("header")
    except UpstreamRefused:
        # CometBFT 0.37 added the route "header": rpc/core/routes.go.
        return "comet-0.34"
    return "comet-0.37"


def _members(node: Upstream, method: str) -> dict[str, Any]:
    found = jsoncodec.decode(bytes(node.raw(method)))
    if not isinstance(found, dict):
        raise UpstreamMismatch(node.name, f"{method} is not an object")
    return found


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
