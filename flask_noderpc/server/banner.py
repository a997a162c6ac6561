"""Lines that ``noderpc start`` prints when its node is ready: where it is, and for whom."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from ..settings import Settings
from .addresses import Address

_TITLES = {"node": "node RPC", "evm": "EVM JSON-RPC", "evm_ws": "EVM websocket"}


@dataclass(frozen=True, slots=True)
class Place:
    """An address at which an API is served."""

    surface: str
    address: Address
    certificate: str
    key: str

    @property
    def scheme(self) -> str:
        """Path of its URL."""
        scheme = "ws" if self.surface == "evm_ws" else "http"
        return f"{scheme}s" if self.certificate else scheme


def banner(
    settings: Settings,
    bound: Sequence[tuple[Place, socket.socket]],
    base: str,
    explorer: bool = False,
) -> Iterator[str]:
    """Addresses, the chain, and a command to begin with; the node is below ``base``."""
    for place, sock in bound:
        url = str(place.address) if place.address.path else _own(sock).as_url(place.scheme)
        yield f"{_TITLES[place.surface]:14} {url}  ({_who_can_reach(sock)})"
    chain = f"followed at {_named(settings.upstream)}" if settings.upstream else ""
    yield f"{'chain':14} {chain or settings.application}, dialect {settings.dialect}"
    if settings.dialect == "document":
        yield f"{'':14} clients of CometBFT (CosmJS, light clients) want --dialect comet-0.38"
    for place, sock in bound:
        if place.surface == "node" and not place.address.path:
            if explorer:
                yield f"{'explorer':14} {_own(sock).url(place.scheme)}/explorer/"
            yield f"{'try':14} curl {_own(sock).url(place.scheme)}{base}/status"
            return


def _named(urls: Sequence[str]) -> str:
    """The nodes, without the credentials that their URLs may have."""
    from ..companion.address import Address as UpstreamAddress

    return ", ".join(UpstreamAddress.parse(url).name for url in urls)


def _own(sock: socket.socket) -> Address:
    """The address that it has, also where the port was any."""
    host, port, *_ = sock.getsockname()
    return Address(host, port)


def _who_can_reach(sock: socket.socket) -> str:
    if sock.family == socket.AF_UNIX:
        return "users who may write to the file"
    host = ip_address(sock.getsockname()[0])
    if host.is_loopback:
        return "this machine only"
    if host.is_unspecified:
        return "every address of this machine: anyone who can reach one of them"
    return "anyone who can reach this address"
