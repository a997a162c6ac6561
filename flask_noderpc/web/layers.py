"""Layers: the APIs that a mount serves beside the node's RPC, over the same backend."""

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
"""Methods of HTTP that a path may answer."""

Json = Any
Ask = Callable[..., Json]
"""Calls a method with parameters, and returns the reply."""
Example = Callable[[str, Json], str]
"""Gives an example by the name of a method and a parameter as it is described."""


class Path(NamedTuple):
    """A path below the mount's ``url_prefix``, and the view of its requests."""

    rule: str
    endpoint: str
    """Endpoint of Flask's rule, without the name of the blueprint."""
    methods: list[str]
    view: View
    call: tuple[str, str] | None = None
    """Method and endpoint by the HTTP rules of its calls, which can do without Flask."""


class Websocket(NamedTuple):
    """A path of websockets below the mount's ``url_prefix``."""

    rule: str
    endpoint: str
    open_session: OpenSession
    max_bytes: int
    """Most bytes of a message."""


class Mounted(NamedTuple):
    """Arguments of the function that makes a layer."""

    context: Context
    start: Callable[[], None]
    """Starts the backend."""
    guard: Guard
    node: Dispatcher
    """Dispatcher of the node's RPC."""
    rows: RouteTable = RouteTable(())
    """Rows of the host's for this layer."""


class Layer:
    """An API of a mount; a feature makes one where its setting says so."""

    methods: Set[str] = frozenset()
    """The names of all methods that it can have, under any settings."""
    dispatchers: Mapping[str, Dispatcher] = MappingProxyType({})
    """Dispatchers of JSON-RPC, by the endpoints of their bodies."""
    admissions: Mapping[str, Admission] = MappingProxyType({})
    """How requests are admitted, by endpoints."""
    excludable: tuple[str, ...] = ()
    """Names by which ``NODERPC_EXCLUDE_ROUTES`` leaves paths to the host."""
    title: ClassVar[str] = ""
    """Title of its forms on the page that tries calls; empty without forms."""

    def paths(self, views: Views, excluded: Iterable[str]) -> Iterable[Path]:
        """Return its paths, without those that are excluded."""
        return ()

    def websockets(self) -> Iterable[Websocket]:
        """Return its paths of websockets."""
        return ()

    def examples(self, ask: Ask) -> Example:
        """Return what gives examples for its forms."""
        return lambda method, param: ""

    def prepare(self, *, serves: bool) -> None:
        """Start in the background what calls or blocks need, before the first of them; a
        process that ``serves`` nothing answers no calls."""

    def stop(self) -> None:
        """Stop what runs beside the calls."""


def layers_of(mounted: Mounted, rows: Mapping[str, RouteTable]) -> Iterator[Layer]:
    """Yield the layers that the settings of a mount enable, with rows of the host's by the
    keywords of the layers.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings that don't fit, or
    packages that are missing.
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
