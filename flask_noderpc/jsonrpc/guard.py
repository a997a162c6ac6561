"""Access control of methods: allow and deny lists, and the host's ``authorize``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..errors import ConfigurationError, NotAuthorized

log = logging.getLogger("flask_noderpc.guard")

Authorize = Callable[[str], bool]
"""A host's decision about a call of a method by the sender of the current request; for a
websocket's handshake the method is ``websocket``."""

WEBSOCKET = "websocket"


class Guard:
    """Admits or refuses each call, on every transport.

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
        """Return true if the method is served at all."""
        return _lists(self._allow, method) and not _lists(self._deny, method)

    def check_names(self, known: Collection[str], unchecked: tuple[str, ...] = ()) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a name that is of no known
        method, which a mistake would leave open; not for those that begin as ``unchecked``."""
        for setting, patterns in (("ALLOW", self._allow), ("DENY", self._deny)):
            for pattern in patterns:
                if pattern.startswith(unchecked) or any(
                    fnmatchcase(name, pattern) for name in known
                ):
                    continue
                like = get_close_matches(pattern, known, 1)
                hint = f"; did you mean {like[0]!r}?" if like else ""
                raise ConfigurationError(
                    f"NODERPC_{setting}_METHODS: no method {pattern!r}{hint}"
                )

    @property
    def asks(self) -> bool:
        """True if the host authorizes each call."""
        return self._authorize is not None

    def admits(self, method: str) -> bool:
        """Return true if the host lets the sender call the method."""
        if self._authorize is None:
            return True
        try:
            # Truthy values are not enough.
            return self._authorize(method) is True
        except Exception:
            log.exception("the host's authorize failed, and so %s is refused", method)
            return False

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` unless the sender may call it."""
        if not self.admits(method):
            raise NotAuthorized(method)


def _lists(patterns: tuple[str, ...], method: str) -> bool:
    return any(fnmatchcase(method, pattern) for pattern in patterns)


OPEN = Guard()
"""Admits every call."""
