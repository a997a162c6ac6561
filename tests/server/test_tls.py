"""Tests of TLS of ``noderpc start``: the node RPC and the EVM layer, each with its own
certificate."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ..helpers.http import call, request
from ..helpers.raw_http import connect
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .certificate import make_certificate
from .node_process import Node, refusal, started

Pair = tuple[str, str]
ADDRESS = ("--rpc.laddr", "tcp://127.0.0.1:0")
EVM = ("EVM JSON-RPC", "EVM websocket")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """Certificate and key of each layer."""
    return {
        layer: make_certificate(tmp_path_factory.mktemp(layer)) for layer in ("node", "evm")
    }


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, certificates: dict[str, Pair]
) -> Iterator[Node]:
    own, evm = certificates["node"], certificates["evm"]
    flags = (
        *("--rpc.tls_cert_file", own[0], "--rpc.tls_key_file", own[1]),
        *("--tls.certificate-path", evm[0], "--tls.key-path", evm[1], "--json-rpc.enable"),
    )
    with started(tmp_path_factory.mktemp("home"), *flags) as found:
        yield found


@pytest.fixture(scope="module")
def own(certificates: dict[str, Pair]) -> ssl.SSLContext:
    """A TLS context that trusts the node RPC's certificate."""
    return ssl.create_default_context(cafile=certificates["node"][0])


@pytest.fixture(scope="module")
def evm(certificates: dict[str, Pair]) -> ssl.SSLContext:
    """A TLS context that trusts the EVM layer's certificate."""
    return ssl.create_default_context(cafile=certificates["evm"][0])


def test_all_addresses_are_shown_with_their_schemes(node: Node) -> None:
    shown = [node.url(title).partition(":")[0] for title in ("node RPC", *EVM)]
    assert shown == ["https", "https", "wss"]


def test_the_node_rpc_is_reached(node: Node, own: ssl.SSLContext) -> None:
    url = node.url()
    assert request(f"{url}/health", tls=own).result == {}
    with closing(WebSocketClient(url, tls=own)) as client:
        assert client.asked("health")["result"] == {}


def test_the_evm_layer_is_reached(node: Node, evm: ssl.SSLContext) -> None:
    assert call(node.url("EVM JSON-RPC"), "eth_chainId", tls=evm).result == hex(9000)
    with closing(WebSocketClient(node.url("EVM websocket"), path="/", tls=evm)) as client:
        assert client.asked("eth_chainId", [])["result"] == hex(9000)


def test_each_listener_uses_its_certificate(
    node: Node, own: ssl.SSLContext, evm: ssl.SSLContext
) -> None:
    for title, wrong in (("node RPC", evm), *((title, own) for title in EVM)):
        url = node.url(title).replace("wss", "https", 1)
        with pytest.raises(ssl.SSLCertVerificationError, match="CERTIFICATE_VERIFY_FAILED"):
            request(url, tls=wrong)


@pytest.mark.parametrize(
    "sent", [b"GET /health HTTP/1.0\r\n\r\n", b"POST / HTTP/1.1\r\n", b"p"]
)
def test_plain_http_on_a_tls_port_is_told_and_affects_no_other(
    node: Node, own: ssl.SSLContext, sent: bytes
) -> None:
    url = node.url()
    with connect(url) as sock:
        sock.sendall(sent)
        answer = sock.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    head, _, text = answer.partition(b"\r\n\r\n")
    assert text == b"this port speaks TLS; use https://\n"
    assert b"Content-Length: %d\r\n" % len(text) in head + b"\r\n"
    with connect(url) as sock:
        sock.sendall(b"\0\0\0")
        with suppress(ConnectionResetError):
            assert not sock.recv(100).startswith(b"HTTP/")
    assert request(f"{url}/health", tls=own).result == {}


def test_subscribers_over_tls_get_events_and_close_1001(
    tmp_path: Path, certificates: dict[str, Pair]
) -> None:
    certificate, key = certificates["node"]
    context = ssl.create_default_context(cafile=certificate)
    flags = ("--rpc.tls_cert_file", certificate, "--rpc.tls_key_file", key)
    with started(tmp_path, *flags, "--empty-blocks", "--block-interval", "0.05") as node:
        client = WebSocketClient(node.url(), tls=context, timeout=PATIENCE)
        client.call("subscribe", {"query": "tm.event='NewBlock'"})
        # The messages are larger than one TLS record, in both directions.
        for _ in range(20):
            client.call("health", {}, request_id="x" * 100_000)
        received = [client.json() for _ in range(40)]
        assert sum("data" in message["result"] for message in received) == 19
        assert node.end() == 0
        while client.read() is not None:
            pass
        assert client.closed == 1001
        client.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other", "expected a TLS certificate in PEM and its key: key values mismatch"),
        ("secret", "expected a TLS key without a passphrase"),
        ("certificate", "expected a TLS certificate in PEM and its key: no certificate or no"),
        ("none", "for TLS: No such file or directory"),
    ],
)
def test_an_invalid_certificate_or_key_is_a_one_line_error(
    tmp_path: Path, certificates: dict[str, Pair], name: str, words: str
) -> None:
    (certificate, key), secret = certificates["node"], str(tmp_path / "secret.pem")
    if name == "secret":
        change = ["openssl", "rsa", "-aes128", "-passout", "pass:word", "-in", key]
        subprocess.run([*change, "-out", secret], check=True, capture_output=True)
    other = certificates["evm"][1]
    wrong = {"other": other, "secret": secret, "certificate": certificate, "none": "/none.pem"}
    flags = ("--tls.certificate-path", certificate, "--tls.key-path", wrong[name])
    said = refusal("--home", str(tmp_path), "--json-rpc.enable", *ADDRESS, *flags)
    assert words in said
    assert "\n" not in said


def test_a_call_sent_with_the_handshake_is_answered(node: Node, evm: ssl.SSLContext) -> None:
    early = ['{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}']
    url = node.url("EVM websocket")
    with closing(WebSocketClient(url, "/", PATIENCE, tls=evm, early=early)) as client:
        assert client.json()["id"] == 7
