"""``ForwardedEvm``: forwards Ethereum JSON-RPC calls that need state to the nodes."""

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
from .connection import limit_time, seconds_left
from .forward_pool import Reserve
from .http import HttpClient, UpstreamLimits
from .in_flight import ReadsInFlight

# Error texts of Ethermint, cosmos/evm and geth for a block whose state the node lacks; another
# node may have it.
_NO_STATE = re.compile(
    r"header not found|block not found|missing trie node|height \S{1,40} is not available"
    r"|in the future|version does not exist|failed to load state|version mismatch"
)


# Methods without side effects: concurrent calls with equal parameters share one request.
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
"""A function that returns height and hash of a block of the followed chain, or ``None``."""

# Interval of checks whether a node was replaced by one of another chain.
_CHECK_S = 60.0


class _Node:
    """A node whose chain is checked before the first call, after an error and each minute."""

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
            raise self._http.unusable_error("its response has neither result nor error")
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
                f"its block {height} is {short_repr(reported)}, but the store's is"
                f" 0x{block_hash.hex()}: the node is of another chain; name a node of this one",
            )
        self._checked_at = now

    def _hash_at(self, height: int) -> str | None:
        """Return a node's hash of a block; ``None`` if the node does not have the block."""
        params = jsoncodec.Raw(jsoncodec.encode([hex(height), False]))
        try:
            found = self._result(jsoncodec.encode(_Request("eth_getBlockByNumber", params)))
        except ForwardedCallFailed:
            # The node lags behind, or has pruned that block.
            return None
        block = jsoncodec.decode(found)
        # On Ethermint and cosmos/evm, this is the hash of CometBFT's header.
        reported = block.get("hash") if isinstance(block, dict) else None
        return None if reported is None else str(reported)


class ForwardedEvm(ForwardedCalls):
    """Client of the EVM JSON-RPC of several nodes; after a failure it calls the next node.

    :meth:`.address.Address.parse` describes the syntax of ``urls``.
    """

    def __init__(self, urls: Sequence[str | Address], limits: UpstreamLimits) -> None:
        self._nodes = [_Node(url, limits) for url in urls]
        self._first, self._seconds = 0, limits.timeout
        # Waiting for another caller's read reserves no thread, as `call` has reserved one
        # already.
        self._reads = ReadsInFlight(nullcontext)
        self.reserve: Reserve = nullcontext
        """Function that returns a context in which a server thread waits for a node."""
        self.known_block: KnownBlock = lambda: None
        """Function that returns a stored block, to detect nodes of other chains."""

    def call(self, method: str, params: bytes) -> bytes:
        with self.reserve(), limit_time(self._seconds):
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
                    # The call's time is used up, so this node may hang: begin the next call
                    # with another.
                    self._first = (place + 1) % len(self._nodes)
                    break
                continue
            # Keep using this node until it fails, as a client's next call may depend on this
            # one, such as a receipt on a sent transaction.
            self._first = place
            return found
        # Prefer an error that a node returned to a missing response.
        raise next((e for e in failures if isinstance(e, ForwardedCallFailed)), failures[0])

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes:
            node.close()
