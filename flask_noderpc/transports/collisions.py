"""Rules of an app that want the same requests."""

from __future__ import annotations

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
