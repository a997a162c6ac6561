"""The node's own app, for those who have none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from ..extension import NodeRPC


def node_app(folder: Path, settings: Mapping[str, Any]) -> Flask:
    """An app that serves a chain of its own at its root; nothing is opened yet.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError`.
    """
    app = Flask("flask_noderpc.cometbft", instance_path=str(folder), static_folder=None)
    NodeRPC(app, **settings)
    return app
