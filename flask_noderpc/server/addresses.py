"""Addresses such as ``tcp://host:port``, their sockets and TLS, and the API surfaces that
``noderpc start`` serves at them: the node RPC, and the surfaces of enabled APIs."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..chain.comet_config import read_file
from ..errors import ConfigurationError, InvalidSetting, short_repr
from ..feature import Surface, apis
from ..settings import Settings
from ..web.rules.head import is_loopback

if TYPE_CHECKING:
    import ssl

# Length of the system's queue of connections that are not accepted yet.
_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Address ``tcp://host:port`` or ``unix:///path``; port 0 means any free port.

    An empty host means every IPv4 and IPv6 address of this machine, as in Go.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    def url(self, scheme: str) -> str:
        """Return the URL by which a client on this machine reaches the address."""
        here = self.host in ("", "0.0.0.0", "::", "127.0.0.1")
        return (replace(self, host="localhost") if here else self).as_url(scheme)

    def as_url(self, scheme: str) -> str:
        """Return the address with another scheme instead of ``tcp``."""
        return str(self).replace("tcp", scheme, 1)

    def on_loopback(self) -> Address:
        """Return the address with the same port on 127.0.0.1; a Unix socket is unchanged."""
        return self if self.path else replace(self, host="127.0.0.1")


def parse(text: str, setting: str) -> tuple[Address, ...]:
    """Return the addresses in a comma-separated list, the value of ``setting``; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    return tuple(_one(part.strip(), setting) for part in text.split(",") if part.strip())


def _one(text: str, setting: str) -> Address:
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "tcp", text
    if scheme == "unix" and rest:
        return Address(path=rest)
    host, colon, port = rest.rpartition(":")
    if scheme != "tcp" or not colon or not port.isascii() or not port.isdecimal():
        raise InvalidSetting(
            f"{setting}: expected tcp://host:port or unix:///path, got {short_repr(text)}"
        )
    if int(port) > 65_535:
        raise InvalidSetting(f"{setting}: expected a port up to 65535, got {short_repr(text)}")
    return Address(host.strip("[]"), int(port))


def listen(bound: socket.socket) -> None:
    """Start listening at a bound socket; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    try:
        bound.listen(_BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"{bound.getsockname()}: {error.strerror or error}") from None


def bind(address: Address, flag: str) -> socket.socket:
    """Return a socket that is bound to the address but not listening; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`, which names the address's ``flag``."""
    try:
        return _unix(address.path) if address.path else _tcp(address)
    except OSError as error:
        raise ConfigurationError(
            f"{address}: {error.strerror or error}; set another address with {flag}"
        ) from None


def is_on_loopback(sock: socket.socket) -> bool:
    """Return true if a socket listens on a loopback IP address; false for a Unix socket."""
    if sock.family == socket.AF_UNIX:
        return False
    return is_loopback(sock.getsockname()[0])


def _tcp(address: Address) -> socket.socket:
    is_dual = not address.host and socket.has_dualstack_ipv6()
    host = address.host or ("::" if is_dual else "0.0.0.0")
    found = socket.getaddrinfo(
        host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, where = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_dual:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(where)
    except OSError:
        made.close()
        raise
    return made


def _unix(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        _remove_dead(path)
        made.bind(path)
    except OSError:
        made.close()
        raise
    return made


def _remove_dead(path: str) -> None:
    """Remove a Unix socket's file if no process listens there."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return a TLS context for the files of a certificate and its key; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def refuse() -> str:
        # Worker processes can't ask the user for a passphrase.
        raise ConfigurationError(f"{key}: expected a TLS key without a passphrase; remove it")

    try:
        for path in (certificate, key):
            read_file(Path(path))
        context.load_cert_chain(certificate, key, refuse)
    except ssl.SSLError as error:
        why = (error.reason or "no certificate or no key").lower().replace("_", " ")
        raise ConfigurationError(
            f"{certificate} and {key}: expected a TLS certificate in PEM and its key: {why}"
        ) from None
    except OSError as error:
        # The error does not say which of the two files it is about.
        raise ConfigurationError(
            f"{certificate} or {key}: expected readable files for TLS:"
            f" {error.strerror or error}"
        ) from None
    return context


NODE = Surface(name="node", title="node RPC", address="rpc_laddr", endpoint="rpc")


def surfaces() -> dict[str, Surface]:
    """Return the surfaces of all APIs, by name."""
    return {each.name: each for each in (NODE, *(s for api in apis() for s in api.surfaces))}


def surfaces_of(settings: Settings) -> Iterator[Surface]:
    """Yield the surfaces of the APIs that settings enable, the node RPC first."""
    yield NODE
    for api in settings.apis():
        yield from api.surfaces
