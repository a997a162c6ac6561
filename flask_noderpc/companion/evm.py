"""``ForwardedEvm``: calls of Ethereum's JSON-RPC that need a state, asked of the nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from .. import jsoncodec
from ..backends.base.capabilities import EvmForward
from ..errors import Busy, EvmCallFailed, UpstreamUnavailable
from .forward_pool import Reserve
from .http import HttpClient, UpstreamLimits
from .in_flight import ReadsInFlight

# Ethermint, cosmos/evm, geth: the node has no state of that block, or not yet; another one may.
_NO_STATE = re.compile(
    r"header not found|block not found|missing trie node|height .* is not available"
    r"|in the future|version does not exist|failed to load state|version mismatch"
)


# With a height as their block, which takes the place of a tag, they have one answer.
_SHARED = re.compile(
    r"eth_(call|createAccessList|estimateGas|feeHistory|get\w+)|debug_trace\w+"
)


class _Request(jsoncodec.Struct):
    method: str
    params: jsoncodec.Raw
    jsonrpc: str = "2.0"
    id: int = 1


class _Response(jsoncodec.Struct):
    result: jsoncodec.Raw = jsoncodec.Raw()
    error: dict[str, Any] | None = None


class ForwardedEvm(EvmForward):
    """The EVM JSON-RPC of several nodes; the next is asked where one fails.

    ``urls`` are as :meth:`.address.Address.parse` takes them.
    """

    def __init__(self, urls: Sequence[str], limits: UpstreamLimits) -> None:
        self._nodes = [HttpClient(url, limits) for url in urls]
        self._first = 0
        # The thread of each call is occupied already.
        self._reads = ReadsInFlight(nullcontext)
        self.reserve: Reserve = nullcontext
        """Occupies the thread of a request while a node is asked."""

    def call(self, method: str, params: bytes) -> bytes:
        with self.reserve():
            if not _SHARED.fullmatch(method) or b'"pending"' in params:
                return self._call(method, params)
            return self._reads.get((method, params), lambda: self._call(method, params))

    def _call(self, method: str, params: bytes) -> bytes:
        body = jsoncodec.encode(_Request(method, jsoncodec.Raw(params)))
        failures: list[Exception] = []
        for offset in range(len(self._nodes)):
            place = (self._first + offset) % len(self._nodes)
            try:
                found = _result(self._nodes[place], body)
            except (UpstreamUnavailable, Busy, EvmCallFailed) as error:
                if isinstance(error, EvmCallFailed) and not _NO_STATE.search(error.text):
                    raise
                failures.append(error)
                continue
            # Until it fails: the next call may need what this one has done.
            self._first = place
            return found
        # A node that answered knows more than one that did not.
        raise next((e for e in failures if isinstance(e, EvmCallFailed)), failures[0])

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes:
            node.close()


def _result(node: HttpClient, body: bytes) -> bytes:
    response: _Response = node.post(body, _Response)
    if response.error is not None:
        raise EvmCallFailed(response.error)
    if not bytes(response.result):
        raise node.unusable("a response has neither result nor error")
    return bytes(response.result)
