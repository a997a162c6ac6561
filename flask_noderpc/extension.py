"""The Flask extension: mounts of the node RPC on an app.

Registering opens nothing: the store, the lease and the producer start at the first
request that a process answers.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from flask import Blueprint, Flask, Response, current_app, request
from flask.blueprints import BlueprintSetupState

from .backend.base import ChainBackend
from .chain.embedded import EmbeddedChain
from .chain.from_settings import CHAIN_SETTINGS, chain_from_settings, chain_path
from .errors import (
    BodyTooLarge,
    ConfigurationError,
    InvalidParams,
    InvalidRequest,
    NodeRPCError,
)
from .events.feed import Feed
from .node.table import NODE_ROUTES, UNSAFE_ROUTES
from .rpc.context import Context, Seats, Turns
from .rpc.dispatch import Dispatcher, to_rpc_error
from .rpc.route import RouteTable
from .rpc.session import WEBSOCKET_METHODS, Limits, Session
from .rpc.subscriptions import Hub
from .settings import Settings, read_settings
from .transports.connection import Connection, Timing
from .transports.connections import Connections
from .transports.cors import Cors
from .transports.http import answer_get, answer_post, read_body, refuse, refuse_get, sent_values
from .transports.index import index_page, plain_index
from .transports.origin import Origins, Standing
from .transports.websocket import Shell
from .wire.dialect import Dialect
from .wire.dialects import dialect_named

View = Callable[..., Response | str]

_EVERY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class NodeRPC:
    """Serves a node's RPC from a Flask app.

    ``backend`` answers the calls; without one the app gets an embedded chain in its
    instance folder. ``routes`` adds rows of your own to those of the node. Further
    keywords are settings of this mount alone, such as ``dialect`` or ``max_batch``.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        backend: ChainBackend | None = None,
        name: str = "noderpc",
        url_prefix: str | None = None,
        routes: RouteTable = NODE_ROUTES,
        **settings: Any,
    ) -> None:
        self._name = name
        self._url_prefix = url_prefix
        self._settings = settings
        self._backend = backend
        self._routes = routes
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Mount on an app; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
        app.register_blueprint(self.blueprint(), url_prefix=self._url_prefix)

    def blueprint(self) -> Blueprint:
        """A blueprint that mounts itself wherever it is registered."""
        blueprint = Blueprint(
            self._name, __name__, template_folder="transports/templates", url_prefix=None
        )
        blueprint.record(self._mount)
        return blueprint

    def _mount(self, state: BlueprintSetupState) -> None:
        app = cast(Flask, state.app)
        options = {k: v for k, v in state.options.items() if k not in _BLUEPRINT_OPTIONS}
        backend = options.pop("backend", self._backend)
        settings = read_settings(app.config, {**self._settings, **options})
        dialect = dialect_named(settings.dialect)
        backend = backend or _embedded(app, settings)
        if (
            isinstance(backend, EmbeddedChain)
            and settings.proof_blocks is None
            and dialect.rules.proves_each_block
        ):
            backend.prove_blocks()
        mount = Mount(backend, self._routes, settings, dialect)
        name = f"{state.name_prefix}.{state.name}".lstrip(".")
        mounts(app)[name] = mount
        # "/node/" is "/node", and "/" is none: the rules below bring their own slash.
        state.url_prefix = (state.url_prefix or "").rstrip("/") or None
        for rule, endpoint, methods, view in mount.rules(bool(state.url_prefix)):
            state.add_url_rule(rule, endpoint, view, methods=methods)
        for prefix, mark in mount.prefixes():
            mount.shell.route(
                f"{prefix}/websocket", bp=_Rules(state), endpoint=f"websocket{mark}"
            )(mount.talk)
        app.after_request_funcs.setdefault(name, []).append(mount.mark)
        refuse_collisions(app)


class _Rules:
    """What flask-sock takes for a blueprint: something with a ``route``."""

    def __init__(self, state: BlueprintSetupState) -> None:
        self._state = state

    def route(self, path: str, endpoint: str, **options: Any) -> Callable[[View], None]:
        return lambda view: self._state.add_url_rule(path, endpoint, view, **options)


# What Flask itself takes in register_blueprint().
_BLUEPRINT_OPTIONS = {
    "url_prefix",
    "subdomain",
    "url_defaults",
    "name",
    "name_prefix",
    "cli_group",
}


class Mount:
    """One place of an app where the node RPC is served."""

    timing = Timing()
    """The deadlines of its websockets."""

    def __init__(
        self,
        backend: ChainBackend,
        routes: RouteTable,
        settings: Settings,
        dialect: Dialect,
    ) -> None:
        if settings.unsafe:
            routes += UNSAFE_ROUTES
        self.backend = backend
        self.routes = RouteTable(route for route in routes if route.name not in dialect.lacks)
        self.settings = settings
        self._dialect = dialect
        self._dispatcher = Dispatcher(
            self.routes,
            dialect,
            Context(
                backend=backend,
                settings=settings,
                rules=dialect.rules,
                node_version=dialect.node_version,
                encode=dialect.encode,
                seats=Seats(settings.max_waiting_calls, "NODERPC_MAX_WAITING_CALLS"),
                turns=Turns(settings.search_timeout),
            ),
            # A backend that can't start is an error object of each call.
            self.prepare,
            cures={route.name: "NODERPC_UNSAFE brings it" for route in UNSAFE_ROUTES},
        )
        self._hub = Hub(
            dialect.encode_event, settings.event_buffer, settings.event_buffer_bytes
        )
        self._feed = Feed(
            backend,
            lambda messages: self._hub.publish(dialect.rules.tells(messages)),
            wanted=lambda: len(self._hub) > 0,
        )
        self._origins = Origins(settings.read_origins, settings.write_origins)
        self._cors = Cors(settings.cors_origins, settings.cors_methods, settings.cors_headers)
        self._limits = Limits(
            settings.max_subscription_clients,
            settings.max_subscriptions_per_client,
            settings.max_query_bytes,
        )
        self.shell = Shell(self._may_connect)
        self._connections = Connections()
        self._ready_in = 0
        self._failure: NodeRPCError | None = None
        self._failed_at = 0.0
        self._rules_are_ours = False
        self._lock = threading.Lock()
        names = {*routes.by_name(), *self._websocket_names()}
        for name in settings.exclude_routes:
            if name not in names:
                raise ConfigurationError(f"NODERPC_EXCLUDE_ROUTES: no route {name!r}")

    def rules(self, has_prefix: bool) -> Iterable[tuple[str, str, list[str], View]]:
        """What is registered: rule, endpoint, methods, view."""
        every = _EVERY_METHOD if self._dialect.http.any_method else ["GET"]
        posts = [method for method in every if method != "GET"] or ["POST"]
        for prefix, mark in self.prefixes():
            # With a prefix, its bare form answers too: a client's base URL has no slash.
            bare = has_prefix or prefix
            for suffix, rule in (("", f"{prefix}/"), ("_bare", prefix))[: 2 if bare else 1]:
                yield rule, f"rpc{mark}{suffix}", posts, self._post
                if self.settings.index:
                    yield rule, f"index{mark}{suffix}", ["GET"], self._page
            for name in (*self.routes.by_name(), *self._websocket_names()):
                if name not in self.settings.exclude_routes:
                    yield f"{prefix}/{name}", f"{name}{mark}", every, self._get(name)

    def prefixes(self) -> Iterable[tuple[str, str]]:
        """Where the dialect serves all paths, and the mark of each in names of endpoints."""
        return ((prefix, prefix.replace("/", "_")) for prefix in self._dialect.http.mounts)

    def _websocket_names(self) -> tuple[str, ...]:
        """What a real node has routes for, only to say that they are for websockets."""
        return tuple(WEBSOCKET_METHODS) if self._dialect.http.websocket_routes else ()

    def _get(self, name: str) -> View:
        def view(**_: object) -> Response:
            self._look_at_rules()
            forms, limit = self._dialect.http.any_method, self.settings.max_body_bytes
            try:
                values = sent_values(limit, forms=forms)
            except InvalidParams as error:
                return refuse_get(self._dispatcher, error)
            except BodyTooLarge as error:
                return refuse(self._dispatcher, error)
            return answer_get(self._dispatcher, name, self.standing(), values)

        return view

    # The variables of a url_prefix are the host's business; its hooks see them.

    def _post(self, **_: object) -> Response | str:
        self._look_at_rules()
        standing = self.standing()
        try:
            body = read_body(self.settings.max_body_bytes)
        except InvalidRequest as error:
            return refuse(self._dispatcher, error)
        if not body and self._dialect.envelope.empty_body_is_index and self.settings.index:
            return self._index()
        return answer_post(self._dispatcher, body, standing)

    def _page(self, **_: object) -> Response | str:
        # CometBFT: it is the body that makes a call, not the method.
        return self._post() if self._dialect.http.any_method else self._index()

    def mark(self, response: Response) -> Response:
        """Add the headers that all answers of this mount have."""
        if self._dialect.http.server_time:
            response.headers["X-Server-Time"] = str(int(time.time()))
        self._cors.mark(request, response)
        return response

    def standing(self) -> Standing:
        """What the sender of the current request may do."""
        return self._origins.standing(request.headers, request.host)

    def _may_connect(self) -> bool:
        return self.standing().may_read

    def _index(self) -> Response | str:
        self._look_at_rules()
        left_out = self.settings.exclude_routes
        if self._dialect.http.plain_index:
            ignored = self._dialect.ignored
            return plain_index(self.routes, request.host, left_out, ignored)
        try:
            self.prepare()
            return index_page(self.routes, self.backend, left_out)
        except NodeRPCError as error:
            return index_page(self.routes, None, left_out, to_rpc_error(error).said)

    def talk(self, sock: socket.socket) -> None:
        """Serve a websocket to its end."""
        self._look_at_rules()
        app = current_app._get_current_object()  # type: ignore[attr-defined]
        connection = Connection(sock, self.timing, self.settings.max_body_bytes)
        session = Session(
            self._dispatcher,
            self._hub,
            self._limits,
            follow=self._follow,
            send=connection.send,
            wake=connection.wake,
            may_write=self.standing().may_write,
        )

        def receive(message: bytes) -> None:
            # The connection may last for hours; what a call leaves behind must not.
            with app.app_context():
                session.receive(message)

        try:
            with self._connections.one(connection):
                connection.run(receive, session.pull)
        finally:
            session.close()

    def _follow(self) -> None:
        # A subscription may be the first that this process is asked for.
        self.prepare()
        self._feed.follow()

    def hang_up(self) -> None:
        """Close every websocket, as a server does that goes away."""
        self._connections.close()
        self._feed.stop()

    def _look_at_rules(self) -> None:
        # The host may have added rules after us.
        if not self._rules_are_ours:
            refuse_collisions(current_app)
            self._rules_are_ours = True

    def prepare(self) -> None:
        """Once in each process, before the first answer; raise what ``start`` raises."""
        if self._ready_in == os.getpid():
            # It may have been closed since then.
            self.backend.start()
            return
        arrived = time.monotonic()
        with self._lock:
            if self._ready_in != os.getpid():
                self._start(arrived)

    def _start(self, arrived: float) -> None:
        if self._failure is not None and self._failed_at >= arrived:
            # It failed while we queued; a locked store would make each of us wait anew.
            raise self._failure
        try:
            self.backend.start()
        except NodeRPCError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise
        atexit.register(_close, weakref.ref(self.backend))
        self._ready_in = os.getpid()


def _close(reference: weakref.ref[ChainBackend]) -> None:
    backend = reference()
    if backend is not None:
        backend.close()


def mounts(app: Flask) -> dict[str, Mount]:
    """The mounts of an app by the names of their blueprints."""
    found: dict[str, Mount] = app.extensions.setdefault("noderpc", {})
    return found


def get_backend(name: str = "noderpc") -> ChainBackend:
    """The backend of a mount of the current app, started; for the app's own views."""
    mount = _mount(name)
    mount.prepare()
    return mount.backend


def may_write(name: str = "noderpc") -> bool:
    """Whether the sender of the current request may change state, by the origins that a
    mount of the current app allows; for the app's own views that do."""
    return _mount(name).standing().may_write


def _mount(name: str) -> Mount:
    mount = mounts(current_app).get(name)
    if mount is None:
        known = ", ".join(map(repr, mounts(current_app))) or "none"
        raise ConfigurationError(f"no node RPC is mounted as {name!r}; mounted are: {known}")
    return mount


def _embedded(app: Flask, settings: Settings) -> EmbeddedChain:
    """The app's embedded chain; mounts with the same database share it."""
    folder = Path(app.instance_path)
    path = chain_path(settings, folder)
    for name, mount in mounts(app).items():
        if isinstance(mount.backend, EmbeddedChain) and mount.backend.path == str(path):
            different = [n for n in CHAIN_SETTINGS if _differ(n, mount.settings, settings)]
            if different:
                raise ConfigurationError(
                    f"the mount {name!r} has the chain in {path} with another {different[0]}:"
                    " give this one a NODERPC_DATABASE of its own, or the same settings"
                )
            return mount.backend
    return chain_from_settings(settings, folder)


def _differ(name: str, one: Settings, other: Settings) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def refuse_collisions(app: Flask) -> None:
    """Raise ``ConfigurationError`` when two rules of the app want the same requests.

    Werkzeug would let the first one win, silently.
    """
    ours = tuple(f"{name}." for name in mounts(app))
    seen: dict[tuple[str, str, bool, str], str] = {}
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            key = (rule.rule, rule.subdomain or "", bool(rule.websocket), method)
            other = seen.setdefault(key, rule.endpoint)
            if other != rule.endpoint and (
                rule.endpoint.startswith(ours) or other.startswith(ours)
            ):
                raise ConfigurationError(
                    f"{method} {rule.rule} is wanted by {other!r} and by {rule.endpoint!r}:"
                    " mount the node under a url_prefix, or leave the path to the app with"
                    " NODERPC_INDEX = False or NODERPC_EXCLUDE_ROUTES"
                )


noderpc_bp = NodeRPC().blueprint()
"""The whole integration: ``app.register_blueprint(noderpc_bp)``."""
