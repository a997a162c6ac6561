"""A limit by cost: a search uses up more of a client's budget than a read does."""

import math
import time

from flask import Flask, Request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from limits import parse

from flask_noderpc import Denied, NodeRPC

BUDGET = parse("1000/minute")
COSTS = {"tx_search": 50, "block_search": 50, "eth_getLogs": 50, "eth_call": 10}

# Several processes share a budget by storage_uri="redis://...". A call that is refused uses up
# nothing of a moving window.
limiter = Limiter(get_remote_address, storage_uri="memory://", strategy="moving-window")


def authorize(request: Request, method: str) -> bool | Denied:
    """Charge one call, also of a batch or a websocket."""
    client = request.remote_addr or ""
    if limiter.limiter.hit(BUDGET, client, cost=COSTS.get(method, 1)):
        return True
    seconds = limiter.limiter.get_window_stats(BUDGET, client).reset_time - time.time()
    retry_after = str(max(1, math.ceil(seconds)))
    return Denied(429, {"Retry-After": retry_after}, f"{BUDGET} are used up")


node = NodeRPC(authorize=authorize)


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app whose node charges each call."""
    app = Flask(__name__, instance_path=instance_path)
    limiter.init_app(app)
    node.init_app(app)
    return app
