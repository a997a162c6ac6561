"""What whoever sent a request may do here, told by its address and its headers.

Anybody may read a chain. But a page that somebody happens to open must not send
transactions through a node that this browser can reach; on real nodes it can. Programs
other than browsers send neither header and are not concerned.

Only programs of this machine may have its keys sign, and pages that may send transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

ANY = "*"
UNWANTED = "pages of this origin may not read here (NODERPC_READ_ORIGINS allows more)"


class Standing(NamedTuple):
    """What whoever sent a request may do."""

    may_read: bool
    may_write: bool
    may_sign: bool = False


PROGRAM = Standing(may_read=True, may_write=True)
TELLING = ("HTTP_SEC_FETCH_SITE", "HTTP_ORIGIN", "HTTP_REFERER")
"""Where browsers say whose page it is, as an environ has it; who says nothing is a program."""

# What proxies say of those they stand for: these are not of this machine.
_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")


@dataclass(frozen=True, slots=True)
class Origins:
    """Whose pages may read, and whose may change state; those of this site always may."""

    readers: tuple[str, ...] = (ANY,)
    writers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = (ANY,)

    def serves(self, host: str) -> bool:
        """Whether requests may name this host; a name of another site may lead here."""
        if ANY in self.hosts:
            return True
        name = _name(f"//{host}") or ""
        return any(fnmatchcase(name, _bare(allowed).lower()) for allowed in self.hosts)

    def standing(self, headers: Headers, host: str, peer: str = "") -> Standing:
        """What the sender of these headers to this host may do; who has no address, ``peer``,
        may not sign."""
        is_local = bool(peer) and _is_of_this_machine(headers, host, peer)
        if not _is_of_another_site(headers, host):
            return Standing(may_read=True, may_write=True, may_sign=is_local)
        origin = headers.get("Origin", "")
        may_write = _lists(self.writers, origin)
        return Standing(
            may_write or _lists(self.readers, origin), may_write, may_write and is_local
        )


def _bare(host: str) -> str:
    # The brackets of an IPv6 address would be a set of characters.
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _lists(allowed: tuple[str, ...], origin: str) -> bool:
    return ANY in allowed or origin in allowed


def _is_of_this_machine(headers: Headers, host: str, peer: str) -> bool:
    # geth: --http.vhosts. A site may give its own name this machine's address, and its page
    # is then of the same site.
    name = _name(f"//{host}")
    return (
        _is_loopback(peer)
        and not any(header in headers for header in _FORWARDED)
        and (name == "localhost" or _is_loopback(name))
    )


def _is_loopback(address: str | None) -> bool:
    try:
        found = ip_address(address or "")
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _is_of_another_site(headers: Headers, host: str) -> bool:
    relation = headers.get("Sec-Fetch-Site")
    if relation is not None:
        return relation == "cross-site"
    # Browsers say less to addresses that are neither https nor local.
    sender = headers.get("Origin") or headers.get("Referer")
    if sender is None:
        return False
    name = _name(sender)
    # "null" is of no site, nor of one whose Host can't be read.
    return name is None or name != _name(f"//{host}")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
