"""Servers with the files of ``deploy/``, in which only paths and addresses are replaced."""

from __future__ import annotations

import base64
import json
import re
import shlex
import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from ..helpers.http import JSON, request
from ..helpers.ports import free_port
from ..helpers.process import Process, killed
from ..helpers.require import require_library
from ..helpers.until import PATIENCE, until

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy"
SCRIPTS = Path(sys.executable).parent
# The kernel accepts or refuses local connections at once.
_CONNECT_S = 10


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Return the text with other names; each replaced name must be in it."""
    for old, new in names.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def running(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    with killed(Process(command, log, environment, ROOT)) as server:
        yield server


@dataclass
class Way:
    """The address of a node, directly or through a proxy."""

    port: int
    tls: ssl.SSLContext | None = None
    host: str = "node.example"
    prefix: str = ""
    source: str = "127.0.0.1"
    headers: dict[str, str] = field(default_factory=dict)

    def asked(self, path: str, body: Any = None) -> tuple[int, str]:
        """Return status and text of the response to a GET, or to a POST if there is a body."""
        scheme = "http" if self.tls is None else "https"
        headers = {"Host": f"{self.host}:{self.port}", **self.headers}
        answer = request(
            f"{scheme}://127.0.0.1:{self.port}{self.prefix}{path}",
            None if body is None else json.dumps(body).encode(),
            headers if body is None else {**headers, **JSON},
            source=self.source,
            tls=self.tls,
        )
        return answer.status, answer.text

    def get(self, path: str) -> Any:
        """Return the result of a route."""
        return json.loads(self.asked(path)[1])["result"]

    def post(self, body: Any, path: str = "/") -> Any:
        return json.loads(self.asked(path, body)[1])

    def websocket(self, path: str = "/websocket") -> ClientConnection:
        scheme = "ws" if self.tls is None else "wss"
        return connect(
            f"{scheme}://{self.host}:{self.port}{self.prefix}{path}",
            sock=socket.create_connection(
                ("127.0.0.1", self.port), _CONNECT_S, source_address=(self.source, 0)
            ),
            ssl=self.tls,
            additional_headers=self.headers,
            open_timeout=PATIENCE,
            # A client that waits for a block does not read the Close frame.
            close_timeout=1,
        )


def call(method: str, params: Any = None, request_id: Any = 1) -> dict[str, Any]:
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **given}


def encoded(tx: str) -> str:
    return base64.b64encode(tx.encode()).decode()


def converse(way: Way, name: str) -> None:
    """Send every kind of call, and receive events, at one address; ``name`` makes the
    transactions unique."""
    assert way.get("/health") == {}
    both = way.post([call("health", request_id="a"), call("status", request_id="b")])
    assert [answer["id"] for answer in both] == ["a", "b"]
    with way.websocket() as events:
        events.send(json.dumps(call("subscribe", {"query": "tm.event='Tx'"})))
        assert json.loads(events.recv(PATIENCE))["result"] == {}
        by_get = way.get(f'/broadcast_tx_commit?tx="{name}=1"')
        assert int(by_get["height"]) > 0
        told = json.loads(events.recv(PATIENCE))["result"]["events"]
        assert told["tx.height"] == [by_get["height"]]
    by_post = way.post(call("broadcast_tx_commit", {"tx": encoded(f"{name}=2")}))
    assert int(by_post["result"]["height"]) > int(by_get["height"])

    assert way.post(call("eth_chainId", []), "/evm")["result"] == hex(9000)
    with way.websocket("/evm/ws") as heads:
        heads.send(json.dumps(call("eth_subscribe", ["newHeads"])))
        subscription = json.loads(heads.recv(PATIENCE))["result"]
        told = json.loads(heads.recv(PATIENCE))["params"]
        assert told["subscription"] == subscription


class MempoolSource:
    """A thread that sends a transaction and waits for its block."""

    def __init__(self, way: Way, tx: str) -> None:
        self.told: list[tuple[int, str]] = []
        self.thread = threading.Thread(target=self._wait, args=(way, tx), daemon=True)
        self.thread.start()

    def _wait(self, way: Way, tx: str) -> None:
        with suppress(OSError):
            self.told.append(way.asked(f'/broadcast_tx_commit?tx="{tx}"'))


def unit_command(state: Path, runtime: Path, ports: tuple[int, int]) -> list[str]:
    """Return the command of the systemd unit, with the variables that systemd replaces."""
    unit = replaced(
        (FILES / "noderpc.service").read_text(),
        {
            "/opt/noderpc/bin": str(SCRIPTS),
            "${STATE_DIRECTORY}": str(state),
            "${RUNTIME_DIRECTORY}": str(runtime),
            "127.0.0.1:8545": f"127.0.0.1:{ports[0]}",
            "127.0.0.1:8546": f"127.0.0.1:{ports[1]}",
        },
    )
    found = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", unit, re.MULTILINE)
    assert found
    return shlex.split(found[1].replace("\\\n", " "))


def gunicorn_command(*words: str, factory: str = "create_app") -> list[str]:
    require_library("gunicorn")
    app = f"tests.deploy.app:{factory}()"
    conf = str(FILES / "gunicorn.conf.py")
    return [sys.executable, "-m", "gunicorn", "-c", conf, *words, app]


@contextmanager
def serving(
    kind: str, folder: Path, *words: str, factory: str = "create_app", **settings: object
) -> Iterator[tuple[Process, Way]]:
    """Run gunicorn with workers of a kind; yield it and its address once there is a block."""
    way = Way(free_port())
    given = {"database": folder / "noderpc.db", **settings}
    environment = {f"FLASK_NODERPC_{name.upper()}": str(v) for name, v in given.items()}
    bound = ("-k", kind, "--bind", f"127.0.0.1:{way.port}")
    command = gunicorn_command(*bound, *words, factory=factory)
    with running(command, folder / "gunicorn.log", environment) as server:
        server.until_answered(lambda: way.get("/health"))
        until(lambda: way.get("/status")["sync_info"]["latest_block_height"] != "0", "a block")
        yield server, way


def says_ready(path: Path) -> bool:
    """Return true if a node responds at its socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        try:
            sock.connect(str(path))
            sock.sendall(
                b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            return sock.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False
