"""Answers of a dispatcher, and what of them servers may send again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from .result_cache import CachedResult
from .route import Route

if TYPE_CHECKING:
    from .dispatch import Dispatcher

_EMPTY_RESULT = CachedResult(b"")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a transport sends."""

    status: HTTPStatus
    body: bytes
    cacheable: bool = False
    etag: str = ""
    """What tells its result from others, where it is told."""
    reproducible: Reproducible | None = None


class Answer(NamedTuple):
    """One reply, the result in it, and whose it is, unless it failed."""

    body: bytes
    encoded: CachedResult = _EMPTY_RESULT
    route: Route[Any] | None = None

    @property
    def cacheable(self) -> bool:
        """Whether others may keep it."""
        return self.encoded.cacheable


@dataclass(frozen=True, slots=True)
class Reproducible:
    """What one call was answered, and by whom."""

    dispatcher: Dispatcher
    route: Route[Any]
    encoded: CachedResult
    transport: str

    @property
    def may_hold(self) -> bool:
        """Whether the same may be told again, to whoever asks the same."""
        return self.route.is_immutable or self.encoded.version is not None

    def holds(self) -> bool:
        """Whether it would be told now."""
        if self.route.is_immutable:
            return True
        return self.encoded.holds(self.dispatcher.backend.version())

    def instrumented(self) -> AbstractContextManager[None]:
        """Tells that it was told once more, to whoever listens."""
        return self.dispatcher.instrumented(self.route.name, self.transport)
