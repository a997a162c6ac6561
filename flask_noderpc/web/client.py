"""Client of a request, for limits that are divided among clients."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from .. import jsoncodec
from ..jsonrpc.context import Sender
from .origin import Permissions

# Maximum bytes that are read of a body.
_MAX_BYTES = 5 * 1024 * 1024


def sender_of(permissions: Permissions) -> Sender:
    """Return the sender of the current request, identified by its address.

    Pages of other sites that are open at an address are a client of their own: they take
    nothing from the programs beside them.
    """
    home = client_key(request.remote_addr or "")
    # Senders over a Unix socket have no address, and are not distinguished.
    client = home if permissions.may_write or not home else f"pages at {home}"
    return Sender(permissions.may_write, permissions.may_sign, client)


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


def request_cost() -> int:
    """Return the number of calls in the current request, for a host's rate limits.

    One that can't be read counts as one.
    """
    given = request.max_content_length
    # Whatever the method is: CometBFT and geth also answer a body that comes by GET.
    request.max_content_length = _MAX_BYTES if given is None else given
    try:
        return max(1, len(jsoncodec.decode(request.get_data(), list[jsoncodec.Raw])))
    except (jsoncodec.NotJSON, RequestEntityTooLarge):
        return 1
    finally:
        # The host's views may take more.
        request.max_content_length = given
