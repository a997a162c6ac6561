"""Tests of idle and slow connections at ``noderpc start``."""

from __future__ import annotations

import resource
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from ..faults.processes import check_duration
from ..helpers.http import get, request
from ..helpers.raw_http import CLOSING, GET, UNFINISHED, answers, connect, send
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from ..server.certificate import make_certificate
from ..server.node_process import COMMAND, Node, client_seconds, started

# Seconds that a cheap request may take while other clients attack; it takes 2 ms without them.
SOON_S = 1.0
MOST = ("--max-open-connections", "900")
# Longer than a busy machine takes to open all of these connections.
PATIENT, IMPATIENT = client_seconds(600), client_seconds(2)


@contextmanager
def _up(folder: Path, limits: Mapping[str, float]) -> Iterator[Node]:
    with started(folder, *MOST, limits=limits) as found:
        found.until_up()
        yield found
        assert "Traceback" not in found.log.read_text()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with _up(tmp_path_factory.mktemp("patient"), PATIENT) as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose clients have two seconds for each step."""
    with _up(tmp_path_factory.mktemp("impatient"), IMPATIENT) as found:
        yield found


def is_served(node: Node, times: int = 20) -> None:
    """Request /health several times, and check that each response is quick."""
    for _ in range(times):
        began = time.monotonic()
        assert node.get("/health") == {}
        check_duration(time.monotonic() - began, SOON_S)


def open_files(node: Node) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in node.children())


def test_a_thousand_idle_connections_delay_no_request_and_leak_nothing(node: Node) -> None:
    before = open_files(node)
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connect(node.url()))
        until(lambda: open_files(node) >= before + 850, "their connections")
        is_served(node)
        # The oldest connections made room.
        assert open_files(node) <= before + 910
    until(lambda: open_files(node) <= before + 5, "their end")


@pytest.mark.parametrize("request_", UNFINISHED.values(), ids=UNFINISHED)
def test_unfinished_requests_time_out_under_load(impatient: Node, request_: bytes) -> None:
    before = open_files(impatient)
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(send(impatient, request_))
        is_served(impatient)
        until(lambda: open_files(impatient) <= before + 5, "their end")


def test_bytes_that_trickle_in_gain_no_time(impatient: Node) -> None:
    with connect(impatient.url()) as sock:
        sock.settimeout(0.1)
        with suppress(ConnectionError):
            # Sending at this pace takes more than half a minute, and the server allows two
            # seconds.
            for byte in GET[:-4] * 10:
                sock.send(bytes((byte,)))
                with suppress(TimeoutError):
                    if not sock.recv(100):
                        return
            pytest.fail("it is still served")


def test_many_at_once_are_all_answered(node: Node) -> None:
    with ThreadPoolExecutor(200) as threads:
        found = list(threads.map(lambda _: answers(node, CLOSING), range(800)))
    assert found == [[200]] * 800


def test_a_hundred_waiting_calls_delay_no_other_request(tmp_path: Path) -> None:
    slow = ("--empty-blocks", "--block-interval", "1000", "--max-waiting-calls", "100")
    with started(tmp_path, *slow) as node:
        node.until_up()
        until(lambda: node.height() > 0, "the first block")
        codes: list[int] = []

        def wait(number: int) -> None:
            path = f'/broadcast_tx_commit?tx="a{number}=1"'
            codes.append(get(node.url(), path).status)

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        until(lambda: node.get("/num_unconfirmed_txs")["total"] == "100", "all of them")
        is_served(node)
        node.end()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(codes) == 100
        assert min(codes) >= 400


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Node, Callable[[], bool]]]:
    """A node with TLS, and a function that returns whether it serves."""
    certificate, key = make_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    flags = ("--rpc.tls_cert_file", certificate, "--rpc.tls_key_file", key)
    with started(tmp_path, *flags, *MOST, limits=IMPATIENT) as node:

        def up() -> bool:
            with suppress(OSError):
                return request(node.url() + "/health", tls=trusting).status == 200
            return False

        until(up, "an answer over TLS")
        yield node, up
        assert up()
        assert "Traceback" not in node.log.read_text()


@pytest.mark.parametrize(
    "garbage", [GET, bytes(range(256)), b"\x16\x03\x01\xff\xff" + bytes(99)]
)
def test_a_client_without_tls_is_disconnected(
    secure: tuple[Node, Callable[[], bool]], garbage: bytes
) -> None:
    # A plain HTTP request to a TLS port gets a response that names TLS.
    assert answers(secure[0], garbage) == ([400] if garbage is GET else [])


def test_an_unfinished_tls_handshake_times_out(
    secure: tuple[Node, Callable[[], bool]],
) -> None:
    node, up = secure
    before = open_files(node)
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connect(node.url()))
        until(up, "an answer between them")
        until(lambda: open_files(node) <= before + 5, "their end")


def test_clients_over_tls_that_leave_before_their_responses_are_not_logged(
    secure: tuple[Node, Callable[[], bool]],
) -> None:
    # The fixture checks that the log has no traceback.
    node, _ = secure
    before = open_files(node)
    context = ssl.create_default_context(cafile=str(node.log.parent / "certificate.pem"))
    for _ in range(20):
        with context.wrap_socket(connect(node.url()), server_hostname="127.0.0.1") as sock:
            sock.sendall(GET.replace(b"/health", b"/openapi.json") * 20)
    until(lambda: open_files(node) <= before, "their end")


def test_tls_at_a_plain_port_is_answered_once(node: Node) -> None:
    context = ssl.create_default_context()
    with connect(node.url()) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock, server_hostname="localhost")
    assert node.get("/health") == {}


def test_many_websockets_leak_no_files(node: Node) -> None:
    before = open_files(node)
    for _ in range(3):
        with ExitStack() as stack:
            for _ in range(90):
                client = stack.enter_context(
                    closing(WebSocketClient(node.url(), timeout=PATIENCE))
                )
                client.asked("subscribe", {"query": "tm.event='NewBlock'"})
        until(lambda: open_files(node) <= before + 5, "their end")


def test_non_reading_clients_are_disconnected(tmp_path: Path) -> None:
    with started(tmp_path, limits=client_seconds(1)) as node, ExitStack() as stack:
        node.until_up()
        before = open_files(node)
        for _ in range(5):
            sock = stack.enter_context(connect(node.url()))
            sock.setblocking(False)
            with suppress(OSError):
                for _ in range(100):
                    sock.send(GET.replace(b"/health", b"/openapi.json") * 10)
        is_served(node)
        until(lambda: open_files(node) <= before + 5, "their end")
        assert "Traceback" not in node.log.read_text()


def test_a_connection_beyond_the_limit_gets_503(tmp_path: Path) -> None:
    few = ("--max-open-connections", "5")
    with started(tmp_path, *few, limits=PATIENT) as node, ExitStack() as stack:
        node.until_up()

        def is_refused() -> bool:
            # Connections that have been slow for a second make room; on a busy machine a single
            # request may come too early, so try five times.
            for _ in range(5):
                stack.enter_context(send(node, GET[:-10]))
            return answers(node, CLOSING) == [503]

        until(is_refused, "a refusal")
        until(lambda: answers(node, CLOSING) == [200], "an answer")


def test_a_process_with_few_files_takes_as_many_connections_as_fit(tmp_path: Path) -> None:
    start = [*COMMAND, "--home", str(tmp_path), "--rpc.laddr", "tcp://127.0.0.1:0"]
    command = ["sh", "-c", 'ulimit -n 120; exec "$@"', "sh", *start]
    with started(tmp_path, *MOST, command=command, limits=PATIENT) as node:
        node.until_up()
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(connect(node.url()))
            is_served(node)
        message = node.log.read_text()
        assert (
            "11 connections at each address instead of 900, 11 websockets instead of" in message
        )
        assert "raise ulimit -n or lower NODERPC_MAX_OPEN_CONNECTIONS" in message
        assert "Traceback" not in message


def test_a_low_limit_of_files_is_raised_as_far_as_it_goes(tmp_path: Path) -> None:
    start = [*COMMAND, "--home", str(tmp_path), "--rpc.laddr", "tcp://127.0.0.1:0"]
    command = ["sh", "-c", 'ulimit -S -n 120; exec "$@"', "sh", *start]
    with started(tmp_path, *MOST, command=command, limits=PATIENT) as node:
        node.until_up()
        (pid,) = node.children()
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert soft == hard
