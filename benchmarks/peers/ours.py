"""Our node as a peer, in two ways.

``Flask`` is its app behind the server of ``noderpc start``, with every request through Flask;
``noderpc start`` is the command, with its response cache.

``python -m benchmarks.peers.ours PORT FOLDER SETTINGS`` runs the first one.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..process import Server, free_port, served

FLASK = "Flask"
START_COMMAND = "noderpc start"
WAYS = (FLASK, START_COMMAND)
START = [sys.executable, "-m", "flask_noderpc", "start"]
# Settings that equal CometBFT's, and bounds that are raised on both sides.
COMMON = {"dialect": "comet-0.38", "max_batch": 100, "max_subscription_clients": 1000}


def reading(database: Path | str, **more: Any) -> dict[str, Any]:
    """Return the settings of a node that serves a chain and makes no blocks."""
    return {**COMMON, "database": str(database), "produce": False, **more}


@contextmanager
def ours(way: str, folder: Path, settings: dict[str, Any]) -> Iterator[Server]:
    """Run a node in one of the two ways; the server is the EVM layer if it is enabled."""
    with (_flask if way == FLASK else noderpc_start)(folder, settings) as server:
        yield server


@contextmanager
def _flask(folder: Path, settings: dict[str, Any]) -> Iterator[Server]:
    port = free_port()
    words = [sys.executable, "-m", "benchmarks.peers.ours", str(port), str(folder)]
    path = "/evm" if settings.get("json_rpc_enable") else ""
    with served([*words, json.dumps(settings)], port, path) as server:
        yield server


@contextmanager
def noderpc_start(folder: Path, settings: dict[str, Any], cores: str = "0") -> Iterator[Server]:
    """Run ``noderpc start``, by default on the first core, and with one worker unless the
    settings have another number."""
    ports = {
        name: free_port() for name in ("rpc_laddr", "json_rpc_address", "json_rpc_ws_address")
    }
    laddr = {name: f"tcp://127.0.0.1:{port}" for name, port in ports.items()}
    # Like CometBFT's, the node makes no empty blocks.
    given = {**laddr, "workers": 1, "empty_blocks": False, **settings}
    environment = {f"NODERPC_{name.upper()}": str(value) for name, value in given.items()}
    evm = settings.get("json_rpc_enable")
    port = ports["json_rpc_address" if evm else "rpc_laddr"]
    words = [*START, "--home", str(folder)]
    with served(words, port, environment=environment, cores=cores) as server:
        yield server


def _serve(port: int, folder: Path, settings: dict[str, Any]) -> None:
    from gevent import monkey

    monkey.patch_all()
    from flask_noderpc.extension import mounts
    from flask_noderpc.server.app import node_app
    from flask_noderpc.server.connection import Limits
    from flask_noderpc.server.server import NodeServer

    app = node_app(folder, settings)
    mounts(app)["noderpc"].start()
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    NodeServer(listener, app, Limits()).serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
