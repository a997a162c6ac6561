"""A limit of calls by Flask-Limiter, whose refusals are JSON-RPC errors."""

from typing import Any

from flask import Flask, Response, jsonify, request
from flask_limiter import Limiter, RateLimitExceeded
from flask_limiter.util import get_remote_address

from flask_noderpc import jsoncodec, noderpc_bp, request_cost

# Several processes share a limit by storage_uri="redis://...". The headers tell a client how
# many calls are left, and Retry-After when it may call again.
limiter = Limiter(
    get_remote_address,
    storage_uri="memory://",
    strategy="moving-window",
    headers_enabled=True,
)
# A batch costs as much as its calls, and all routes share the limit.
limiter.shared_limit("100/minute", scope="noderpc", cost=request_cost)(noderpc_bp)


def too_many_calls(error: RateLimitExceeded) -> tuple[Response, int]:
    """Return a JSON-RPC error with the ID of the call; a batch as a whole has none."""
    try:
        # This decoder refuses JSON that is nested too deeply, like the node.
        call_id = jsoncodec.decode(request.get_data(), dict[str, Any]).get("id")
    except jsoncodec.NotJSON:
        call_id = None
    shown = {"code": -32005, "message": "Too many requests", "data": error.description}
    return jsonify(jsonrpc="2.0", id=call_id, error=shown), 429


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app whose node accepts 100 calls a minute of each client."""
    app = Flask(__name__, instance_path=instance_path)
    limiter.init_app(app)
    app.register_blueprint(noderpc_bp)
    app.register_error_handler(RateLimitExceeded, too_many_calls)
    return app
