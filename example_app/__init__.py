"""An ordinary Flask app with a blockchain node in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask

from flask_noderpc import explorer_bp, noderpc_bp


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """Return an app: node at ``/``, EVM layer at ``/evm``, explorer at ``/explorer``."""
    app = Flask(__name__)
    app.config["NODERPC_EMPTY_BLOCKS"] = True
    app.config["NODERPC_JSON_RPC_ENABLE"] = True
    app.config["NODERPC_EVM_API"] = "eth,net,web3,txpool,debug"
    app.config.from_prefixed_env()
    app.config.from_mapping(config)
    app.register_blueprint(noderpc_bp)
    app.register_blueprint(explorer_bp)
    return app
