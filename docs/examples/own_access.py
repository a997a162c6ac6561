"""Access of your own: reading is free within a limit, sending needs a token."""

import time
from collections import Counter

from flask import Flask, Request

from flask_noderpc import Denied, NodeRPC

TOKENS = {"Bearer let-me-in"}
CALLS_PER_MINUTE = 100

calls: Counter[tuple[str, int]] = Counter()


def authorize(request: Request, method: str) -> bool | Denied:
    """Decide about one call; on a websocket the request is the handshake."""
    if method.startswith("broadcast_") and request.headers.get("Authorization") not in TOKENS:
        return Denied(401, {"WWW-Authenticate": "Bearer"}, "sending needs a token")
    seconds = int(time.time())
    window = (request.remote_addr or "", seconds // 60)
    for old in [key for key in list(calls) if key[1] != window[1]]:
        calls.pop(old, None)
    calls[window] += 1
    if calls[window] > CALLS_PER_MINUTE:
        return Denied(429, {"Retry-After": str(60 - seconds % 60)}, "too many calls")
    return True


node = NodeRPC(authorize=authorize)


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app whose node asks ``authorize`` about each call."""
    app = Flask(__name__, instance_path=instance_path)
    node.init_app(app)
    return app
