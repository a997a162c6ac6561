"""Rules of an app that want the same requests, or the same name."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Flask

from ..errors import ConfigurationError


def refuse_collisions(app: Flask) -> None:
    """Raise ``ConfigurationError`` when two rules of the app want the same requests.

    Werkzeug would let the first one win, silently.
    """
    ours = tuple(f"{name}." for name in app.extensions.get("noderpc", ()))
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
                    " NODERPC_INDEX = False or NODERPC_EXCLUDE_ROUTES, /evm with"
                    " NODERPC_JSON_RPC_ENABLE = False"
                )


def refuse_taken_names(endpoints: Iterable[str]) -> None:
    """Raise ``ConfigurationError`` when two rules of a mount would have the same name.

    A row of the host's own may be called as what a mount has beside its table.
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
