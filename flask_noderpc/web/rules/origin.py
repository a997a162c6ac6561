"""Permissions of a client by its address and headers, and CORS headers like CometBFT's.

Everyone may read a chain. But a web page must not send transactions through a node that its
user's browser can reach, which real nodes allow. Programs other than browsers send none of the
headers that identify a page, and are not affected.

The node's keys sign only for programs on this machine, and for pages on this machine that may
send transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from ...jsonrpc.context import Permissions
from .head import Head, is_ip, is_loopback

ANY = "*"

_BROWSER_HEADERS = ("Sec-Fetch-Site", "Origin", "Referer")
BROWSER_HEADERS = tuple(f"HTTP_{name.upper().replace('-', '_')}" for name in _BROWSER_HEADERS)
"""CGI names of the headers in which browsers say which page sends a request."""

# Headers that proxies add: a request that has one may come from another machine.
_FORWARDED = (
    "HTTP_FORWARDED",
    "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_REAL_IP",
)

# RFC 6454: an origin is a scheme, a host and an optional port, and nothing else.
_HOST = re.compile(r"([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?")
_ORIGIN = re.compile(rf"(https?)://{_HOST.pattern}")
_END_OF_HOST = re.compile("[/?#]")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
# Origins of browser extensions, which are trusted like programs that the user installed.
_EXTENSIONS = ("chrome-extension://", "moz-extension://")


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """Origins whose pages may read and may change state; pages of the node's own site may do
    both.

    With ``dev``, pages and browser extensions on this machine may also change state and have
    the node's keys sign.
    """

    readers: tuple[str, ...] = (ANY,)
    writers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    dev: bool = False

    @property
    def restrict_reading(self) -> bool:
        """True if some pages may not read."""
        return ANY not in self.readers

    @property
    def vary(self) -> tuple[str, ...]:
        """Headers on which a response depends: the browser headers, if some pages may not
        read."""
        return _BROWSER_HEADERS if self.restrict_reading else ()

    def serves(self, host: str) -> bool:
        """Return true if the host of a request is in NODERPC_ALLOWED_HOSTS, or that is
        empty."""
        return not self.hosts or self._has(host)

    def serves_on_loopback(self, host: str | None) -> bool:
        """Return true if the host of a request is served at a loopback address.

        Unless NODERPC_ALLOWED_HOSTS has the name, only localhost and IP addresses are: another
        site's DNS may resolve its name to this address (DNS rebinding).
        """
        # geth 1.16: virtualHostHandler allows requests without a host, which browsers never
        # send.
        if not host:
            return True
        name = _name(f"//{host}") or ""
        return name == "localhost" or is_ip(name) or self._has(host)

    def _has(self, host: str) -> bool:
        if ANY in self.hosts:
            return True
        name = _name(f"//{host}") or ""
        return any(fnmatchcase(name, _bare(allowed).lower()) for allowed in self.hosts)

    def permissions(
        self, fields: Mapping[str, Any], host: str, address: str = ""
    ) -> Permissions:
        """Return the permissions of a request's sender.

        ``fields`` are the headers by CGI name, ``host`` is the requested host, and ``address``
        the client's; without an address the sender may not sign.
        """
        is_local = bool(address) and _is_of_this_machine(fields, host, address)
        relation = _relation(fields, host)
        if relation == "same-origin":
            return Permissions(may_read=True, may_write=True, may_sign=is_local)
        origin = fields.get("HTTP_ORIGIN", "")
        may_write = _lists(self.writers, origin)
        may_write |= self.dev and is_local and _is_for_development(origin)
        may_read = may_write or relation == "same-site" or _lists(self.readers, origin)
        return Permissions(may_read, may_write, may_write and is_local)


def _bare(host: str) -> str:
    # Remove the brackets of an IPv6 address, which fnmatch would take as a set of characters.
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _lists(allowed: tuple[str, ...], origin: str) -> bool:
    return ANY in allowed or origin in allowed


def _is_of_this_machine(fields: Mapping[str, Any], host: str, address: str) -> bool:
    # The host must be a local name, as by geth's --http.vhosts: another site's DNS may resolve
    # its name to this machine (DNS rebinding), and its page is then same-origin.
    return (
        is_loopback(address)
        and not any(name in fields for name in _FORWARDED)
        and _is_local_name(_name(f"//{host}"))
    )


def _is_local_name(name: str | None) -> bool:
    return name == "localhost" or is_loopback(name)


def _is_for_development(origin: str) -> bool:
    if origin.startswith(_EXTENSIONS):
        return True
    return bool(_ORIGIN.fullmatch(origin)) and _is_local_name(_name(origin))


def _relation(fields: Mapping[str, Any], host: str) -> str:
    """Return the relation of the sender's page to the host, as a value of
    ``Sec-Fetch-Site``."""
    relation: str | None = fields.get("HTTP_SEC_FETCH_SITE")
    if relation in ("same-origin", "none"):
        return "same-origin"
    if relation == "cross-site":
        return relation
    sender = fields.get("HTTP_ORIGIN")
    if relation is None and sender is None:
        # Use the Referer, as browsers send no Sec-Fetch-Site over http to other machines.
        page = fields.get("HTTP_REFERER")
        if page is None:
            return "same-origin"
        sender = _origin_of(page)
    if _is_same_origin(sender or "", host):
        return "same-origin"
    # Without the header Origin, as in the request for an image, only the page's site is known.
    return "same-site" if relation == "same-site" else "cross-site"


def _is_same_origin(origin: str, host: str) -> bool:
    """Return true if an origin has the requested host and port; the scheme is not compared, as
    a TLS proxy may not forward it."""
    sender, served = _ORIGIN.fullmatch(origin.lower()), _HOST.fullmatch(host.lower())
    if sender is None or served is None:
        return False
    standard = _DEFAULT_PORTS[sender[1]]
    return (sender[2], sender[3] or standard) == (served[1], served[2] or standard)


def _origin_of(page: str) -> str:
    scheme, _, rest = page.partition("://")
    return f"{scheme}://{_END_OF_HOST.split(rest, maxsplit=1)[0]}"


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


_REQUESTED_METHOD = "Access-Control-Request-Method"
_REQUESTED_HEADERS = "Access-Control-Request-Headers"
# CometBFT: cors_allowed_methods.
_METHODS = ("HEAD", "GET", "POST")
# Response headers that scripts of other sites may read (Fetch standard).
_EXPOSED = (
    "Access-Control-Expose-Headers",
    "ETag, Retry-After, X-Cosmos-Block-Height, X-NodeRPC-Coverage, X-NodeRPC-Provenance,"
    " X-Server-Time",
)
_METHOD_FIELD, _HEADERS_FIELD = (
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD",
    "HTTP_ACCESS_CONTROL_REQUEST_HEADERS",
)


@dataclass(frozen=True, slots=True)
class Cors:
    """Origins and request headers that CORS allows; without origins, no CORS headers are sent.

    An origin may contain one ``*``, such as ``https://*.example.com``.
    """

    origins: tuple[str, ...]
    headers: tuple[str, ...]

    def is_preflight(self, head: Head) -> bool:
        """Return true if the request is a CORS preflight."""
        return bool(self.origins) and head.method == "OPTIONS" and _METHOD_FIELD in head.fields

    def vary(self, head: Head) -> tuple[str, ...]:
        """Return the request headers on which the CORS headers depend."""
        if not self.origins:
            return ()
        requested = (_REQUESTED_METHOD, _REQUESTED_HEADERS) if self.is_preflight(head) else ()
        return ("Origin", *requested)

    def headers_for(self, head: Head) -> Iterator[tuple[str, str]]:
        """Yield the CORS headers of the response; :meth:`vary` has the values of ``Vary``."""
        if not self.origins:
            return
        if not self.is_preflight(head):
            if self._admits(head, head.method):
                yield self._allowed_origin(head)
                yield _EXPOSED
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
        # CometBFT allows OPTIONS in addition to cors_allowed_methods.
        return bool(origin) and known and method in (*_METHODS, "OPTIONS")

    def _takes(self, asked: str | None) -> bool:
        known = {name.lower() for name in self.headers}
        names = {name.strip().lower() for name in (asked or "").split(",")} - {""}
        return ANY in known or names <= known

    def _allowed_origin(self, head: Head) -> tuple[str, str]:
        shown = ANY if ANY in self.origins else head.fields["HTTP_ORIGIN"]
        return "Access-Control-Allow-Origin", shown


def _matches(origin: str, allowed: str) -> bool:
    # Don't use fnmatch, which would take the brackets of an IPv6 address as a set of
    # characters.
    start, star, end = allowed.partition(ANY)
    if not star:
        return origin == allowed
    is_long_enough = len(origin) >= len(start) + len(end)
    return is_long_enough and origin.startswith(start) and origin.endswith(end)
