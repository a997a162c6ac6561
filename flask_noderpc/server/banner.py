"""Lines that ``noderpc start`` prints when the node is ready: addresses, chain, accounts, and
how clients connect."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ..backends import stored_identity
from ..backends.base.location import location_of
from ..chain.source import ChainSource, Process
from ..feature import ApplicationKind, Surface, apis, features, load, page_sets
from ..settings import Settings, flag_of
from .addresses import NODE, Address

# Paths of pages of a node without an app, by the names that NODERPC_EXCLUDE_ROUTES has for
# them.
_PAGES = {"index": "/", "try": "/try", "openapi": "/openapi.json"}


@dataclass(frozen=True, slots=True)
class ServedAddress:
    """An address, the API surface that is served there, and its TLS files."""

    surface: Surface
    address: Address
    certificate: str
    key: str

    @property
    def scheme(self) -> str:
        """Scheme of the address's URL."""
        scheme = self.surface.scheme
        return f"{scheme}s" if self.certificate else scheme


@dataclass(frozen=True, slots=True)
class Pages:
    """Paths of pages to list in the banner."""

    own: tuple[str, ...] = ()
    """Paths of the mount's pages."""
    of_features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Paths of features' pages, such as the explorer, by the name of the page set."""


def pages_of(settings: Settings, chosen: Iterable[str]) -> Pages:
    """Return the pages of a node without an app, including the ``chosen`` page sets."""
    excluded = settings.exclude_routes
    own = tuple(path for name, path in _PAGES.items() if name not in excluded)
    known = page_sets()
    return Pages(own, {name: (known[name].path,) for name in chosen})


@dataclass(frozen=True, slots=True)
class Banner:
    """Description of a node that is ready."""

    settings: Settings
    bound: Sequence[tuple[ServedAddress, socket.socket]]
    path: str
    """File or URL of the database; empty if the node has none."""
    pages: Pages
    base: str = ""
    """Path at which an app serves the node."""
    is_app: bool = False
    """True if an app is served, whose settings are in its config."""
    home: Path | None = None
    """Folder of the embedded chain; ``None`` if there is no embedded chain."""
    kind: ApplicationKind | None = None
    """Kind of the embedded chain's application, if it is built in or a subclass of one."""
    source: ChainSource | None = None
    """Source of a chain that is not embedded, such as upstream nodes."""
    processes: Sequence[Process] = ()
    """Processes of the node."""

    def text(self) -> str:
        """Return the banner for a terminal: lines with a title and a text."""
        lines, before = [], ""
        titles = {place.surface.title for place, _ in self.bound}
        for title, text in self._rows():
            # Omit a repeated title, but not of addresses, as programs find these by title.
            is_repeated = title == before and title not in titles
            shown = "" if is_repeated else title
            lines.append(f"{click.style(f'{shown:14}', fg='cyan')} {text}")
            before = title
        return "\n".join(lines)

    def fields(self) -> dict[str, Any]:
        """Return the values for JSON logs, without the keys of accounts."""
        settings = self.settings
        return {
            "version": version("flask-noderpc"),
            "chain_id": self._chain_id(),
            "application": None if self.source else settings.application,
            "upstreams": list(self.source.nodes()) if self.source else [],
            "dialect": settings.dialect,
            "database": self._database(),
            "workers": self._workers(),
            "addresses": [
                {"serves": place.surface.title, "url": _url(place, sock)}
                for place, sock in self.bound
            ],
        }

    def _rows(self) -> Iterator[tuple[str, str]]:
        # A development chain has the order of anvil's output: accounts, chain, addresses.
        accounts, addresses = list(self._accounts()), list(self._addresses())
        yield from accounts or addresses
        yield "version", f"flask-noderpc {version('flask-noderpc')}"
        yield "chain", self._chain()
        if database := self._database():
            yield "database", database
        if len(self.processes) > 1:
            yield "processes", self._processes()
        if accounts:
            yield from addresses
        node = self._client_url("node")
        if node:
            yield from self._pages(node.removesuffix(self.base))
        yield "curl", self._curl("/status")
        yield "CosmJS", self._cosmjs(node)
        yield from self._clients()
        yield from self._other_chains()

    def _addresses(self) -> Iterator[tuple[str, str]]:
        for place, sock in self.bound:
            yield place.surface.title, f"{_url(place, sock)}  ({_who_can_reach(sock)})"

    def _chain_id(self) -> str:
        identity = stored_identity(self.path) if self.path else None
        return identity.chain_id if identity else ""

    def _chain(self) -> str:
        settings = self.settings
        what = self.source.description() if self.source else settings.application
        shown = f"{self._chain_id()}: {what}".removeprefix(": ")
        for api in settings.apis():
            if api.about and not self.source:
                shown += f", {load(api.about)(settings, self.path)}"
        return f"{shown}, dialect {settings.dialect}"

    def _database(self) -> str:
        return location_of(self.path).display_name if self.path else ""

    def _workers(self) -> int:
        return sum(each.serves for each in self.processes)

    def _processes(self) -> str:
        workers = self._workers()
        shown = f"{workers} to serve"
        if workers < len(self.processes):
            shown += f", and {len(self.processes) - workers} to "
            shown += "follow the chain" if self.source else "produce blocks"
        return shown

    def _accounts(self) -> Iterator[tuple[str, str]]:
        if not self.settings.dev or self.home is None or self.kind is None:
            return
        # Import this only for a development chain, as it needs the packages for signing.
        from ..chain.source import dev_accounts_of

        if accounts := dev_accounts_of(self.kind):
            yield from accounts.banner(self.settings, self.home, self._curl("/"))

    def _client_url(self, surface: str) -> str:
        """Return the URL of a surface's first TCP address; empty if it has none."""
        for place, sock in self.bound:
            if place.surface.name == surface and not place.address.path:
                base = self.base if surface == "node" else ""
                return f"{_actual_address(sock).url(place.scheme)}{base}"
        return ""

    def _pages(self, root: str) -> Iterator[tuple[str, str]]:
        for page in self.pages.own:
            yield "pages", f"{root}{page}"
        for name, known in page_sets().items():
            found = self.pages.of_features.get(name, ())
            for page in found:
                yield name, f"{root}{page}"
            if not found:
                blueprint = known.blueprint.partition(":")[2]
                added = f"app.register_blueprint({blueprint})"
                yield name, f"needs {added if self.is_app else f'--{name}'}"

    def _curl(self, page: str) -> str:
        if url := self._client_url("node"):
            return f"curl {url}{page}"
        path = next(place.address.path for place, _ in self.bound if place.surface is NODE)
        return f"curl --unix-socket {path} http://localhost{self.base}{page}"

    def _cosmjs(self, url: str) -> str:
        if self.settings.dialect == "document":
            return f"needs {self._setting('dialect', 'comet-0.38')}, as light clients do"
        return f'await connectComet("{url}")' if url else f"needs {self._setting('rpc_laddr')}"

    def _clients(self) -> Iterator[tuple[str, str]]:
        for api in apis():
            if api.clients:
                url = self._client_url(api.surfaces[0].name) if api.surfaces else ""
                yield from load(api.clients)(self.settings, url, self._setting)

    def _other_chains(self) -> Iterator[tuple[str, str]]:
        """Yield the commands for other chains, on a node that names none of them."""
        if self.source or self.is_app or self.settings.application != Settings().application:
            return
        yield "other chains", f"{'flask --app yourapp run':38}  a chain in your Flask app"
        starts = chain.from_iterable(feature.starts.items() for feature in features())
        for flags, about in sorted(starts):
            yield "other chains", f"{f'noderpc start {flags}':38}  {about}"

    def _setting(self, name: str, value: str = "") -> str:
        """Return how to set a setting: as the app's config key, or as a flag."""
        if self.is_app:
            return f"NODERPC_{name.upper()}" + (f" = {value!r}" if value else "")
        return f"{flag_of(name)} {value}".rstrip()


def _url(place: ServedAddress, sock: socket.socket) -> str:
    return (
        str(place.address) if place.address.path else _actual_address(sock).as_url(place.scheme)
    )


def _actual_address(sock: socket.socket) -> Address:
    """Return the address to which a socket is bound; port 0 has become the actual port."""
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
