"""Routes of the RPC, the table of a mount, and the cache of their encoded results.

Cached results are never invalidated: after a change of the chain, the keys are different.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, is_dataclass, replace
from hashlib import blake2b
from inspect import getdoc
from typing import Any, Generic, NamedTuple, TypeVar, get_origin

from ..backends.base.reads import ChainReads, ChainVersion, Marks
from ..errors import ConfigurationError, short_repr
from ..lru import CacheMemory, LRUCache
from ..wire.schema import WireSchema
from .context import Context
from .params import P, Params, specs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cache:
    """Conditions under which HTTP caches may store a response."""

    always: bool = False
    immutable_with: str | None = None
    """Name of the parameter that makes the response immutable when it is given."""
    final: Callable[[Any], bool] | None = None
    """Function that returns true if a result is final."""
    of_results: bool = False
    """True if the response depends on the results of a height, which may be provisional."""

    def may_allow(self, params: Params) -> bool:
        """Return true if some responses to these parameters may be cached."""
        return self.always or (
            self.immutable_with is not None and getattr(params, self.immutable_with) is not None
        )

    def allows(self, params: Params, reads: ChainReads) -> bool:
        """Return true if final responses to these parameters may be cached; data of the given
        height may still be provisional."""
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
    """One method of the interface; mypy checks its handler against its parameters and
    result."""

    name: str
    call: Callable[[Context, P], Any]
    params: type[P]
    result: type
    cache: Cache = NEVER
    chain_only: Callable[[Context, Any], bool] | bool = False
    """True if its response depends only on its parameters and the chain; a function decides by
    the context and the parameters."""
    reads_index: bool = False
    """True if it reads the current index, not the snapshot of a batch."""
    is_immutable: bool = False
    """True if its response never changes."""
    writes: bool = False
    """True if it changes state, which not every sender is allowed to do."""
    waits: bool = False
    """True if its handler returns a :class:`~flask_noderpc.concurrency.Pending`, which waits
    for the store: a websocket is read meanwhile."""
    signs: bool = False
    """True if it uses the node's keys, which is only allowed for senders on its machine."""
    schema: type[WireSchema] | None = None
    """Schema of a result of the app's own type, for which dialects have none."""
    tag: str = ""
    """Group in which documents and pages list it."""

    @property
    def doc(self) -> str:
        """First sentence of the handler's docstring."""
        return (getdoc(self.call) or "").partition("\n\n")[0].replace("\n", " ")


def tagged(tag: str, rows: Iterable[Route[Any]]) -> tuple[Route[Any], ...]:
    """Return the routes in the group ``tag``."""
    return tuple(replace(row, tag=tag) for row in rows)


class RouteTable(tuple[Route[Any], ...]):
    """Routes in the order of the document; names are unique."""

    __slots__ = ()

    def __new__(cls, routes: Iterable[Route[Any]]) -> RouteTable:
        """Return a table; raise :exc:`ConfigurationError` for a name that occurs twice."""
        table = super().__new__(cls, routes)
        seen: set[str] = set()
        for route in table:
            if route.name in seen:
                raise ConfigurationError(f"route {route.name!r} is declared twice")
            seen.add(route.name)
        return table

    def with_custom(self, more: Iterable[Route[Any]], name: str = "routes") -> RouteTable:
        """Return the table with the app's routes, without those that it already has.

        Raise :exc:`ConfigurationError` for a route that can't be served; ``name`` is the
        argument in which it was given.
        """
        if isinstance(more, Route):
            more = (more,)
        if not isinstance(more, Iterable):
            raise ConfigurationError(f"{name} is {short_repr(more)}: expected a list of Route")
        return self + [_checked(route, name) for route in more if route not in self]

    def __add__(self, more: Iterable[Route[Any]]) -> RouteTable:  # type: ignore[override]
        return RouteTable((*self, *more))

    def schemas(self) -> dict[type, type[WireSchema]]:
        """Return the schemas of routes, by their result types."""
        found: dict[type, type[WireSchema]] = {}
        for route in self:
            if route.schema is None:
                continue
            if found.setdefault(route.result, route.schema) is not route.schema:
                raise ConfigurationError(
                    f"route {route.name!r}: {route.result.__name__} has another schema already"
                )
        return found

    def by_name(self) -> dict[str, Route[Any]]:
        """Return the routes by their names."""
        return {route.name: route for route in self}


def _is_schema(schema: object) -> bool:
    return isinstance(schema, type) and issubclass(schema, WireSchema)


def _checked(route: object, name: str) -> Route[Any]:
    if not isinstance(route, Route):
        raise ConfigurationError(f"{name}: {short_repr(route)} is not a Route")
    if not (isinstance(route.params, type) and is_dataclass(route.params)):
        raise ConfigurationError(
            f"route {route.name!r}: params: expected a dataclass, got"
            f" {short_repr(route.params)}; use flask_noderpc.NoParams for a route without any"
        )
    if route.chain_only and route.params.__hash__ is None:
        raise ConfigurationError(
            f"route {route.name!r}: with chain_only, answers are cached by their parameters:"
            f" make {route.params.__name__} a dataclass(frozen=True)"
        )
    if route.schema is not None and not _is_schema(route.schema):
        raise ConfigurationError(
            f"route {route.name!r}: its schema is a subclass of WireSchema, not"
            f" {short_repr(route.schema)}"
        )
    specs(route.params)
    # A generic such as dict[str, int].
    return replace(route, result=get_origin(route.result) or route.result)


# The key, the entry and its objects, in addition to the bytes of the response and the
# parameters.
_OVERHEAD_BYTES = 1_000
_MAX_ENTRIES = 1_000_000


class CachedResult(NamedTuple):
    """An encoded result, and its attributes for caches."""

    result: bytes | memoryview
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty without one."""
    version: ChainVersion | None = None
    """Version of the chain from which it was computed, if it depends only on the chain."""
    reply: bytes = b""
    """Complete body for a GET of a cached result, as copying a large one takes long."""
    params_bytes: int = 0
    """Approximate bytes of the parameters of a cached result."""
    marks: Marks = ()
    """Headers that say what is not proven or incomplete; a result with any is not cached."""

    def holds(self, version: ChainVersion | None) -> bool:
        """Return true if the result is valid for a version of the chain."""
        if self.version is None or version is None:
            return False
        if self.cacheable:
            return self.version.history == version.history
        return self.version == version


_Answers = LRUCache[Hashable, CachedResult]


def _weight(entry: CachedResult) -> int:
    return len(entry.result) + entry.params_bytes + _OVERHEAD_BYTES


class ResultCache:
    """Cached results of one mount, final or of the head, bounded in bytes."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        memory = memory or CacheMemory(max_bytes)
        # A quarter for the head: results of one block seldom take more.
        head_bytes = max_bytes // 4
        self._final: _Answers = LRUCache(_MAX_ENTRIES, max_bytes - head_bytes, _weight, memory)
        self._head: _Answers = LRUCache(_MAX_ENTRIES, head_bytes, _weight, memory)
        self._version: ChainVersion | None = None

    def find(
        self, name: str, cache: Cache, params: Params, version: ChainVersion
    ) -> CachedResult | None:
        """Return the cached result of a route at a version of the chain, or ``None``."""
        if cache.may_allow(params):
            final = self._final.get((name, params, version.history))
            if final is not None:
                return final
        return self._head.get((name, params, version)) if self._version == version else None

    def put(
        self,
        name: str,
        params: Params,
        version: ChainVersion,
        encoded: CachedResult,
        frame: tuple[bytes, bytes],
    ) -> CachedResult:
        """Cache a result: until evicted if it is final, else until the next block.

        ``frame`` is the JSON before and after it in the response to a GET.
        """
        etag = blake2b(encoded.result, digest_size=16).hexdigest()
        before, behind = frame
        reply = b"".join((before, encoded.result, behind))
        result = memoryview(reply)[len(before) : len(reply) - len(behind)]
        entry = CachedResult(result, encoded.cacheable, etag, version, reply, len(repr(params)))
        if encoded.cacheable:
            return self._final.put((name, params, version.history), entry)
        if self._version != version:
            # Results of an older head are not requested again.
            self._version = version
            self._head.clear()
        return self._head.put((name, params, version), entry)
