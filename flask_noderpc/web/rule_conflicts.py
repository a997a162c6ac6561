"""Conflicts between URL rules of an app and of its mounts.

In Werkzeug, the rule that was added first is used. This module ensures that the app's rule is
always used: before the first request and before a server starts, the methods of the app's
rules are removed from matching rules of mounts.
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
# Methods that Werkzeug adds to rules: HEAD to rules with GET, and OPTIONS to all rules.
_AUTOMATIC = {"HEAD", "OPTIONS"}
_VARIABLE = re.compile(r"\w+>")
_HINT = (
    "mount the node under a url_prefix, or leave the path to the app with"
    " NODERPC_EXCLUDE_ROUTES, NODERPC_JSON_RPC_ENABLE = False or NODERPC_REST = False"
)


@dataclass(frozen=True, slots=True)
class RuleConflict:
    """Requests that match a rule of a mount and a rule of the app."""

    methods: frozenset[str]
    path: str
    mount: str
    endpoint: str
    """Endpoint of the mount's rule, without the name of its blueprint."""
    host: str
    """Endpoint of the app's rule."""

    @property
    def is_common(self) -> bool:
        """True for conflicts that need no warning: ``GET /`` and ``/health``, which many apps
        have, and pages at a websocket's path, which still serves handshakes."""
        name = self.endpoint.removesuffix("_bare").removesuffix("_v1")
        return name in ("index", "health") or name.endswith(PLAIN)

    def __str__(self) -> str:
        asked = ", ".join(sorted(self.methods))
        answered = f"{asked} {self.path} is served by the app's own {self.host!r}"
        # No hint, as the user need not do anything.
        if self.is_common:
            return answered
        return f"{answered}, not by '{self.mount}.{self.endpoint}': {_HINT}"


def leave_to_host(app: Flask, report: Callable[[str], object]) -> tuple[RuleConflict, ...]:
    """Remove the methods of the app's rules from matching rules of mounts, once per app;
    return the conflicts.

    ``report`` is called with a line for each conflict that may be a mistake. Rules can't be
    added later, as Flask accepts none after the first request.
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
    """Handle the signal ``request_started``.

    The first request was matched before conflicts were removed, so it is matched again if its
    rule has lost its method.
    """
    if _SETTLED not in app.extensions:
        leave_to_host(app, log.warning)
    rule = request.url_rule
    if rule is not None and rule.methods is not None and request.method not in rule.methods:
        _match_again(app)


def has_get(app: Flask, endpoint: str) -> bool:
    """Return true if GET reaches an endpoint of the app."""
    return any("GET" in (rule.methods or ()) for rule in app.url_map.iter_rules(endpoint))


def refuse_overlap(app: Flask) -> None:
    """Raise ``ConfigurationError`` if two mounts of the app match the same requests."""
    seen: dict[tuple[object, ...], str] = {}
    for rule in app.url_map.iter_rules():
        if not _mount_of(app, rule):
            continue
        for method in (rule.methods or set()) - _AUTOMATIC:
            other = seen.setdefault((*_target(rule), method), rule.endpoint)
            if other != rule.endpoint:
                raise ConfigurationError(
                    f"{method} {rule.rule} is served by {other!r} and by {rule.endpoint!r};"
                    " give each mount a different url_prefix"
                )


def refuse_taken_names(endpoints: Iterable[str]) -> None:
    """Raise ``ConfigurationError`` if two rules of a mount have the same endpoint.

    This happens if a route that the app adds has the name of one of the node's pages.
    """
    seen: set[str] = set()
    for name in endpoints:
        if name in seen:
            raise ConfigurationError(
                f"your route {name!r} has the name of a page of the node; give it another name,"
                f" or serve it only by JSON-RPC with NODERPC_EXCLUDE_ROUTES = [{name!r}]"
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
    """Remove the methods of the app's rule from the mount's rule; return the removed ones."""
    methods = rule.methods or set()
    taken = (methods if host.methods is None else methods & host.methods) - _AUTOMATIC
    left = methods - taken - ({"HEAD"} if "GET" in taken else set())
    rule.methods = left if left - _AUTOMATIC else set()
    return frozenset(taken)


def _mount_of(app: Flask, rule: Rule) -> str:
    """Return the name of the mount that has a rule; empty for a rule of the app."""
    name = str(rule.endpoint).rpartition(".")[0]
    return name if name in app.extensions.get("noderpc", ()) else ""


def _target(rule: Rule) -> tuple[object, ...]:
    # Remove the names of variables, which don't affect which requests a rule matches.
    path = _VARIABLE.sub(">", rule.rule)
    return path, rule.subdomain or "", rule.host or "", bool(rule.websocket)


def _targets(rule: Rule) -> Iterator[tuple[object, ...]]:
    """Yield the targets that a rule matches; one that ends with a slash also matches without
    it, as Flask redirects there."""
    path, *others = _target(rule)
    yield path, *others
    if isinstance(path, str) and path.endswith("/"):
        yield path.removesuffix("/"), *others


def _match_again(app: Flask) -> None:
    # Do the same as Flask's RequestContext.match_request.
    adapter = app.create_url_adapter(request)
    assert adapter is not None
    try:
        request.url_rule, values = adapter.match(return_rule=True)
        request.view_args = dict(values)
    except HTTPException as error:
        request.url_rule, request.routing_exception = None, error
