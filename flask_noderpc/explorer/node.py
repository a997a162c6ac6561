"""The mount that an explorer shows, with the permissions of a page's reader."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flask import current_app, url_for
from werkzeug.routing import BuildError

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..domain.abci import QueryResult
from ..domain.block import BlockMeta
from ..domain.facts import Fact, TxFacts
from ..domain.responses import ResultABCIQuery, ResultTxSearch
from ..errors import ForwardedCallFailed, MethodNotFound, NodeRPCError
from ..extension import mount_named
from ..feature import features, load
from ..jsonrpc.context import Context

T = TypeVar("T")

log = logging.getLogger("flask_noderpc.explorer")

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

    def _admit(self, route: str) -> tuple[Any, Context]:
        return self._dispatcher.admit(route, self._mount.views.permissions())

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
        answer = jsoncodec.decode(bytes(reply.body))
        if "error" in answer:
            raise ForwardedCallFailed(answer["error"])
        return answer["result"]

    def account_facts(self, address: str) -> Sequence[Fact]:
        """Return what a feature knows of an account of this chain; empty if none does, or if
        the application can't be asked."""
        return self._facts([each.account_facts for each in features()], address) or ()

    def tx_facts(self, digest: bytes) -> TxFacts | None:
        """Return a transaction as a feature decodes it; ``None`` if none does."""
        found: TxFacts | None = self._facts([each.tx_facts for each in features()], digest)
        return found

    def _facts(self, functions: Sequence[str], wanted: str | bytes) -> Any:
        """Return what the first function finds that finds something.

        Facts come in addition to what the page shows, so their errors are only logged.
        """
        try:
            backend = self._admit("abci_query")[1].backend
            for function in filter(None, functions):
                if found := load(function)(backend, self._query, wanted):
                    return found
        except NodeRPCError:
            return None
        except Exception:
            log.exception("the application could not be asked about %r", wanted)
        return None

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

    def refusal(self, route: str) -> str:
        """Return the reason why the page's reader may not call a route; empty if the reader
        may call it."""
        try:
            found, _ = self._admit(route)
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
