"""``ForwardedEvm``: calls of Ethereum's JSON-RPC that need a state, asked of the nodes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .. import jsoncodec
from ..backends.base.capabilities import ForwardedCalls
from ..errors import (
    Busy,
    ForwardedCallFailed,
    UpstreamError,
    UpstreamMismatch,
    UpstreamUnavailable,
    short_repr,
)
from .address import Address
from .connection import seconds_left, within
from .forward_pool import Reserve
from .http import HttpClient, UpstreamLimits
from .in_flight import ReadsInFlight

# Ethermint, cosmos/evm, geth: the node has no state of that block, or not yet; another one may.
_NO_STATE = re.compile(
    r"header not found|block not found|missing trie node|height \S{1,40} is not available"
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


KnownBlock = Callable[[], tuple[int, bytes] | None]
"""Returns height and hash of a block of the chain, if there is one."""

# A node may be replaced by that of another chain.
_CHECK_S = 60.0


class _Node:
    """One node, whose chain is checked before it is asked, after an error and each minute."""

    def __init__(self, url: str | Address, limits: UpstreamLimits) -> None:
        self._http = HttpClient(url, limits)
        self._checked_at: float | None = None
        self.close = self._http.close

    def call(self, body: bytes, known: KnownBlock) -> bytes:
        """Return the JSON of a result; raise ``UpstreamMismatch`` for another chain's node."""
        try:
            self._check(known)
            return self._result(body)
        except (UpstreamUnavailable, Busy):
            self._checked_at = None
            raise

    def _result(self, body: bytes) -> bytes:
        response: _Response = self._http.post(body, _Response)
        if response.error is not None:
            raise ForwardedCallFailed(response.error)
        if not bytes(response.result):
            raise self._http.unusable("a response has neither result nor error")
        return bytes(response.result)

    def _check(self, known: KnownBlock) -> None:
        now, block = time.monotonic(), known()
        if block is None or (self._checked_at and now - self._checked_at < _CHECK_S):
            return
        height, block_hash = block
        reported = self._hash_at(height)
        if reported is not None and reported.lower() != f"0x{block_hash.hex()}":
            raise UpstreamMismatch(
                self._http.name,
                f"its block {height} is {short_repr(reported)}, and that of the store"
                f" 0x{block_hash.hex()}: it is a node of another chain",
            )
        self._checked_at = now

    def _hash_at(self, height: int) -> str | None:
        """Return the hash of a block as the node tells it; ``None`` if it has none."""
        params = jsoncodec.Raw(jsoncodec.encode([hex(height), False]))
        try:
            found = self._result(jsoncodec.encode(_Request("eth_getBlockByNumber", params)))
        except ForwardedCallFailed:
            # It is behind, or has pruned that block.
            return None
        block = jsoncodec.decode(found)
        # Ethermint, cosmos/evm: the hash of CometBFT's header.
        reported = block.get("hash") if isinstance(block, dict) else None
        return None if reported is None else str(reported)


class ForwardedEvm(ForwardedCalls):
    """The EVM JSON-RPC of several nodes; the next is asked where one fails.

    ``urls`` are as :meth:`.address.Address.parse` takes them.
    """

    def __init__(self, urls: Sequence[str | Address], limits: UpstreamLimits) -> None:
        self._nodes = [_Node(url, limits) for url in urls]
        self._first, self._seconds = 0, limits.timeout
        # The thread of each call is occupied already.
        self._reads = ReadsInFlight(nullcontext)
        self.reserve: Reserve = nullcontext
        """Occupies the thread of a request while a node is asked."""
        self.known_block: KnownBlock = lambda: None
        """A block by which nodes of other chains are recognised; there is none at first."""

    def call(self, method: str, params: bytes) -> bytes:
        with self.reserve(), within(self._seconds):
            if not _SHARED.fullmatch(method) or b'"pending"' in params:
                return self._call(method, params)
            return self._reads.get((method, params), lambda: self._call(method, params))

    def _call(self, method: str, params: bytes) -> bytes:
        body = jsoncodec.encode(_Request(method, jsoncodec.Raw(params)))
        failures: list[Exception] = []
        for offset in range(len(self._nodes)):
            place = (self._first + offset) % len(self._nodes)
            try:
                found = self._nodes[place].call(body, self.known_block)
            except (UpstreamError, Busy, ForwardedCallFailed) as error:
                if isinstance(error, ForwardedCallFailed) and not _NO_STATE.search(error.text):
                    raise
                failures.append(error)
                if not seconds_left(self._seconds):
                    # The time of the call is over: the next call begins with another node.
                    self._first = (place + 1) % len(self._nodes)
                    break
                continue
            # Until it fails: the next call may need what this one has done.
            self._first = place
            return found
        # A node that answered knows more than one that did not.
        raise next((e for e in failures if isinstance(e, ForwardedCallFailed)), failures[0])

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes:
            node.close()
