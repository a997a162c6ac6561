"""Tests that a page of another site may read and subscribe, and needs permission to send
transactions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.jsonrpc.context import Permissions
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules.origin import OriginPolicy

from ..helpers.websocket import WebSocketClient

EVIL = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
WALLET = {"Origin": "https://wallet.example", "Sec-Fetch-Site": "cross-site"}

FOREIGN = (
    EVIL,
    # Headers for the address of an image, or for a link.
    {"Sec-Fetch-Site": "cross-site"},
    # Browsers send only this to addresses that are neither https nor local.
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Referer": "http://evil.example/page"},
    {"Origin": "http://[broken"},
    # An origin is compared with its whole host and its port.
    {"Origin": "http://localhost:26657.evil.example"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "http://localhost"},
    {"Origin": "http://localhost:26657/"},
    {"Origin": "http://user@localhost:26657"},
    {"Referer": "http://localhost:26657.evil.example/localhost:26657"},
    {"Referer": "http://localhost:3000/page"},
    {"Origin": "http://localhost:26657", "Sec-Fetch-Site": "cross-site"},
)
OWN: tuple[dict[str, str], ...] = (
    {},
    {"Origin": "http://localhost:26657"},
    {"Origin": "https://LOCALHOST:26657"},
    {"Referer": "http://localhost:26657/explorer?to=http://evil.example"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
)
# The browser says same-site, for instance for another port.
BESIDE: tuple[dict[str, str], ...] = (
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "same-site", "Referer": "http://localhost:26657/"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
)


def fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Header fields by their CGI names."""
    return {f"HTTP_{name.upper().replace('-', '_')}": text for name, text in headers.items()}


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("host", ["localhost:26657", "", "[::1"])
def test_cross_site_requests_may_only_read(headers: dict[str, str], host: str) -> None:
    assert OriginPolicy().permissions(fields(headers), host) == Permissions(True, False)


@pytest.mark.parametrize("headers", OWN)
def test_same_site_requests_may_write(headers: dict[str, str]) -> None:
    narrow = OriginPolicy(readers=(), writers=())
    assert narrow.permissions(fields(headers), "localhost:26657") == Permissions(True, True)


@pytest.mark.parametrize("headers", BESIDE)
def test_pages_beside_this_site_read_and_do_not_write(headers: dict[str, str]) -> None:
    narrow = OriginPolicy(readers=(), writers=())
    assert narrow.permissions(fields(headers), "localhost:26657") == Permissions(True, False)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://node.example", "node.example"),
        ("https://node.example", "node.example:443"),
        ("http://node.example:80", "node.example"),
        ("http://[::1]:26657", "[::1]:26657"),
        ("http://[::1]", "[::1]"),
    ],
)
def test_the_port_of_a_scheme_need_not_be_named(origin: str, host: str) -> None:
    permissions = OriginPolicy(readers=()).permissions(fields({"Origin": origin}), host)
    assert permissions == Permissions(True, True)


DEVELOPMENT = (
    "http://localhost:3000",
    "https://localhost",
    "http://127.0.0.1:5173",
    "http://[::1]:8080",
    "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
    "moz-extension://0a1b2c3d-0000-4000-8000-000000000000",
)
STRANGERS = (
    "https://evil.example",
    "http://localhost.evil.example:3000",
    "http://localhost:3000.evil.example",
    "http://192.0.2.1:3000",
    "https://evil.example/chrome-extension://",
    "null",
    "",
)


@pytest.mark.parametrize("relation", [{}, {"Sec-Fetch-Site": "cross-site"}])
def test_in_development_pages_of_this_machine_write_and_sign(relation: dict[str, str]) -> None:
    def permissions(origin: str, peer: str = "127.0.0.1", dev: bool = True) -> Permissions:
        headers = fields({"Origin": origin, **relation})
        return OriginPolicy(dev=dev).permissions(headers, "127.0.0.1:8545", peer)

    for origin in DEVELOPMENT:
        assert permissions(origin) == Permissions(True, True, True), origin
        assert permissions(origin, peer="192.0.2.1") == Permissions(True, False), origin
        assert permissions(origin, dev=False) == Permissions(True, False), origin
    for origin in STRANGERS:
        assert permissions(origin) == Permissions(True, False), origin


def test_origins_may_be_allowed_and_readers_narrowed() -> None:
    origins = OriginPolicy(
        readers=("https://viewer.example",), writers=("https://wallet.example",)
    )

    def permissions(origin: str) -> Permissions:
        return origins.permissions(fields({**EVIL, "Origin": origin}), "localhost")

    assert permissions("https://wallet.example") == Permissions(True, True)
    assert permissions("https://viewer.example") == Permissions(True, False)
    assert permissions("https://evil.example") == Permissions(False, False)
    assert OriginPolicy(writers=("*",)).permissions(fields(EVIL), "localhost") == Permissions(
        True, True
    )


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost:26657", "127.0.0.1", "[::1]:5000"])
def test_programs_of_this_machine_may_sign(peer: str, host: str) -> None:
    assert OriginPolicy().permissions(fields({}), host, peer).may_sign


@pytest.mark.parametrize(
    ("headers", "host", "peer"),
    [
        ({}, "localhost", "192.0.2.1"),
        ({}, "localhost", "fe80::1"),
        # A Unix socket has no address.
        ({}, "localhost", ""),
        ({}, "localhost", "unix:"),
        # Headers that a proxy on this machine adds.
        ({"X-Forwarded-For": "127.0.0.1"}, "localhost", "127.0.0.1"),
        ({"X-Real-IP": "192.0.2.1"}, "localhost", "127.0.0.1"),
        ({"Forwarded": "for=192.0.2.1"}, "localhost", "127.0.0.1"),
        ({"Via": "1.1 proxy"}, "localhost", "127.0.0.1"),
        ({"X-Forwarded-Host": "node.example"}, "localhost", "127.0.0.1"),
        # A foreign name that resolves to this machine.
        ({}, "evil.example", "127.0.0.1"),
        ({"Sec-Fetch-Site": "same-origin"}, "evil.example:26657", "127.0.0.1"),
        ({}, "", "127.0.0.1"),
        (EVIL, "localhost", "127.0.0.1"),
    ],
)
def test_cross_site_requests_may_not_sign(
    headers: dict[str, str], host: str, peer: str
) -> None:
    assert not OriginPolicy().permissions(fields(headers), host, peer).may_sign


def test_pages_that_may_write_may_sign_on_this_machine() -> None:
    origins = OriginPolicy(writers=("https://wallet.example",))
    assert origins.permissions(fields(WALLET), "localhost", "127.0.0.1").may_sign
    assert not origins.permissions(fields(WALLET), "localhost", "192.0.2.1").may_sign


@given(
    st.dictionaries(
        st.sampled_from(["Origin", "Referer"]),
        st.text(st.characters(exclude_characters="\r\n")),
    ),
    st.text(),
    st.text(),
)
def test_arbitrary_origin_headers_never_cause_a_500(
    headers: dict[str, str], host: str, peer: str
) -> None:
    OriginPolicy().permissions(fields(headers), host, peer)


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Any:
    with run_node(**getattr(request, "param", {})) as running:
        yield running


BROADCASTS = ("broadcast_tx_sync", "broadcast_tx_async", "broadcast_tx_commit")


@pytest.mark.parametrize("method", BROADCASTS)
@pytest.mark.parametrize("headers", FOREIGN[:2])
def test_another_site_sends_no_transactions(
    node: Node, method: str, headers: dict[str, str]
) -> None:
    client = app_for(node.chain).test_client()
    got = client.get(f'/{method}?tx="a=1"', headers=headers)
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"tx": "YT0x"}}
    # The whole batch is checked, and calls that only read are served.
    batch = [{"jsonrpc": "2.0", "id": 2, "method": "health"}, call]
    # A page can send text/plain without a preflight request.
    posted = client.post("/", data=json.dumps(batch), headers=headers)

    assert got.status_code == 403
    assert "NODERPC_WRITE_ORIGINS" in got.get_json()["error"]["data"]
    assert posted.get_json()[0]["result"] == {}
    assert "NODERPC_WRITE_ORIGINS" in posted.get_json()[1]["error"]["data"]
    assert node.chain.mempool.pending_count().total == 0


def test_another_site_reads_and_subscribes_over_the_websocket(node: Node) -> None:
    client = WebSocketClient(node.url, headers=EVIL)
    try:
        assert client.asked("subscribe", {"query": "tm.event='NewBlock'"})["result"] == {}
        assert client.asked("health")["result"] == {}
        refused = client.asked("broadcast_tx_sync", {"tx": "YT0x"})
        assert "NODERPC_WRITE_ORIGINS" in refused["error"]["data"]
    finally:
        client.close()
    assert node.chain.mempool.pending_count().total == 0


@pytest.mark.parametrize(
    "node", [{"write_origins": "https://wallet.example", "read_origins": ()}], indirect=True
)
def test_settings_allow_an_origin_and_shut_out_the_others(node: Node) -> None:
    app = app_for(node.chain, write_origins="https://wallet.example", read_origins=())
    client = app.test_client()

    assert client.get('/broadcast_tx_sync?tx="a=1"', headers=WALLET).status_code == 200
    assert client.get("/status", headers=EVIL).status_code == 403
    assert client.post("/", data="{}", headers=EVIL).status_code == 403
    assert client.get("/status").status_code == 200
    allowed = WebSocketClient(node.url, headers=WALLET)
    assert allowed.asked("broadcast_tx_sync", {"tx": "Yj0x"})["result"]["code"] == "0"
    allowed.close()
    with pytest.raises(ConnectionRefusedError, match="403"):
        WebSocketClient(node.url, headers=EVIL)
