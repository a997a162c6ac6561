"""The mount that an explorer shows, with the permissions of a page's reader."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from flask import current_app, url_for
from werkzeug.routing import BuildError

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..domain.abci import ExecTxResult, QueryResult
from ..domain.block import BlockMeta
from ..domain.facts import Fact, TxFacts, TxLine
from ..domain.responses import ResultABCIQuery, ResultTxSearch
from ..errors import (
    ForwardedCallFailed,
    MethodNotFound,
    NodeRPCError,
    UpstreamError,
    short_repr,
)
from ..extension import mount_named
from ..feature import features, load
from ..jsonrpc.context import Context

T = TypeVar("T")

log = logging.getLogger("flask_noderpc.explorer")

_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)
_EVM_RESULTS = {
    "eth_call": _DATA,
    "eth_getCode": _DATA,
    "eth_getBalance": _QUANTITY,
    "eth_getTransactionCount": _QUANTITY,
    "eth_chainId": _QUANTITY,
}
"""Formats of results of methods that may be forwarded to another node, which can respond with
anything."""

METAS_PER_CALL = 20
"""Maximum number of blocks that ``blockchain`` returns."""


class Node:
    """A mount of the current app, as the client of the current request may use it.

    The mount's settings and ``authorize`` apply to pages as they do to calls.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._mount = mount_named(name)
        self.settings = self._mount.settings
        self.has_evm = "evm" in self._mount.dispatchers
        self.refuse_host = self._mount.views.refuse_host
        self._dispatcher = self._mount.node

    def call(self, route: str, **params: Any) -> Any:
        """Return the result of a route as an object of :mod:`flask_noderpc.domain`; raise
        :exc:`~flask_noderpc.errors.NodeRPCError`."""
        found, ctx = self._admit(route)
        return found.call(ctx, found.params(**params))

    def read(self, route: str, read: Callable[[ChainBackend], T]) -> T:
        """Return ``read(backend)`` if the page's reader may call a route, else raise an
        error."""
        return read(self._admit(route)[1].backend)

    def _admit(self, route: str, layer: str = "") -> tuple[Any, Context]:
        dispatcher = self._mount.dispatchers[layer] if layer else self._dispatcher
        return dispatcher.admit(route, self._mount.views.permissions(layer))

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` if the app's ``authorize`` denies a
        method to the page's reader."""
        self._mount.views.permissions().check(method)

    def evm(self, method: str, *params: Any) -> Any:
        """Return the decoded JSON result of a method of Ethereum's JSON-RPC; raise
        :exc:`~flask_noderpc.errors.ForwardedCallFailed`."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        permissions = self._mount.views.permissions("evm")
        reply = self._mount.dispatchers["evm"].post(jsoncodec.encode(body), permissions)
        try:
            answer = jsoncodec.decode(bytes(reply.body))
        except ValueError as error:
            # The trace of a deep recursion is nested too deeply.
            raise ForwardedCallFailed({"message": f"{method}: {error}"}) from None
        if "error" in answer:
            raise ForwardedCallFailed(answer["error"])
        result, expected = answer["result"], _EVM_RESULTS.get(method)
        if expected and not (isinstance(result, str) and expected.fullmatch(result)):
            raise ForwardedCallFailed(
                {"message": f"{method}: expected hex digits, got {short_repr(result)}"}
            )
        return result

    def chain_id(self) -> str:
        """Return the ID of the chain, with which browsers name the ABIs that they store."""
        return self._dispatcher.backend.reads.chain_id()

    def account_facts(self, address: str) -> tuple[Sequence[Fact], str]:
        """Return what a feature knows of an account of this chain, and the reason if another
        node has the application and can't be asked."""
        trouble = ""

        def query(path: str, data: bytes, height: int) -> QueryResult:
            nonlocal trouble
            try:
                return self._query(path, data, height)
            except UpstreamError as error:
                trouble = str(error)
                raise

        with suppress(NodeRPCError):
            backend = self._admit("abci_query")[1].backend
            for read in _functions("account_facts"):
                if found := _attempt(read, backend, query, address):
                    return tuple(found), ""
        return (), trouble

    def tx_facts(self, tx: bytes, result: ExecTxResult | None) -> TxFacts | None:
        """Return a transaction as features decode it; ``None`` if none does. The result is
        ``None`` while the transaction is pending."""
        backend = self._admit("tx" if result else "unconfirmed_txs")[1].backend
        ask = self.evm if self.has_evm else None
        arguments = (backend, self._query, ask, tx, result)
        each = [_attempt(read, *arguments) for read in _functions("tx_facts")]
        found = list(filter(None, each))
        if not found:
            return None
        return TxFacts(
            tuple(chain.from_iterable(facts.facts for facts in found)),
            tuple(chain.from_iterable(facts.messages for facts in found)),
        )

    def _query(self, path: str, data: bytes, height: int) -> QueryResult:
        found: ResultABCIQuery = self.call("abci_query", path=path, data=data, height=height)
        return found.response

    def serves(self, route: str) -> bool:
        """Return true if the node has a route, even if this reader may not call it."""
        try:
            self._admit(route)
        except MethodNotFound:
            return False
        except NodeRPCError:
            pass
        return True

    def refusal(self, route: str, layer: str = "") -> str:
        """Return the reason why the page's reader may not call a route of the node, or of a
        layer such as ``evm``; empty if the reader may call it."""
        try:
            found, _ = self._admit(route, layer)
        except NodeRPCError as error:
            return error.text_with_hint or str(error)
        if found.writes and not self._mount.views.permissions().may_write:
            return "pages of another site may not change state here"
        return ""

    def url(self, endpoint: str, **values: Any) -> str:
        """Return the path of a mount's endpoint; empty if the mount does not serve it."""
        try:
            return url_for(f"{self.name}.{endpoint}", **values)
        except BuildError:
            return ""

    def metrics(self) -> str | None:
        """Return the text of the node's metrics; ``None`` if they are not served."""
        view = current_app.view_functions.get(f"{self.name}.metrics")
        if view is None:
            return None
        text: str = current_app.make_response(current_app.ensure_sync(view)()).get_data(True)
        return text

    # Reads that several pages use.

    def metas(self, high: int, count: int) -> list[BlockMeta]:
        """Return the metas of at most ``count`` blocks from a height downwards."""
        found: list[BlockMeta] = []
        lowest = self.lowest()
        while high >= lowest and len(found) < count:
            low = max(lowest, high - min(METAS_PER_CALL, count - len(found)) + 1)
            metas = self.call("blockchain", min_height=low, max_height=high).block_metas
            found += metas
            if len(metas) <= high - low:
                # Stop if blocks are missing: upstream nodes that have them do not respond.
                break
            high = low - 1
        return found

    def latest(self) -> int:
        """Return the latest height; 0 if the chain has no block."""
        return self.read("blockchain", lambda backend: backend.reads.latest_height())

    def time_of(self, height: int) -> int | None:
        """Return the time of a block in nanoseconds; ``None`` if it can't be read."""
        try:
            time: int = self.call("header", height=height).header.time
        except NodeRPCError:
            return None
        return time

    def lowest(self) -> int:
        """Return the lowest height that can be read."""
        return self.read(
            "blockchain",
            lambda backend: max(
                1, min(backend.reads.base_height(), backend.reads.lowest_readable())
            ),
        )

    def search(self, query: str, page: int = 1, size: int = 25) -> ResultTxSearch:
        """Return a page of the transactions that match an event query, newest first."""
        found: ResultTxSearch = self.call(
            "tx_search", query=query, page=page, per_page=size, order_by="desc"
        )
        return found


def tx_line(tx: bytes, result: ExecTxResult | None) -> TxLine:
    """Return a transaction as one line of a list, from the last feature that knows it."""
    for read in reversed(_functions("tx_line")):
        found: TxLine | None = _attempt(read, tx, result)
        if found is not None:
            return found
    return TxLine()


@cache
def _functions(part: str) -> tuple[Callable[..., Any], ...]:
    """Return the functions that features declare in a field of
    :class:`~flask_noderpc.feature.Feature`."""
    found = []
    for name in filter(None, (getattr(each, part) for each in features())):
        try:
            found.append(load(name))
        except ModuleNotFoundError as error:
            # The feature may need packages that are not installed, such as the extra ``evm``.
            log.info("pages do without %s: %s", name, error)
    return tuple(found)


def _attempt(read: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a feature's function returns; ``None`` if it raises an error, which is only
    logged, as a page also shows what the node knows."""
    try:
        return read(*arguments)
    except NodeRPCError:
        return None
    except Exception:
        log.exception("%s.%s failed", read.__module__, read.__qualname__)
        return None
