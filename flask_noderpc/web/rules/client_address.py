"""Addresses of clients: which are of this machine, and which belong to one client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

_CONNECTIONS_PER_CLIENT = 256


@dataclass(frozen=True, slots=True)
class ClientLimit:
    """Maximum connections of one client, of ``NODERPC_MAX_CONNECTIONS_PER_CLIENT``.

    The default does not count clients of this machine, which proxies and the node's own user
    are; a limit that is given does.
    """

    given: int | None = None

    @property
    def count(self) -> int:
        """The maximum."""
        return _CONNECTIONS_PER_CLIENT if self.given is None else self.given

    def counts(self, client: str) -> bool:
        """Return true if a client has a limit; one without an address has not."""
        return bool(client) and (self.given is not None or not is_loopback(client))


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
    if wide.is_loopback:
        return str(wide)
    # RFC 4291: a host with one address has the 64 bits behind the network's.
    network = wide.ipv4_mapped or IPv6Network((int(wide), 64), strict=False)
    return str(network)


def unmapped(address: str) -> str:
    """Return the IPv4 address of a client that came to a socket of both families."""
    # RFC 4291, 2.5.5.2: an IPv4-mapped IPv6 address.
    mapped = address.removeprefix("::ffff:")
    return mapped if "." in mapped else address


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


def is_ip(name: str) -> bool:
    """Return true for an IP address, and false for a name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache
def is_loopback(address: str | None) -> bool:
    """Return true for an IP address of this machine alone."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
