"""Tests of ``noderpc start``: addresses, processes, shutdown."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from click.testing import CliRunner
from web3 import HTTPProvider, Web3

from flask_noderpc.cli import main
from flask_noderpc.server import launch
from flask_noderpc.server.worker_spec import WorkerSpec
from flask_noderpc.shared import counter_file

from ..helpers.http import get, request
from ..helpers.raw_http import connect
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .node_process import COMMAND, Node, client_seconds, refusal, started, without_warnings

BUSY = ("--empty-blocks", "--block-interval", "0.1")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("node"), *BUSY, "--json-rpc.enable") as found:
        found.until_up()
        yield found


def test_each_surface_is_at_its_address(node: Node) -> None:
    assert node.get("/health") == {}
    w3 = Web3(HTTPProvider(node.url("EVM JSON-RPC")))
    assert w3.eth.chain_id == 9000
    websocket = WebSocketClient(node.url("EVM websocket").replace("ws", "http", 1), path="/")
    assert websocket.asked("eth_chainId", [])["result"] == hex(9000)
    websocket.close()


def test_without_other_flags_they_are_those_of_the_interface(tmp_path: Path) -> None:
    # A network namespace, where no other process has these ports.
    alone = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c"]
    up = "ip link set lo up"
    if not which("unshare") or subprocess.run([*alone, up], check=False).returncode:
        pytest.skip("this system does not allow a network namespace of its own")
    start = [*COMMAND, "--home", str(tmp_path), "--json-rpc.enable"]
    with started(tmp_path, command=[*alone, f'{up}; exec "$@"', "sh", *start]) as node:
        message = {
            title: node.url(title) for title in ("node RPC", "EVM JSON-RPC", "EVM websocket")
        }
        listening = _listening(node.pid)
        banner = node.log.read_text()
    assert message == {
        "node RPC": "http://127.0.0.1:26657",
        "EVM JSON-RPC": "http://0.0.0.0:8545",
        "EVM websocket": "ws://0.0.0.0:8546",
    }
    assert "http://127.0.0.1:26657  (this machine only)" in banner
    assert "http://0.0.0.0:8545  (every address of this machine" in banner
    assert listening == {("127.0.0.1", 26657), ("0.0.0.0", 8545), ("0.0.0.0", 8546)}


def _listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses that a process's network namespace listens at."""
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, own, _, state, *_ = line.split()
        host, port = own.split(":")
        if state == "0A":
            # The kernel writes addresses as integers in the machine's byte order.
            address = int(host, 16).to_bytes(4, sys.byteorder)
            found.add((socket.inet_ntoa(address), int(port, 16)))
    return found


def test_nothing_of_the_current_folder_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("flask", "queue"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('what is this?')")
    python, *rest = COMMAND
    # The console script begins in this way.
    own = [python, "-P", *rest, "--home", str(tmp_path), "--rpc.laddr", "tcp://127.0.0.1:0"]
    flags = ("--application", "evm", "--empty-blocks")
    with started(tmp_path, *flags, command=own) as node:
        until(lambda: _height(node) > 1, "blocks")


def test_a_browser_finds_the_node_from_the_evm_s_address(node: Node) -> None:
    accept = {"Accept": "text/html,*/*;q=0.8"}
    url = node.url("EVM JSON-RPC")
    page = request(f"{url}/", headers=accept).body.decode()
    assert f"curl {url}/ -H" in page
    assert "9000 (0x2328)" in page
    (index,) = re.findall('href="(http:.*)"', page)
    assert index == f"{node.url('node RPC')}/"
    assert b"/try" in request(index, headers=accept).body
    assert get(url, "/").body == b""


def test_an_address_of_the_evm_layer_has_nothing_else(node: Node) -> None:
    assert get(node.url("EVM JSON-RPC"), "/status").status == 404


def test_cache_entries_are_per_listener(node: Node) -> None:
    request = b"GET /genesis HTTP/1.1\r\nHost: localhost\r\n\r\n"
    statuses = {"node RPC": b"200", "EVM JSON-RPC": b"404", "EVM websocket": b"404"}
    for title, status in statuses.items():
        for _ in range(3):
            with connect(node.url(title)) as sock:
                sock.sendall(request)
                assert sock.recv(12) == b"HTTP/1.1 " + status


def test_start_prints_example_urls(node: Node) -> None:
    message = node.log.read_text()
    assert "/status" in message
    assert "--dialect comet-0.38" in message


def test_namespaces_are_those_of_the_flag(tmp_path: Path) -> None:
    with started(tmp_path, "--json-rpc.enable", "--evm.rpc.api", "eth") as node:
        node.until_up()
        provider = HTTPProvider(node.url("EVM JSON-RPC"))
        answer: Any = provider.make_request("net_version", [])
        assert answer["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--rpc.laddr", "tcp://127.0.0.1:70000"], "expected a port up to 65535"),
        (["--database", "/"], "expected a file, got the folder /; name a file in it"),
        (["--database", "/tmp"], "expected a file, got the folder /tmp"),
        (["--evm.rpc.api", "x"], "NODERPC_EVM_API: expected any of eth, "),
        (["--rpc.laddr", "udp://127.0.0.1:7000"], "expected tcp://host:port or unix"),
        (["--json-rpc.enable", "--evm.rpc.api", "eth,foo"], "got 'foo'"),
        (["--dialect", "comet-9"], "comet-9"),
        (["--rpc.tls_cert_file", "/nowhere.pem"], "TLS needs both"),
        (["--workers", "0"], "a whole number of at least 1"),
        (["--deny-methods", "staus"], "no method 'staus'; did you mean 'status'?"),
        (["--write-origins", "wallet.example"], "expected origins such as"),
        (["--dev", "--application", "kvstore"], "NODERPC_APPLICATION = 'kvstore'"),
    ],
)
def test_invalid_flags_are_one_line_errors(
    tmp_path: Path, flags: list[str], words: str
) -> None:
    message = refused("--home", str(tmp_path), *flags)
    assert words in message
    assert message.startswith("Error: ")
    assert "\n" not in message


def refused(*flags: str) -> str:
    """Return the error of the command for wrong flags or settings, before anything is
    started."""
    found = CliRunner().invoke(main, ["start", *flags])
    assert found.exit_code == 2, found.output
    return without_warnings(found.stderr)


def test_variables_that_are_no_settings_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODERPC_MONIKR", "mine")
    monkeypatch.setenv("FLASK_NODERPC_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("NODERPC_CHAIN_ID", "known")
    with started(tmp_path) as node:
        node.until_up()
        message = node.log.read_text()
    for words in (
        "the environment variable NODERPC_MONIKR is ignored: unknown setting NODERPC_MONIKR;"
        " did you mean NODERPC_MONIKER?",
        "the environment variable FLASK_NODERPC_SERVICE_HOST is ignored",
    ):
        assert message.count(words) == 1
    assert "NODERPC_CHAIN_ID" not in message


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_unhandled_signals_end_no_process(tmp_path: Path, number: int) -> None:
    with started(tmp_path, "--application", "evm", "--json-rpc.enable") as node:
        node.until_up()
        before = node.children()
        for pid in (node.pid, *before):
            os.kill(pid, number)
        # The request is served by a process that had the signal.
        assert node.get("/health") == {}
        assert node.end() == 0
        assert node.log.read_text().count("ended with status") == 0


def test_a_file_in_the_home_is_read_and_flags_win(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "noderpc.toml").write_text(
        'moniker = "of the file"\ndialect = "comet-0.38"\n'
    )
    with started(tmp_path, "--dialect", "document") as node:
        node.until_up()
        assert node.get("/status")["node_info"]["moniker"] == "of the file"
        assert "dialect document" in node.log.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed = 1", "unknown setting speed; see docs/settings for the list"),
        ('monicker = "x"', "unknown setting monicker; did you mean moniker?"),
        ("block-interval = 2", "unknown setting block-interval; did you mean block_interval?"),
        ("NODERPC_WORKERS = 2", "unknown setting NODERPC_WORKERS; did you mean workers?"),
        ("max_batch = -1", "max_batch = -1: expected a whole number of at least 1"),
        ('dialect = "latin"', "dialect = 'latin': expected one of document, comet-0.34"),
        ('rpc_laddr = "x"', "rpc_laddr: expected tcp://host:port or unix:///path, got 'x'"),
        ("= 1", ""),
    ],
)
def test_errors_in_a_settings_file_name_the_file(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config" / "noderpc.toml"
    path.parent.mkdir()
    path.write_text(text)
    assert refused("--home", str(tmp_path)).startswith(f"Error: {path}: {words}")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--block-interval", "-1"),
            "--block-interval = '-1': expected a number of seconds above 0",
        ),
        (("--workers", "-1"), "--workers = '-1': expected a whole number of at least 1"),
        (
            ("--empty-blocks=x",),
            "--consensus.create_empty_blocks / --empty-blocks = 'x': expected",
        ),
        (("--json-rpc.enable", "--json-rpc.address=x"), "--json-rpc.address / --json-rpc-addr"),
        (("--chain-id", "c" * 51), "--chain-id = 'ccc"),
    ],
)
def test_a_bad_value_is_named_by_its_flag_before_its_place_in_the_file(
    tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "config" / "noderpc.toml"
    path.parent.mkdir()
    path.write_text("block_interval = 2\nworkers = 2\n")
    assert refused("--home", str(tmp_path), *flags).startswith(f"Error: {words}")
    assert not (tmp_path / "config" / "genesis.json").exists()


def test_a_bad_value_of_the_environment_is_named_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODERPC_BLOCK_INTERVAL", "-1")
    assert refused("--home", str(tmp_path)).startswith(
        "Error: NODERPC_BLOCK_INTERVAL = '-1': expected a number of seconds above 0"
    )


def test_a_setting_that_contradicts_the_chain_is_reported_once(tmp_path: Path) -> None:
    own = ("--home", str(tmp_path), "--rpc.laddr", "tcp://127.0.0.1:0", "--chain-id")
    with started(tmp_path, "--chain-id", "one") as node:
        node.until_up()
    for flags in ((), ("--workers", "2")):
        (message,) = refusal(*own, "other", *flags).splitlines()
        assert "NODERPC_CHAIN_ID: expected 'one', the chain in" in message


def test_a_copy_is_served_by_its_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with started(tmp_path, *BUSY) as node:
        until(lambda: _height(node) > 2, "some blocks")
        node.end()
    # A copy of a store has no keys.
    copy = f"file:{tmp_path / 'data' / 'noderpc.db'}?mode=ro"
    flags = ("--produce", "false", "--database", copy)
    (tmp_path / "other").mkdir()
    with started(tmp_path / "other", *flags) as node:
        node.until_up()
        assert node.height() > 2
    assert not (tmp_path / "file:").exists()


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        message = refusal("--home", str(tmp_path), "--rpc.laddr", address)
    assert f"{address}: Address already in use; set another address with --rpc.laddr" in message


def test_a_home_without_write_permission_is_reported() -> None:
    assert "choose a writable folder with --home" in refusal("--home", "/proc/none")


def test_a_unix_socket_serves_and_is_taken_again(tmp_path: Path) -> None:
    path = str(tmp_path / "node.sock")
    for _ in range(2):
        with started(tmp_path, "--rpc.laddr", f"unix://{path}") as node:
            until(lambda: _says_ok(path), "an answer over the socket")
            node.end()


def _says_ok(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        try:
            sock.connect(path)
        except OSError:
            return False
        sock.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        return sock.recv(100).startswith(b"HTTP/1.0 200")


def test_a_process_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with started(tmp_path, *BUSY, "--workers", "2") as node:
        node.until_up()
        until(lambda: len(node.children()) == 3, "a producer and two workers")
        for victim in node.children():
            before = node.height()
            os.kill(victim, signal.SIGKILL)
            until(lambda v=victim: v not in node.children(), "its end")  # type: ignore[misc]
            until(lambda: len(node.children()) == 3, "another in its place")
            until(lambda b=before: _height(node) > b, "another block")  # type: ignore[misc]


def test_processes_return_freed_memory_as_their_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "99999")
    with started(tmp_path, "--workers", "2") as node:
        node.until_up()
        for child in node.children():
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            assert b"MALLOC_MMAP_THRESHOLD_=131072" in variables
            assert [each for each in variables if each.startswith(b"MALLOC_TRIM")] == [
                b"MALLOC_TRIM_THRESHOLD_=99999"
            ]


def _height(node: Node) -> int:
    try:
        return node.height()
    except OSError:
        # The request may have been at the worker that was killed.
        return 0


def test_a_process_ends_with_a_parent_that_has_not_read_its_word(tmp_path: Path) -> None:
    own, theirs = socket.socketpair()
    settings = {"database": str(tmp_path / "chain.db"), "produce": False}
    spec = WorkerSpec(settings=settings, folder=str(tmp_path))
    counters = counter_file(1)
    with launch.start(spec.encode(), [theirs.fileno(), counters], has_app=False) as process:
        theirs.close()
        os.close(counters)
        try:
            # The process reports that it is ready, which its parent never reads.
            assert select.select([own], [], [], PATIENCE)[0]
            own.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_the_others_end_with_their_parent(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2") as node:
        node.until_up()
        until(lambda: len(node.children()) == 3, "all processes")
        children = node.children()
        node.end(signal.SIGKILL)
        until(lambda: not any(_is_there(pid) for pid in children), "the end of all")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_shutdown_sends_close_1001_and_answers_waiting_calls(tmp_path: Path) -> None:
    slow = ("--block-interval", "1000", "--empty-blocks")
    with started(tmp_path, *slow) as node, ExitStack() as stack:
        node.until_up()
        until(lambda: _height(node) > 0, "the first block")
        websockets = [
            stack.enter_context(closing(WebSocketClient(node.url(), timeout=PATIENCE)))
            for _ in range(20)
        ]
        received: list[int] = []

        def wait() -> None:
            received.append(get(node.url(), '/broadcast_tx_commit?tx="a=1"').status)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: node.get("/num_unconfirmed_txs")["total"] == "1", "the transaction")

        assert node.end() == 0
        waiting.join(PATIENCE)

        assert received
        for client in websockets:
            client.read()
        assert [client.closed for client in websockets] == [1001] * 20


def test_a_slow_client_is_cut_off_and_others_are_not(tmp_path: Path) -> None:
    impatient = client_seconds(0.5, idle=1)
    with started(tmp_path, limits=impatient) as node, ExitStack() as stack:
        node.until_up()
        slow = {
            "headers": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow",
            "body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
            "nothing": b"",
        }
        socks = {name: stack.enter_context(connect(node.url())) for name in slow}
        for name, sock in socks.items():
            sock.sendall(slow[name])
        # On a busy machine, another connection may be too slow as well.
        node.until_up()
        for name, sock in socks.items():
            sock.settimeout(PATIENCE)
            left = b"".join(iter(lambda s=sock: _received(s), b""))  # type: ignore[misc]
            assert b"200 OK" not in left, name
        node.until_up()


def _received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1000)
    except ConnectionResetError:
        return b""


def test_the_longest_idle_connection_is_evicted(tmp_path: Path) -> None:
    with started(tmp_path, "--max-open-connections", "5") as node, ExitStack() as stack:
        node.until_up()
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        socks = []
        for _ in range(8):
            sock = stack.enter_context(connect(node.url()))
            sock.sendall(request)
            _read_answer(sock)
            socks.append(sock)
        assert [_received(sock) for sock in socks[:3]] == [b""] * 3
        socks[-1].sendall(request)
        _read_answer(socks[-1])


def _read_answer(sock: socket.socket) -> None:
    answer = b""
    while not answer.endswith(b"}"):
        answer += sock.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_hosts_app_is_served_at_the_addresses(tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, url_prefix='/node', database={str(tmp_path / 'chain.db')!r},"
        " rpc_laddr='tcp://127.0.0.1:0')\n"
        "@app.get('/own')\n"
        "@app.get('/node/health')\n"
        "@app.get('/node/num_unconfirmed_txs')\n"
        "def own():\n"
        "    return 'the host'\n"
    )
    app = str(tmp_path / "hosts.py")
    command = [sys.executable, "-m", "flask", "--app", app, "noderpc", "start"]
    with started(tmp_path, command=command) as node:
        url = node.url()

        def answers() -> bool:
            try:
                return get(url, "/own").text == "the host"
            except OSError:
                return False

        until(answers, "the host's page")
        assert (
            f"curl {url.replace('127.0.0.1', 'localhost')}/node/status" in node.log.read_text()
        )
        assert get(url, "/node/status").result
        for path in ("/node/health", "/node/num_unconfirmed_txs"):
            assert get(url, path).text == "the host"
        assert node.log.read_text().count("is served by the app's own 'own'") == 1
