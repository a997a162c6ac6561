"""Which methods are there at all, and who may call them: asked for every single call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from ..errors import NotAuthorized

log = logging.getLogger("flask_noderpc.guard")

Authorize = Callable[[str], bool]
"""A host's own word on a call of a method, by whoever sent the current request; of a
websocket's handshake the method is ``websocket``."""

WEBSOCKET = "websocket"


class Guard:
    """Says of each call whether it goes on, whichever way it came.

    ``allow`` and ``deny`` are names of methods, in which ``*`` stands for any part.
    """

    def __init__(
        self,
        allow: Iterable[str] = ("*",),
        deny: Iterable[str] = (),
        authorize: Authorize | None = None,
    ) -> None:
        self._allow, self._deny = tuple(allow), tuple(deny)
        self._authorize = authorize

    def has(self, method: str) -> bool:
        """Whether there is such a method for anybody."""
        return _lists(self._allow, method) and not _lists(self._deny, method)

    @property
    def asks(self) -> bool:
        """Whether the host is asked about each call."""
        return self._authorize is not None

    def admits(self, method: str) -> bool:
        """Whether the host lets whoever asks call it."""
        if self._authorize is None:
            return True
        try:
            # Only a plain yes is one.
            return self._authorize(method) is True
        except Exception:
            log.exception("the host's authorize failed, and so %s is refused", method)
            return False

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` for who may not call it."""
        if not self.admits(method):
            raise NotAuthorized(method)


def _lists(patterns: tuple[str, ...], method: str) -> bool:
    return any(fnmatchcase(method, pattern) for pattern in patterns)


OPEN = Guard()
"""Lets everybody call everything."""
