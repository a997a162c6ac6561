"""Paths of a mount: one list, which Flask's rules and the calls without Flask follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from ..errors import InvalidSetting
from ..jsonrpc.route import RouteTable
from ..jsonrpc.session import WEBSOCKET_METHODS
from ..settings import Settings
from ..wire.dialect import Dialect
from .layers import EVERY_METHOD, Layer, Path
from .pages import PageRule
from .rules.head import RPC, WEBSOCKET
from .views import Views

_INDEX = "index"


class Paths:
    """Paths of one mount under a ``url_prefix``, without those that its settings exclude."""

    def __init__(
        self,
        views: Views,
        layers: Sequence[Layer],
        dialect: Dialect,
        settings: Settings,
        url_prefix: str,
    ) -> None:
        self._views = views
        self._layers = layers
        self._http = dialect.http
        self._excluded = settings.exclude_routes
        self._url_prefix = url_prefix
        self._methods = EVERY_METHOD if self._http.any_method else ["GET"]

    def all(
        self, routes: RouteTable, pages: Mapping[str, Iterable[PageRule]]
    ) -> Iterator[Path]:
        """Yield the paths of the routes, of the pages and of the layers."""
        for prefix, suffix in self._prefixes():
            yield from self._roots(prefix, suffix)
            for name in routes.by_name():
                yield from self._route(prefix, suffix, name, ("GET", name))
            for name in self._websocket_names():
                yield from self._route(prefix, suffix, name)
        for name, rules in pages.items():
            if name not in self._excluded:
                for rule, endpoint, page, method in rules:
                    yield Path(rule, endpoint, ["GET"], self._views.page(page, method))
        for layer in self._layers:
            yield from layer.paths(self._views, self._excluded)

    def _prefixes(self) -> Iterator[tuple[str, str]]:
        """Yield the prefixes under which the dialect serves all paths, and what they add to
        endpoints."""
        return ((prefix, prefix.replace("/", "_")) for prefix in self._http.mounts)

    def _roots(self, prefix: str, suffix: str) -> Iterator[Path]:
        posts = [method for method in self._methods if method != "GET"] or ["POST"]
        # With a prefix, its bare form answers too: a client's base URL has no slash.
        has_bare = self._url_prefix or prefix
        roots = [(f"{prefix}/", suffix), (prefix, f"{suffix}_bare")][: 2 if has_bare else 1]
        for rule, end in roots:
            yield Path(rule, f"{RPC}{end}", posts, self._views.rpc, ("POST", RPC))
            if _INDEX not in self._excluded:
                yield Path(rule, f"{_INDEX}{end}", ["GET"], self._views.index)

    def _route(
        self, prefix: str, suffix: str, name: str, call: tuple[str, str] | None = None
    ) -> Iterator[Path]:
        if name not in self._excluded:
            view = self._views.route(name)
            yield Path(f"{prefix}/{name}", f"{name}{suffix}", self._methods, view, call)

    def _websocket_names(self) -> Iterable[str]:
        """Return the paths that a real node has only for websockets."""
        return WEBSOCKET_METHODS if self._http.websocket_routes else ()

    def websockets(self) -> Iterator[tuple[str, str]]:
        """Yield the rules of the node's websockets, and their endpoints."""
        for prefix, suffix in self._prefixes():
            yield f"{prefix}/websocket", f"{WEBSOCKET}{suffix}"

    def check_excluded(self, routes: Iterable[str], pages: Iterable[str]) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` if one is unknown."""
        of_layers = (name for layer in self._layers for name in layer.excludable)
        names = {*routes, *self._websocket_names(), *pages, _INDEX, *of_layers}
        for name in self._excluded:
            if name not in names:
                like = get_close_matches(name, names, 1)
                hint = f"did you mean {like[0]!r}?" if like else "see docs/routes for the list"
                raise InvalidSetting(f"NODERPC_EXCLUDE_ROUTES: no route {name!r}; {hint}")
