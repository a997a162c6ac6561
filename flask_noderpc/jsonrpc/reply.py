"""Replies of a dispatcher, and those that a server's response cache may store."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import NotAuthorized
from .result_cache import CachedResult
from .route import Route

if TYPE_CHECKING:
    from .dispatch import Dispatcher

_EMPTY_RESULT = CachedResult(b"")


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a request: status and body."""

    status: HTTPStatus
    body: bytes
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty where there is none."""
    reproducible: Reproducible | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers, of a host's refusal."""


class Answer(NamedTuple):
    """Reply to one call, with its result and its route unless it failed."""

    body: bytes
    encoded: CachedResult = _EMPTY_RESULT
    route: Route[Any] | None = None
    denied: NotAuthorized | None = None
    """The host's refusal of the call."""

    @property
    def cacheable(self) -> bool:
        """True if HTTP caches may store it."""
        return self.encoded.cacheable


@dataclass(frozen=True, slots=True)
class Reproducible:
    """Result of one call, with what is needed to decide if it is still valid."""

    dispatcher: Dispatcher
    route: Route[Any]
    encoded: CachedResult
    transport: str

    @property
    def may_hold(self) -> bool:
        """True if the response may be cached."""
        return self.route.is_immutable or self.encoded.version is not None

    def holds(self) -> bool:
        """Return true if the result is still valid."""
        if self.route.is_immutable:
            return True
        return self.encoded.holds(self.dispatcher.backend.version())

    def instrumented(self) -> AbstractContextManager[None]:
        """Report a cached response to ``rpc_called`` and the log of calls."""
        return self.dispatcher.instrumented(self.route.name, self.transport)
