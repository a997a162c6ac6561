"""Page at ``GET /readyz``: whether the node serves requests, in one line or as JSON."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from flask import Response, request

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..backends.base.health import Measure
from ..backends.sql.store import STORE, ChainStore
from ..domain.time import SECOND
from ..errors import NodeRPCError
from ..jsonrpc.reply import to_rpc_error

# Values that switch ``full`` on; ``?full`` without a value is an empty string.
_YES = ("", "1", "true")
_TEXT, _JSON = "text/plain", "application/json"


@dataclass(frozen=True, slots=True)
class _State:
    """State of a node, and phrases that explain it."""

    state: str
    status: HTTPStatus = HTTPStatus.OK
    reason: str = ""
    """Reason why the node is not ready."""
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return the state and its explanation in one line."""
        if self.reason:
            return self.reason
        return ": ".join(filter(None, (self.state, "; ".join((*self.missing, *self.notes)))))


class Readiness:
    """The page at ``GET /readyz`` of one mount.

    Everyone may read the status code. Only clients who may call ``status`` may read the
    reason; ``may_see`` returns true if the sender of the current request is one. ``GET
    /readyz?full`` also reports a node as not ready while data is missing, such as during a
    backfill. A client that prefers JSON to text gets the heights, the measures of the backend,
    the size of the store and the holder of its lease, too.
    """

    def __init__(
        self, start: Callable[[], None], backend: ChainBackend, may_see: Callable[[], bool]
    ) -> None:
        self._start, self._backend, self._may_see = start, backend, may_see

    def page(self) -> Response:
        """Return the page."""
        found, may_see = self._state(), self._may_see()
        if request.accept_mimetypes.best_match((_TEXT, _JSON)) != _JSON:
            line = found.line() if may_see else found.state
            return _response(f"{line}\n".encode(), found.status, _TEXT)
        document: dict[str, Any] = {"state": found.state}
        if may_see:
            document |= {
                "reason": found.reason,
                "missing": found.missing,
                "notes": found.notes,
                **self._details(),
            }
        return _response(jsoncodec.encode(document), found.status, _JSON)

    def _state(self) -> _State:
        try:
            self._start()
            self._backend.check_ready()
        except Exception as error:
            reason = to_rpc_error(error).text_with_hint
            return _State("not ready", HTTPStatus.SERVICE_UNAVAILABLE, reason)
        missing, notes = list(_missing(self._backend)), list(self._backend.health.notes())
        if not missing or request.args.get("full") not in _YES:
            return _State("ready", missing=missing, notes=notes)
        return _State(
            "not complete", HTTPStatus.SERVICE_UNAVAILABLE, missing=missing, notes=notes
        )

    def _details(self) -> dict[str, Any]:
        """Return heights, measures and the store's state; an empty dictionary if they can't be
        read."""
        with suppress(NodeRPCError, OSError, NotImplementedError):
            base, results, index = _lowest(self._backend)
            store = STORE.find(self._backend)
            return {
                "lowest": {"blocks": base, "results": results, "index": index},
                "measures": list(_without_addresses(self._backend.health.measures())),
                "store": store and _store(store),
            }
        return {}


def _response(body: bytes, status: HTTPStatus, mimetype: str) -> Response:
    return Response(body, status, {"Vary": "Accept"}, mimetype=mimetype)


def _without_addresses(measures: Iterable[Measure]) -> Iterator[dict[str, Any]]:
    """Yield measures without the label that names an upstream node, whose address only the
    operator should know; those that then have equal labels are added."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
    for each in measures:
        labels = tuple(pair for pair in each.labels.items() if pair[0] != "upstream")
        sums[each.name, labels] += each.value
    for (name, labels), value in sums.items():
        yield {"name": name, "labels": dict(labels), "value": value}


def _store(store: ChainStore) -> dict[str, Any]:
    lease = store.lease_state()
    # Omit the part of the name that identifies the machine.
    holder = lease.owner.partition("@")[0]
    seconds = (lease.expires - time.time_ns()) / SECOND
    shown = {"holder": holder, "seconds_left": round(seconds, 1)} if holder else None
    return {"bytes": store.size_bytes(), "lease": shown}


def _lowest(backend: ChainBackend) -> tuple[int, int, int]:
    """Return the lowest heights of blocks, of results and of the index."""
    reads = backend.reads
    return reads.base_height(), reads.lowest_results(), reads.lowest_indexed()


def _missing(backend: ChainBackend) -> Iterator[str]:
    """Yield phrases that describe which data a ready node does not have."""
    base, results, index = _lowest(backend)
    if not base == results == index:
        yield f"blocks from height {base}, results from {results}, searches from {index}"
    yield from backend.health.missing()
