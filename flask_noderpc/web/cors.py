"""CORS headers, as CometBFT's server sends them."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from flask import Request, Response

from .origin import ANY

_ASKED_METHOD = "Access-Control-Request-Method"
_ASKED_HEADERS = "Access-Control-Request-Headers"


@dataclass(frozen=True, slots=True)
class Cors:
    """Origins, methods and headers that pages may use; without origins, no headers are sent.

    An origin may have one ``*`` in it, such as ``https://*.example.com``.
    """

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]

    def add_headers(self, request: Request, response: Response) -> None:
        """Add the CORS headers to a response."""
        if not self.origins:
            return
        if request.method == "OPTIONS" and _ASKED_METHOD in request.headers:
            self._preflight(request, response)
            return
        response.vary.add("Origin")
        if self._admits(request, request.method):
            response.headers["Access-Control-Allow-Origin"] = self._shown(request)

    def _preflight(self, request: Request, response: Response) -> None:
        response.status_code = HTTPStatus.NO_CONTENT
        response.set_data(b"")
        del response.headers["Allow"]
        response.vary.update(("Origin", _ASKED_METHOD, _ASKED_HEADERS))
        method = request.headers[_ASKED_METHOD]
        asked = request.headers.get(_ASKED_HEADERS)
        if not self._admits(request, method) or not self._takes(asked):
            return
        response.headers["Access-Control-Allow-Origin"] = self._shown(request)
        response.headers["Access-Control-Allow-Methods"] = method
        if asked:
            response.headers["Access-Control-Allow-Headers"] = asked

    def _admits(self, request: Request, method: str) -> bool:
        origin = request.headers.get("Origin", "").lower()
        known = any(_matches(origin, allowed.lower()) for allowed in self.origins)
        # CometBFT: whatever is listed, a preflight may ask for OPTIONS.
        return bool(origin) and known and method in (*self.methods, "OPTIONS")

    def _takes(self, asked: str | None) -> bool:
        known = {name.lower() for name in self.headers}
        names = {name.strip().lower() for name in (asked or "").split(",")} - {""}
        return ANY in known or names <= known

    def _shown(self, request: Request) -> str:
        return ANY if ANY in self.origins else request.headers["Origin"]


def _matches(origin: str, allowed: str) -> bool:
    # Manually: fnmatch would take the brackets of an IPv6 address for a set of characters.
    start, star, end = allowed.partition(ANY)
    if not star:
        return origin == allowed
    is_long_enough = len(origin) >= len(start) + len(end)
    return is_long_enough and origin.startswith(start) and origin.endswith(end)
