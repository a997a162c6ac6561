"""Clients of requests, for limits that are divided among clients."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network


@lru_cache
def client_key(address: str) -> str:
    """Return the key of the client that an address belongs to."""
    host = _without_port(address)
    if ":" not in host:
        return host
    try:
        wide = IPv6Address(host)
    except ValueError:
        # What a proxy or a socket of the system calls it.
        return host
    # RFC 4291: a host with one address has the 64 bits behind the network's.
    own = wide.ipv4_mapped or IPv6Network((int(wide), 64), strict=False)
    return str(own)


def _without_port(address: str) -> str:
    # Some proxies name the port too, and each connection has another.
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def client_of(address: str, *, may_write: bool) -> str:
    """Return the client that a request from an address counts for.

    Pages of other sites that are open at an address are a client of their own: they take
    nothing from the programs beside them.
    """
    key = client_key(address)
    # Senders over a Unix socket have no address, and are not distinguished.
    return key if may_write or not key else f"pages at {key}"
