"""What a page of another site may do here, told by the headers that browsers add.

Anybody may read a chain. But a page that somebody happens to open must not send
transactions through a node that this browser can reach; on real nodes it can. Programs
other than browsers send neither header and are not concerned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

ANY = "*"
UNWANTED = "pages of this origin may not read here (NODERPC_READ_ORIGINS allows more)"


class Standing(NamedTuple):
    """What whoever sent a request may do."""

    may_read: bool
    may_write: bool


@dataclass(frozen=True, slots=True)
class Origins:
    """Whose pages may read, and whose may change state; those of this site always may."""

    readers: tuple[str, ...] = (ANY,)
    writers: tuple[str, ...] = ()

    def standing(self, headers: Headers, host: str) -> Standing:
        """What the sender of these headers to this host may do."""
        if not _is_of_another_site(headers, host):
            return Standing(may_read=True, may_write=True)
        origin = headers.get("Origin", "")
        may_write = _lists(self.writers, origin)
        return Standing(may_write or _lists(self.readers, origin), may_write)


def _lists(allowed: tuple[str, ...], origin: str) -> bool:
    return ANY in allowed or origin in allowed


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
