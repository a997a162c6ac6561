"""CORS headers, as CometBFT's server sends them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .head import Head
from .origin import ANY

_ASKED_METHOD = "Access-Control-Request-Method"
_ASKED_HEADERS = "Access-Control-Request-Headers"
# CometBFT: cors_allowed_methods.
_METHODS = ("HEAD", "GET", "POST")
_METHOD_FIELD, _HEADERS_FIELD = (
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD",
    "HTTP_ACCESS_CONTROL_REQUEST_HEADERS",
)


@dataclass(frozen=True, slots=True)
class Cors:
    """Origins and headers that pages may use; without origins, no headers are sent.

    An origin may have one ``*`` in it, such as ``https://*.example.com``.
    """

    origins: tuple[str, ...]
    headers: tuple[str, ...]

    def is_preflight(self, head: Head) -> bool:
        """Return true if a browser asks what it may send."""
        return bool(self.origins) and head.method == "OPTIONS" and _METHOD_FIELD in head.fields

    def vary(self, head: Head) -> tuple[str, ...]:
        """Return the headers by which the response varies."""
        if not self.origins:
            return ()
        asked = (_ASKED_METHOD, _ASKED_HEADERS) if self.is_preflight(head) else ()
        return ("Origin", *asked)

    def headers_for(self, head: Head) -> Iterator[tuple[str, str]]:
        """Yield the headers of the response, except ``Vary``."""
        if not self.origins:
            return
        if not self.is_preflight(head):
            if self._admits(head, head.method):
                yield self._allowed_origin(head)
            return
        method, asked = head.fields[_METHOD_FIELD], head.fields.get(_HEADERS_FIELD)
        if self._admits(head, method) and self._takes(asked):
            yield self._allowed_origin(head)
            yield "Access-Control-Allow-Methods", method
            if asked:
                yield "Access-Control-Allow-Headers", asked

    def _admits(self, head: Head, method: str) -> bool:
        origin = head.fields.get("HTTP_ORIGIN", "").lower()
        known = any(_matches(origin, allowed.lower()) for allowed in self.origins)
        # CometBFT: whatever is listed, a preflight may ask for OPTIONS.
        return bool(origin) and known and method in (*_METHODS, "OPTIONS")

    def _takes(self, asked: str | None) -> bool:
        known = {name.lower() for name in self.headers}
        names = {name.strip().lower() for name in (asked or "").split(",")} - {""}
        return ANY in known or names <= known

    def _allowed_origin(self, head: Head) -> tuple[str, str]:
        shown = ANY if ANY in self.origins else head.fields["HTTP_ORIGIN"]
        return "Access-Control-Allow-Origin", shown


def _matches(origin: str, allowed: str) -> bool:
    # Manually: fnmatch would take the brackets of an IPv6 address for a set of characters.
    start, star, end = allowed.partition(ANY)
    if not star:
        return origin == allowed
    is_long_enough = len(origin) >= len(start) + len(end)
    return is_long_enough and origin.startswith(start) and origin.endswith(end)
