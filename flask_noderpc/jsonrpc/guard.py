"""Access control for methods: allow and deny lists, and the app's ``authorize``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any

from ..errors import InvalidSetting, short_repr

log = logging.getLogger("flask_noderpc.guard")

Authorize = Callable[[Any, str], "bool | Denied"]
"""Function that decides about a call, given Flask's request and the method. For the handshake
of a websocket, the method is ``websocket``; for calls on a websocket, the request is the
handshake's."""

WEBSOCKET, HEALTH = "websocket", "health"
STATUS = "status"
"""Method that a client must be allowed to call to read pages with data of the chain."""

# Header names (RFC 9110, 5.1), and headers that only the server sets.
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_THE_SERVER = {"connection", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Denied:
    """Refusal of a call, which ``authorize`` returns.

    If all calls of a request are denied, the HTTP response has ``status`` and ``headers``.
    ``message`` is the message of the JSON-RPC error.
    """

    status: int = 403
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for values that an HTTP response can't have."""
        if not 400 <= HTTPStatus(self.status) < 600:
            raise ValueError(f"Denied(status={self.status}): expected a status from 400 to 599")
        headers = dict(self.headers)
        for name, value in headers.items():
            if not (isinstance(name, str) and _FIELD_NAME.fullmatch(name)):
                raise ValueError(
                    f"Denied(headers=...): expected a header name, got {short_repr(name)}"
                )
            if name.lower() in _OF_THE_SERVER:
                raise ValueError(
                    f"Denied(headers=...): {name} is set by the server; leave it out"
                )
            if not (isinstance(value, str) and value.isascii() and value.isprintable()):
                raise ValueError(
                    "Denied(headers=...): expected a printable ASCII string as the value of"
                    f" {name}, got {short_repr(value)}"
                )
        if not isinstance(self.message, str):
            raise ValueError(f"Denied(message={short_repr(self.message)}): expected a string")
        # Raise UnicodeEncodeError for a lone surrogate, which JSON can't contain.
        self.message.encode()
        # Store a copy, as later changes of the mapping would not be checked.
        object.__setattr__(self, "headers", headers)


def bind_authorizer(authorize: Authorize, request: object) -> Callable[[str], Denied | None]:
    """Return a function that decides about the calls of one request; ``None`` allows a call.

    A call is allowed only if ``authorize`` returns ``True``. An exception is logged, and the
    call is denied.
    """

    def denial(method: str) -> Denied | None:
        try:
            found = authorize(request, method)
        except Exception:
            log.exception("the app's authorize raised an error; %s is refused", method)
            return Denied()
        # Only True allows the call, not other true values.
        if found is True:
            return None
        return found if isinstance(found, Denied) else Denied()

    return denial


class Guard:
    """Allow and deny lists of methods, for every transport.

    ``allow`` and ``deny`` are method names, in which ``*`` matches any part.
    """

    def __init__(
        self,
        allow: Iterable[str] = ("*",),
        deny: Iterable[str] = (),
    ) -> None:
        self._allow, self._deny = tuple(allow), tuple(deny)

    def has(self, method: str) -> bool:
        """Return true if the lists allow a method."""
        return _lists(self._allow, method) and not _lists(self._deny, method)

    def check_names(self, known: Collection[str], unchecked: tuple[str, ...] = ()) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a name that matches no
        method in ``known``: a misspelled name would deny nothing.

        Names that begin with a prefix in ``unchecked`` are not checked.
        """
        for setting, patterns in (("ALLOW", self._allow), ("DENY", self._deny)):
            for pattern in patterns:
                if pattern.startswith(unchecked) or any(
                    fnmatchcase(name, pattern) for name in known
                ):
                    continue
                like = get_close_matches(pattern, known, 1)
                hint = f"did you mean {like[0]!r}?" if like else "see docs/routes for the list"
                raise InvalidSetting(
                    f"NODERPC_{setting}_METHODS: no method {pattern!r}; {hint}"
                )


def _lists(patterns: tuple[str, ...], method: str) -> bool:
    return any(fnmatchcase(method, pattern) for pattern in patterns)


OPEN = Guard()
"""Guard that allows every method."""
