"""Rules of an app that match the same requests, or have the same name.

In Werkzeug the rule that was added first wins. Here the app's rule always wins: before the
first request is dispatched, and before a server starts, its methods are removed from our rule.
Our other rules are served as before.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock

from flask import Flask, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from ..errors import ConfigurationError
from .websocket import PLAIN

log = logging.getLogger("flask_noderpc.rules")

_SETTLED = "noderpc_collisions"
_lock = Lock()
# Werkzeug handles these methods itself, if a rule has GET or any method at all.
_AUTOMATIC = {"HEAD", "OPTIONS"}
_VARIABLE = re.compile(r"\w+>")
_HINT = (
    "mount the node under a url_prefix, or say with NODERPC_EXCLUDE_ROUTES,"
    " NODERPC_JSON_RPC_ENABLE = False or NODERPC_REST = False that the path is the app's"
)


@dataclass(frozen=True, slots=True)
class RuleConflict:
    """Requests that both a rule of a mount and one of the app match."""

    methods: frozenset[str]
    path: str
    mount: str
    endpoint: str
    """Endpoint of the mount's rule, without the name of its blueprint."""
    host: str
    """Endpoint of the app's rule."""

    @property
    def is_common(self) -> bool:
        """True for ``GET /`` and ``/health``, which many apps have, and for pages at the path
        of a websocket, which does not conflict with them."""
        name = self.endpoint.removesuffix("_bare").removesuffix("_v1")
        return name in ("index", "health") or name.endswith(PLAIN)

    def __str__(self) -> str:
        asked = ", ".join(sorted(self.methods))
        answered = f"{asked} {self.path} is answered by the app's own {self.host!r}"
        # Intended: the user need not do anything.
        if self.is_common:
            return answered
        return f"{answered}, not by '{self.mount}.{self.endpoint}': {_HINT}"


def leave_to_host(app: Flask, report: Callable[[str], object]) -> tuple[RuleConflict, ...]:
    """Remove the methods of the app's rules from matching rules of the mounts, once for each
    app.

    ``report`` then gets a line for each conflict that may be a mistake. Later rules need no
    check: Flask accepts none after the first request.
    """
    with _lock:
        found: tuple[RuleConflict, ...] | None = app.extensions.get(_SETTLED)
        if found is None:
            found = app.extensions[_SETTLED] = tuple(_left(app))
            for collision in found:
                if not collision.is_common:
                    report(str(collision))
        return found


def check_request(app: Flask, **_: object) -> None:
    """Receive ``request_started``: the first request was matched before rules were compared,
    and is matched again if its rule is no longer ours."""
    if _SETTLED not in app.extensions:
        leave_to_host(app, log.warning)
    rule = request.url_rule
    if rule is not None and rule.methods is not None and request.method not in rule.methods:
        _match_again(app)


def has_get(app: Flask, endpoint: str) -> bool:
    """Return true if GET reaches an endpoint of the app."""
    return any("GET" in (rule.methods or ()) for rule in app.url_map.iter_rules(endpoint))


def refuse_overlap(app: Flask) -> None:
    """Raise ``ConfigurationError`` when two mounts of the app match the same requests."""
    seen: dict[tuple[object, ...], str] = {}
    for rule in app.url_map.iter_rules():
        if not _mount_of(app, rule):
            continue
        for method in (rule.methods or set()) - _AUTOMATIC:
            other = seen.setdefault((*_target(rule), method), rule.endpoint)
            if other != rule.endpoint:
                raise ConfigurationError(
                    f"{method} {rule.rule} is wanted by {other!r} and by {rule.endpoint!r}:"
                    " give each mount a different url_prefix"
                )


def refuse_taken_names(endpoints: Iterable[str]) -> None:
    """Raise ``ConfigurationError`` when two rules of a mount would have the same name.

    This happens if a route of the app has the name of one of the node's pages.
    """
    seen: set[str] = set()
    for name in endpoints:
        if name in seen:
            raise ConfigurationError(
                f"the node has an endpoint {name!r} of its own: give the route of your table"
                " another name, or leave it to JSON-RPC with"
                f" NODERPC_EXCLUDE_ROUTES = [{name!r}]"
            )
        seen.add(name)


def _left(app: Flask) -> Iterator[RuleConflict]:
    hosts: dict[tuple[object, ...], list[Rule]] = {}
    for rule in app.url_map.iter_rules():
        if not _mount_of(app, rule) and not rule.build_only:
            for target in _targets(rule):
                hosts.setdefault(target, []).append(rule)
    for rule in app.url_map.iter_rules():
        mount = _mount_of(app, rule)
        for host in hosts.get(_target(rule), ()) if mount else ():
            taken = _take(rule, host)
            if taken:
                endpoint = rule.endpoint.removeprefix(f"{mount}.")
                yield RuleConflict(taken, rule.rule, mount, endpoint, host.endpoint)


def _take(rule: Rule, host: Rule) -> frozenset[str]:
    """Remove from our rule the methods of the app's; return those that were removed."""
    methods = rule.methods or set()
    taken = (methods if host.methods is None else methods & host.methods) - _AUTOMATIC
    left = methods - taken - ({"HEAD"} if "GET" in taken else set())
    rule.methods = left if left - _AUTOMATIC else set()
    return frozenset(taken)


def _mount_of(app: Flask, rule: Rule) -> str:
    """Return the mount of a rule; empty for a rule of the app."""
    name = str(rule.endpoint).rpartition(".")[0]
    return name if name in app.extensions.get("noderpc", ()) else ""


def _target(rule: Rule) -> tuple[object, ...]:
    # Variables may have different names in each rule.
    path = _VARIABLE.sub(">", rule.rule)
    return path, rule.subdomain or "", rule.host or "", bool(rule.websocket)


def _targets(rule: Rule) -> Iterator[tuple[object, ...]]:
    """Yield the targets that a rule matches, including the one without its last slash, as Flask
    redirects it."""
    path, *others = _target(rule)
    yield path, *others
    if isinstance(path, str) and path.endswith("/"):
        yield path.removesuffix("/"), *others


def _match_again(app: Flask) -> None:
    # As in Flask's RequestContext.match_request.
    adapter = app.create_url_adapter(request)
    assert adapter is not None
    try:
        request.url_rule, values = adapter.match(return_rule=True)
        request.view_args = dict(values)
    except HTTPException as error:
        request.url_rule, request.routing_exception = None, error
