"""Routes of the RPC, and the route table of a mount."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass, replace
from inspect import getdoc
from typing import Any, Generic, TypeVar, get_origin

from ..backends.base.reads import ChainReads
from ..errors import ConfigurationError, short_repr
from ..wire.schema import WireSchema
from .context import Context
from .params import P, Params, specs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cache:
    """Conditions under which HTTP caches may store a route's responses."""

    always: bool = False
    immutable_with: str | None = None
    """Name of a parameter; if it is given, the response never changes."""
    final: Callable[[Any], bool] | None = None
    """Function that returns true if a result never changes; ``None`` if all results are
    final."""
    of_results: bool = False
    """True if the response depends on the block results of a height, which may be
    provisional."""

    def may_allow(self, params: Params) -> bool:
        """Return true if responses to these parameters may be cached once they are final."""
        return self.always or (
            self.immutable_with is not None and getattr(params, self.immutable_with) is not None
        )

    def allows(self, params: Params, reads: ChainReads) -> bool:
        """Return true if a final response to these parameters may be cached now, as the data
        of the height is not provisional."""
        if not self.may_allow(params):
            return False
        height = (
            getattr(params, self.immutable_with) if self.immutable_with == "height" else None
        )
        return height is None or reads.is_final(height, results=self.of_results)


NEVER = Cache()
ALWAYS = Cache(always=True)
AT_HEIGHT = Cache(immutable_with="height")
OF_RESULTS = Cache(immutable_with="height", of_results=True)
WHEN_FOUND = Cache(always=True, final=lambda answer: answer is not None)


@dataclass(frozen=True, slots=True)
class Route(Generic[P]):
    """One RPC method; mypy checks its handler against its parameters."""

    name: str
    call: Callable[[Context, P], Any]
    params: type[P]
    result: type
    cache: Cache = NEVER
    chain_only: Callable[[Context, Any], bool] | bool = False
    """True if the response depends only on the parameters and the chain; a function decides by
    context and parameters."""
    reads_index: bool = False
    """True if the handler reads the current index instead of the snapshot of a batch."""
    is_immutable: bool = False
    """True if the response never changes."""
    writes: bool = False
    """True if the method changes state, which pages of other sites may not do."""
    waits: bool = False
    """True if the handler returns a :class:`~flask_noderpc.concurrency.Pending` that waits for
    the store, so that a websocket can be read meanwhile."""
    signs: bool = False
    """True if the method signs with the node's keys, which only senders on its machine may
    do."""
    schema: type[WireSchema] | None = None
    """Schema of the result, if its type is the app's own."""
    tag: str = ""
    """Group in which API documents and pages list the method."""

    @property
    def doc(self) -> str:
        """First sentence of the handler's docstring."""
        return (getdoc(self.call) or "").partition("\n\n")[0].replace("\n", " ")


def tagged(tag: str, rows: Iterable[Route[Any]]) -> tuple[Route[Any], ...]:
    """Return the routes with ``tag`` set."""
    return tuple(replace(row, tag=tag) for row in rows)


class RouteTable(tuple[Route[Any], ...]):
    """Routes with unique names, in the order in which API documents list them."""

    __slots__ = ()

    def __new__(cls, routes: Iterable[Route[Any]]) -> RouteTable:
        """Return a table; raise :exc:`ConfigurationError` for a name that occurs twice."""
        table = super().__new__(cls, routes)
        seen: set[str] = set()
        for route in table:
            if route.name in seen:
                raise ConfigurationError(f"route {route.name!r} is declared twice; remove one")
            seen.add(route.name)
        return table

    def with_custom(self, more: Iterable[Route[Any]], name: str = "routes") -> RouteTable:
        """Return the table with the app's routes added, except routes that it already has.

        Raise :exc:`ConfigurationError` for an invalid route; ``name`` is the argument that has
        the routes.
        """
        if isinstance(more, Route):
            more = (more,)
        if not isinstance(more, Iterable):
            raise ConfigurationError(
                f"{name}: expected a list of Route, got {short_repr(more)}"
            )
        return self + [_checked(route, name) for route in more if route not in self]

    def __add__(self, more: Iterable[Route[Any]]) -> RouteTable:  # type: ignore[override]
        return RouteTable((*self, *more))

    def schemas(self) -> dict[type, type[WireSchema]]:
        """Return the schemas that routes declare, by result type."""
        found: dict[type, type[WireSchema]] = {}
        for route in self:
            if route.schema is None:
                continue
            if found.setdefault(route.result, route.schema) is not route.schema:
                raise ConfigurationError(
                    f"route {route.name!r}: another route has a different schema for"
                    f" {route.result.__name__}; use one schema"
                )
        return found

    def by_name(self) -> dict[str, Route[Any]]:
        """Return the routes by name."""
        return {route.name: route for route in self}


def _is_schema(schema: object) -> bool:
    return isinstance(schema, type) and issubclass(schema, WireSchema)


def _checked(route: object, name: str) -> Route[Any]:
    if not isinstance(route, Route):
        raise ConfigurationError(f"{name}: expected a Route, got {short_repr(route)}")
    if not (isinstance(route.params, type) and is_dataclass(route.params)):
        raise ConfigurationError(
            f"route {route.name!r}: params: expected a dataclass, got"
            f" {short_repr(route.params)}; use flask_noderpc.NoParams for no parameters"
        )
    if route.chain_only and route.params.__hash__ is None:
        raise ConfigurationError(
            f"route {route.name!r}: chain_only needs hashable parameters; make"
            f" {route.params.__name__} a dataclass(frozen=True)"
        )
    if route.schema is not None and not _is_schema(route.schema):
        raise ConfigurationError(
            f"route {route.name!r}: schema: expected a subclass of WireSchema, got"
            f" {short_repr(route.schema)}"
        )
    specs(route.params)
    # Use the class of a generic such as dict[str, int].
    return replace(route, result=get_origin(route.result) or route.result)
