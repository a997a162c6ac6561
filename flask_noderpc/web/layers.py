"""Layers: the APIs that a mount serves in addition to the node's RPC, over the same backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ..errors import ConfigurationError, InvalidSetting
from ..feature import apis, load
from ..jsonrpc.context import Context
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.guard import Guard
from ..jsonrpc.route import RouteTable
from ..settings import PREFIX
from .connections import OpenSession
from .rules.admit import Admission
from .views import View, Views

EVERY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE"]
"""HTTP methods that a path may support."""

Json = Any
Ask = Callable[..., Json]
"""Function that calls a method with parameters, and returns the response."""
Example = Callable[[str, Json], str]
"""Function that returns an example, given the name of a method and the description of a
parameter."""


class Path(NamedTuple):
    """A path below the mount's ``url_prefix``, and the view of its requests."""

    rule: str
    endpoint: str
    """Endpoint of Flask's rule, without the blueprint's name."""
    methods: list[str]
    view: View
    call: tuple[str, str] | None = None
    """Method and endpoint in the HTTP rules, for calls that can be executed without Flask."""


class Websocket(NamedTuple):
    """A path of websockets below the mount's ``url_prefix``."""

    rule: str
    endpoint: str
    open_session: OpenSession
    max_bytes: int
    """Maximum bytes of a message."""


class Mounted(NamedTuple):
    """Arguments of the function that creates a layer."""

    context: Context
    start: Callable[[], None]
    """Starts the backend."""
    guard: Guard
    node: Dispatcher
    """Dispatcher of the node's RPC."""
    rows: RouteTable = RouteTable(())
    """The app's routes for this layer."""


class Layer:
    """An API of a mount, created by a feature if its setting enables it."""

    methods: Set[str] = frozenset()
    """Names of all methods that it can have, under any settings."""
    dispatchers: Mapping[str, Dispatcher] = MappingProxyType({})
    """Dispatchers of JSON-RPC, by the endpoints of their bodies."""
    admissions: Mapping[str, Admission] = MappingProxyType({})
    """Functions that admit requests, by endpoints."""
    excludable: tuple[str, ...] = ()
    """Names for ``NODERPC_EXCLUDE_ROUTES``, which leaves their paths to the app."""
    title: ClassVar[str] = ""
    """Title of its forms on the page on which calls can be tried; empty without forms."""

    def paths(self, views: Views, excluded: Iterable[str]) -> Iterable[Path]:
        """Return its paths, without excluded ones."""
        return ()

    def websockets(self) -> Iterable[Websocket]:
        """Return its websocket paths."""
        return ()

    def examples(self, ask: Ask) -> Example:
        """Return a function that gives examples for its forms."""
        return lambda method, param: ""

    def prepare(self, *, serves: bool) -> None:
        """Start in the background what calls or blocks need, before the first of them; without
        ``serves``, the process executes no calls."""

    def stop(self) -> None:
        """Stop what runs in the background."""


def layers_of(mounted: Mounted, rows: Mapping[str, RouteTable]) -> Iterator[Layer]:
    """Yield the layers that the settings of a mount enable, with routes of the app by the
    keywords of the layers.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for invalid settings, or missing
    packages.
    """
    for api in apis():
        key = PREFIX + api.setting.upper()
        given = rows.get(api.rows, RouteTable(()))
        if not mounted.context.settings.value(api.setting):
            if given:
                raise InvalidSetting(f"{api.rows} are served with {key} alone")
            if api.check:
                load(api.check)(mounted.context.settings)
            continue
        try:
            make: Callable[[Mounted], Layer] = load(api.layer)
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"{key}: {error}") from None
        yield make(mounted._replace(rows=given))
