"""A route is one row; everything about it is derived from that row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass, replace
from inspect import getdoc
from typing import Any, Generic, TypeVar, get_origin

from ..errors import ConfigurationError, short_repr
from .context import Context
from .params import P, Params, specs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cache:
    """When an answer may be kept by others."""

    always: bool = False
    given: str | None = None
    """The parameter that, when given, makes the answer one that never changes."""
    final: Callable[[Any], bool] | None = None
    """Whether this very answer is final."""

    def may_allow(self, params: Params) -> bool:
        """Whether an answer to these parameters may be one that may be kept."""
        return self.always or (
            self.given is not None and getattr(params, self.given) is not None
        )

    def allows(self, params: Params, answer: object) -> bool:
        """Whether an answer to these parameters may be kept."""
        return self.may_allow(params) and (self.final is None or self.final(answer))


NEVER = Cache()
ALWAYS = Cache(always=True)
AT_HEIGHT = Cache(given="height")
WHEN_FOUND = Cache(always=True, final=lambda answer: answer is not None)


@dataclass(frozen=True, slots=True)
class StartedCall(Generic[T]):
    """A call that has begun, and waits for the store."""

    finish: Callable[[], T]
    """Returns the answer; to be called once."""
    is_ready: Callable[[float], bool] = lambda seconds: True
    """Returns true as soon as :attr:`finish` would not wait, or false so many seconds on."""


@dataclass(frozen=True, slots=True)
class Route(Generic[P]):
    """One method of the interface; mypy holds its handler to its parameters and result."""

    name: str
    call: Callable[[Context, P], Any]
    params: type[P]
    result: type
    cache: Cache = NEVER
    chain_only: Callable[[Context, Any], bool] | bool = False
    """Whether its answer follows from its parameters and the chain alone; some backends and
    some parameters may ask for more than others."""
    reads_index: bool = False
    """Whether it asks what an index has by now, beside any moment that others share."""
    is_immutable: bool = False
    """Whether its answer is the same at all times."""
    writes: bool = False
    """Whether it changes state, which not every caller may."""
    begin: Callable[[Context, Any], StartedCall[Any]] | None = None
    """The handler in two steps, where it waits for the store: a websocket is read on in
    between."""
    signs: bool = False
    """Whether it uses the node's own keys, which only callers on its machine may."""

    def is_chain_only(self, context: Context, params: Params) -> bool:
        """Whether the answer to these parameters follows from them and the chain alone."""
        says = self.chain_only
        return says if isinstance(says, bool) else says(context, params)

    @property
    def doc(self) -> str:
        """The handler's first sentence."""
        return (getdoc(self.call) or "").partition("\n\n")[0].replace("\n", " ")


class RouteTable(tuple[Route[Any], ...]):
    """Routes in the order of the document; names are unique."""

    __slots__ = ()

    def __new__(cls, routes: Iterable[Route[Any]]) -> RouteTable:
        """A table; raise :exc:`ConfigurationError` for a name that is there twice."""
        table = super().__new__(cls, routes)
        seen: set[str] = set()
        for route in table:
            if route.name in seen:
                raise ConfigurationError(f"route {route.name!r} is declared twice")
            seen.add(route.name)
        return table

    def with_own(self, more: Iterable[Route[Any]]) -> RouteTable:
        """This table with rows of a host's own, of which those that it has are none.

        Raise :exc:`ConfigurationError` for a row that can't be served.
        """
        if isinstance(more, Route):
            more = (more,)
        if not isinstance(more, Iterable):
            raise ConfigurationError(f"routes is {short_repr(more)}: a list of Route is needed")
        return self + [_checked(route) for route in more if route not in self]

    def __add__(self, more: Iterable[Route[Any]]) -> RouteTable:  # type: ignore[override]
        return RouteTable((*self, *more))

    def by_name(self) -> dict[str, Route[Any]]:
        """The routes by their names."""
        return {route.name: route for route in self}


def _checked(route: object) -> Route[Any]:
    if not isinstance(route, Route):
        raise ConfigurationError(f"routes: {short_repr(route)} is no Route")
    if not (isinstance(route.params, type) and is_dataclass(route.params)):
        raise ConfigurationError(
            f"route {route.name!r}: its parameters are a dataclass, not"
            f" {short_repr(route.params)}; rpc.params.NoParams is that of none"
        )
    if route.chain_only and route.params.__hash__ is None:
        raise ConfigurationError(
            f"route {route.name!r}: with of_chain, answers are kept by their parameters:"
            f" make {route.params.__name__} a dataclass(frozen=True)"
        )
    specs(route.params)
    # As of dict[str, int].
    return replace(route, result=get_origin(route.result) or route.result)
