"""Tests of hosts and origins at the addresses of ``noderpc start``: a page may not use a name
of its own, and in development pages of this machine may write and sign."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS

from ..helpers.http import JSON, request
from ..helpers.raw_http import CLOSING, connect
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .node_process import COMMAND, Node, started

REFUSED = "invalid host specified (add the host to NODERPC_ALLOWED_HOSTS)\n"
OWN = ("localhost", "LOCALHOST:1", "127.0.0.1:1", "192.0.2.7", "[::1]:1", "[2001:db8::1]")
FOREIGN = ("evil.example", "evil.example:26657", "localhost.evil.example", "127.0.0.1.nip.io")
SENT = {"method": "broadcast_tx_sync", "params": {"tx": "YT0x"}}


def asked(url: str, path: str = "/health", body: Any = None, **headers: str) -> tuple[int, str]:
    """Return status and text of the response to a GET, or to a POST of a body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    call = None
    if body is not None:
        call = json.dumps({"jsonrpc": "2.0", "id": 1, **body}).encode()
        named |= JSON
    answer = request(url.rstrip("/") + path, call, named)
    return answer.status, answer.text


def urls(node: Node) -> list[str]:
    """Return the URLs of the node RPC, in the order of its addresses."""
    return re.findall(r"^node RPC +(\S+)", node.log.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    at = f"tcp://127.0.0.1:0,tcp://0.0.0.0:0,unix://{folder}/node.sock"
    with started(folder, "--json-rpc.enable", "--rpc.laddr", at) as found:
        found.until_up()
        yield found


@pytest.mark.parametrize("host", OWN)
def test_names_of_this_machine_are_served(node: Node, host: str) -> None:
    for _ in range(2):
        assert asked(node.url(), Host=host)[0] == 200
    chain = {"method": "eth_chainId", "params": []}
    assert asked(node.url("EVM JSON-RPC"), "/", chain, Host=host)[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_that_leads_here_is_no_way_in(node: Node, host: str) -> None:
    url = node.url()
    page = {"Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin"}
    chain = {"method": "eth_chainId", "params": []}
    # The response for its own name must not be cached for another name.
    asked(url)
    for answer in (
        asked(url, Host=host),
        asked(url, "/", SENT, Host=host, **page),
        asked(url, "/", Host=host),
        asked(node.url("EVM JSON-RPC"), "/", chain, Host=host),
    ):
        assert answer == (403, REFUSED)
    with pytest.raises(ConnectionRefusedError, match=" 403 "):
        WebSocketClient(url, headers={"Host": host})
    websocket = node.url("EVM websocket").replace("ws", "http", 1)
    with pytest.raises(ConnectionRefusedError, match=" 403 "):
        WebSocketClient(websocket, path="/", headers={"Host": host})


def test_a_program_may_name_no_host(node: Node) -> None:
    with connect(node.url()) as sock:
        sock.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert b" 200 " in sock.recv(100)


def test_addresses_that_others_reach_serve_every_name(node: Node) -> None:
    _, everywhere, unix = urls(node)
    for host in FOREIGN:
        assert asked(everywhere.replace("localhost", "127.0.0.1"), Host=host)[0] == 200
    with connect_unix(unix) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


def connect_unix(url: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    sock.connect(url.removeprefix("unix://"))
    return sock


def test_listed_names_are_served_beside_those_of_this_machine(tmp_path: Path) -> None:
    with started(tmp_path, "--allowed-hosts", "node.example,*.inner.example") as node:
        node.until_up()
        for host in (*OWN, "node.example:80", "a.inner.example"):
            assert asked(node.url(), Host=host)[0] == 200, host
        for host in FOREIGN:
            assert asked(node.url(), Host=host) == (403, REFUSED)


def home(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_behind_a_proxy_only_a_list_counts(tmp_path: Path) -> None:
    proxied = ("--trusted-proxies", "1")
    with started(home(tmp_path / "any"), *proxied) as node:
        node.until_up()
        assert asked(node.url(), Host="node.example")[0] == 200
        assert asked(node.url(), X_Forwarded_Host="node.example")[0] == 200
    with started(home(tmp_path / "list"), *proxied, "--allowed-hosts", "node.example") as node:
        url = node.url()
        until(lambda: asked(url, X_Forwarded_Host="node.example")[0] == 200, "an answer")
        assert asked(url) == (403, REFUSED)
        assert asked(url, X_Forwarded_Host="evil.example") == (403, REFUSED)


def test_a_hosts_app_has_the_names_that_it_lists(tmp_path: Path) -> None:
    (tmp_path / "hosting.py").write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        f"app = Flask(__name__, instance_path={str(tmp_path)!r})\n"
        "NodeRPC(app, rpc_laddr='tcp://127.0.0.1:0')\n"
    )
    python, *_ = COMMAND
    where = ["--app", str(tmp_path / "hosting.py")]
    command = [python, "-m", "flask", *where, "noderpc", "start"]
    with started(tmp_path, command=command) as node:
        node.until_up()
        assert asked(node.url(), Host="node.example")[0] == 200


LATE_RECEIVER = """
from flask import Flask, request, request_started
from flask_noderpc import NodeRPC

app = Flask(__name__, instance_path={folder!r})
NodeRPC(app, rpc_laddr="tcp://127.0.0.1:0")
paths = []


def note(_sender, **_):
    paths.append(request.path)


@app.get("/connect")
def connect():
    request_started.connect(note, app)
    return "connected"


@app.get("/paths")
def seen():
    return paths
"""


def test_a_receiver_that_is_connected_late_sees_cached_requests_too(tmp_path: Path) -> None:
    module = tmp_path / "hosting.py"
    module.write_text(LATE_RECEIVER.format(folder=str(tmp_path)))
    command = [COMMAND[0], "-m", "flask", "--app", str(module), "noderpc", "start"]
    with started(tmp_path, command=command) as node:
        node.until_up()
        url = node.url()
        for path in ("/health", "/health", "/connect", "/health", "/health"):
            assert asked(url, path)[0] == 200
        assert json.loads(asked(url, "/paths")[1]) == ["/health", "/health", "/paths"]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("dev"), "--dev") as found:
        found.until_up()
        yield found


FIRST = "0x" + DEV_KEYS[0].address.hex()
PAYS: dict[str, Any] = {
    "method": "eth_sendTransaction",
    "params": [{"from": FIRST, "to": FIRST}],
}
PAGES = ("http://localhost:3000", "https://127.0.0.1:5173", "chrome-extension://abcdef")


@pytest.mark.parametrize("origin", [*PAGES, "moz-extension://abc-def"])
@pytest.mark.parametrize("relation", ["cross-site", "same-site"])
def test_in_development_pages_of_this_machine_send_and_sign(
    dev: Node, origin: str, relation: str
) -> None:
    page = {"Origin": origin, "Sec_Fetch_Site": relation}
    assert '"result":"0x' in asked(dev.url("EVM JSON-RPC"), "/", PAYS, **page)[1]
    unknown = asked(dev.url(), "/", SENT, **page)[1]
    assert "NODERPC_WRITE_ORIGINS" not in unknown
    headers = {"Origin": origin, "Sec-Fetch-Site": relation}
    with closing(WebSocketClient(websocket_of(dev), path="/", headers=headers)) as client:
        assert client.asked(PAYS["method"], PAYS["params"])["result"].startswith("0x")


def websocket_of(node: Node) -> str:
    return node.url("EVM websocket").replace("ws", "http", 1)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example"])
def test_in_development_other_pages_only_read(dev: Node, origin: str) -> None:
    page = {"Origin": origin, "Sec_Fetch_Site": "cross-site"}
    url = dev.url("EVM JSON-RPC")
    assert "NODERPC_WRITE_ORIGINS" in asked(url, "/", PAYS, **page)[1]
    number = {"method": "eth_blockNumber", "params": []}
    assert '"result"' in asked(url, "/", number, **page)[1]


@pytest.mark.parametrize("origin", PAGES)
def test_without_development_the_error_names_the_setting(node: Node, origin: str) -> None:
    for relation in ("cross-site", "same-site"):
        page = {"Origin": origin, "Sec_Fetch_Site": relation}
        assert "NODERPC_WRITE_ORIGINS" in asked(node.url(), "/", SENT, **page)[1]


@pytest.mark.parametrize("laddr", ["tcp://:0", ":0"])
def test_an_address_without_a_host_is_served_on_both_families(
    tmp_path: Path, laddr: str
) -> None:
    """Go listens on both families, too."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with started(tmp_path, "--rpc.laddr", laddr) as node:
        url = node.url()
        port = int(url.rpartition(":")[2])
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as sock:
                sock.settimeout(PATIENCE)
                sock.connect((host, port))
                sock.sendall(CLOSING)
                assert sock.recv(65_536).startswith(b"HTTP/1.1 200 OK"), host
        assert "anyone who can reach one of them" in node.log.read_text()


def test_0_0_0_0_is_ipv4_alone(tmp_path: Path) -> None:
    with started(tmp_path, "--rpc.laddr", "tcp://0.0.0.0:0") as node:
        port = int(node.url().rpartition(":")[2])
        with socket.socket(socket.AF_INET6) as sock, pytest.raises(OSError, match="refused"):
            sock.connect(("::1", port))
