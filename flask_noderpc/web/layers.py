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
"""Function that calls a JSON-RPC method with parameters, and returns the response object."""
Example = Callable[[str, Json], str]
"""Function that returns an example value for a form, given a method's name and the OpenRPC
description of a parameter; the value is empty if there is no example."""


class Path(NamedTuple):
    """A path below the mount's ``url_prefix``, and its view."""

    rule: str
    endpoint: str
    """Endpoint of the URL rule, without the blueprint's name."""
    methods: list[str]
    view: View
    call: tuple[str, str] | None = None
    """HTTP method, and endpoint in ``flask_noderpc.web.rules``, of calls that can be executed
    without Flask; ``None`` if there are no such calls."""


class Websocket(NamedTuple):
    """A websocket path below the mount's ``url_prefix``."""

    rule: str
    endpoint: str
    open_session: OpenSession
    max_bytes: int
    """Maximum bytes of a message from the client."""


class Mounted(NamedTuple):
    """Arguments of the function that creates a layer."""

    context: Context
    start: Callable[[], None]
    """Function that starts the backend, if it has not started."""
    guard: Guard
    node: Dispatcher
    """Dispatcher of the node's RPC."""
    rows: RouteTable = RouteTable(())
    """The app's routes for this layer."""


class Layer:
    """An API of a mount in addition to the node's RPC; a feature creates it if a setting
    enables it."""

    methods: Set[str] = frozenset()
    """Names of all methods that the layer can have, with any settings."""
    dispatchers: Mapping[str, Dispatcher] = MappingProxyType({})
    """JSON-RPC dispatchers, by endpoint."""
    admissions: Mapping[str, Admission] = MappingProxyType({})
    """Rules for admitting requests, by endpoint."""
    excludable: tuple[str, ...] = ()
    """Endpoints that ``NODERPC_EXCLUDE_ROUTES`` may name, to leave their paths to the app."""
    title: ClassVar[str] = ""
    """Title of the layer's forms on the page ``/try``; empty if it has no forms."""

    def paths(self, views: Views, excluded: Iterable[str]) -> Iterable[Path]:
        """Return the layer's paths, without the paths of ``excluded`` endpoints."""
        return ()

    def websockets(self) -> Iterable[Websocket]:
        """Return the layer's websocket paths."""
        return ()

    def examples(self, ask: Ask) -> Example:
        """Return a function that makes examples for the layer's forms; ``ask`` calls the
        layer's methods."""
        return lambda method, param: ""

    def prepare(self, *, serves: bool) -> None:
        """Start helper processes in the background, before the first call or block needs them;
        without ``serves``, this process executes no calls."""

    def stop(self) -> None:
        """Stop the layer's background threads."""


def layers_of(mounted: Mounted, rows: Mapping[str, RouteTable]) -> Iterator[Layer]:
    """Yield the layers that the settings of a mount enable; ``rows`` are routes of the app, by
    the keyword argument that takes them, such as ``evm_routes``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for invalid settings, or missing
    packages.
    """
    for api in apis():
        key = PREFIX + api.setting.upper()
        given = rows.get(api.rows, RouteTable(()))
        if not mounted.context.settings.value(api.setting):
            if given:
                raise InvalidSetting(
                    f"{api.rows}: expected {key} = True, as only it serves them"
                )
            if api.check:
                load(api.check)(mounted.context.settings)
            continue
        try:
            make: Callable[[Mounted], Layer] = load(api.layer)
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"{key}: {error}") from None
        yield make(mounted._replace(rows=given))
