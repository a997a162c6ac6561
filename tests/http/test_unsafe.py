"""Tests that routes which change the node only exist with NODERPC_RPC_UNSAFE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.testing.node import app_for

from . import chain
from .chain import PEER, PeeredBackend

NAMES = [route.name for route in UNSAFE_ROUTES]
ID = "22" * 20


@pytest.fixture
def comet(backend: PeeredBackend) -> FlaskClient:
    return app_for(backend, dialect="comet-0.38", rpc_unsafe=True).test_client()


def posted(client: FlaskClient, method: str, params: Any = None) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/", json=call).get_json()


@pytest.mark.parametrize("name", NAMES)
def test_without_the_setting_there_is_no_such_route(backend: PeeredBackend, name: str) -> None:
    client = app_for(backend).test_client()

    assert client.get(f"/{name}").status_code == 404
    error = posted(client, name)["error"]
    assert (error["code"], error["data"]) == (-32601, "NODERPC_RPC_UNSAFE enables it")
    assert f">{name}<" not in client.get("/").text


@pytest.mark.parametrize("name", NAMES)
def test_with_the_setting_it_is_on_the_page(
    backend: PeeredBackend, comet: FlaskClient, name: str
) -> None:
    assert f">{name}<" in app_for(backend, rpc_unsafe=True).test_client().get("/").text
    # CometBFT's own page only has addresses.
    assert f"/{name}?" in comet.get("/").text


@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_dial_peers_reaches_the_backend(backend: PeeredBackend, dialect: str) -> None:
    client = app_for(backend, dialect=dialect, rpc_unsafe=True).test_client()

    seeds = client.get(f'/dial_seeds?seeds=["tcp://{PEER}"]').get_json()
    assert seeds["result"] == {"log": "Dialing seeds in progress. See /net_info for details"}
    assert list(backend.network.dialed) == [f"tcp://{PEER}"]

    peers = posted(client, "dial_peers", [[PEER], True, False, True])
    assert peers["result"] == {"log": "Dialing peers in progress. See /net_info for details"}
    assert list(backend.network.dialed) == [PEER, True, False, True]


def test_dial_peers_without_network_is_refused(tmp_path: Path) -> None:
    alone = EmbeddedChain(tmp_path / "chain.db", produce=False)
    client = app_for(alone, dialect="comet-0.38", rpc_unsafe=True).test_client()

    for name, param in (("dial_seeds", "seeds"), ("dial_peers", "peers")):
        reply = client.get(f'/{name}?{param}=["{PEER}"]')
        assert reply.status_code == 500
        assert "this node has no P2P network" in reply.get_json()["error"]["data"]
    alone.close()


def wrong(address: str, reason: str) -> tuple[str, str]:
    return address, f"invalid address ({address.rsplit('@', maxsplit=1)[-1]}): {reason}"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("a", "address (a) does not contain ID"),
        ("tcp://a", "address (tcp://a) does not contain ID"),
        ("a@b@c", "address (a@b@c) does not contain ID"),
        ("@h:1", "invalid address (@h:1): no ID"),
        ("a@h:1", "invalid address (a@h:1): encoding/hex: odd length hex string"),
        ("xy@h:1", "invalid address (xy@h:1): encoding/hex: invalid byte: U+0078 'x'"),
        ("aa@h:1", "invalid address (aa@h:1): invalid hex length - got 1, expected 20"),
        wrong(f"{ID}@h", "address h: missing port in address"),
        wrong(f"{ID}@::1", "address ::1: too many colons in address"),
        wrong(f"{ID}@:1", "host is empty"),
        wrong(f"{ID}@", "missing port in address"),
        wrong(f"{ID}@[::1]", "address [::1]: missing port in address"),
        wrong(f"{ID}@[::1", "address [::1: missing ']' in address"),
        wrong(f"{ID}@[::1]x:1", "address [::1]x:1: missing port in address"),
        wrong(f"{ID}@[::1]:1:2", "address [::1]:1:2: too many colons in address"),
        wrong(f"{ID}@[[h]:1", "address [[h]:1: unexpected '[' in address"),
        wrong(f"{ID}@h]:1", "address h]:1: unexpected ']' in address"),
        (
            f"{ID}@1.2.3.4:x",
            'invalid address (x): strconv.ParseUint: parsing "x": invalid syntax',
        ),
        (
            f"{ID}@1.2.3.4:65536",
            'invalid address (65536): strconv.ParseUint: parsing "65536": value out of range',
        ),
    ],
)
def test_invalid_peer_addresses_get_cometbfts_errors(
    comet: FlaskClient, address: str, text: str
) -> None:
    reply = posted(comet, "dial_seeds", {"seeds": [address]})

    assert reply["error"]["data"] == text


@pytest.mark.parametrize("address", [f"{ID}@[::1]:26656", f"{ID}@node.example:0026656"])
def test_an_address_may_be_a_name_or_of_ipv6(comet: FlaskClient, address: str) -> None:
    assert "result" in posted(comet, "dial_peers", {"peers": [address]})


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "no peers provided"),
        ({"peers": []}, "no peers provided"),
        ({"peers": ["xy@h:1", "a"]}, "address (a) does not contain ID"),
        (
            {"peers": [f"{ID}@h:1", "aa@h:1"], "private": True},
            "wrong ID #1: invalid hex length",
        ),
        ({"peers": ["@h"], "unconditional": True}, "wrong ID #0: no ID"),
        ({"peers": ["@h"], "unconditional": True, "persistent": True}, "invalid address (@h):"),
    ],
)
def test_peers_are_looked_at_in_cometbft_s_order(
    comet: FlaskClient, params: Any, text: str
) -> None:
    assert posted(comet, "dial_peers", params)["error"]["data"].startswith(text)


@pytest.mark.parametrize("target", ['/dial_seeds?seeds="a"', "/dial_seeds?seeds=[1]"])
def test_the_document_wants_a_list_of_texts(backend: PeeredBackend, target: str) -> None:
    client = app_for(backend, rpc_unsafe=True).test_client()

    reply = client.get(target)

    assert reply.status_code == 400
    assert reply.get_json()["error"]["data"].startswith(
        "seeds: expected a list of texts, such as"
    )


def test_unsafe_flush_mempool_empties_mempool_and_cache(tmp_path: Path) -> None:
    backend = chain.backend(tmp_path)
    client = app_for(backend, rpc_unsafe=True).test_client()
    backend.mempool.submit(b"flushed=1")
    again = client.get('/broadcast_tx_sync?tx="flushed=1"').get_json()
    assert "already exists in cache" in again["error"]["data"]

    assert client.get("/unsafe_flush_mempool").get_json()["result"] == {}

    assert backend.mempool.pending_count().total == 0
    assert "result" in client.get('/broadcast_tx_sync?tx="flushed=1"').get_json()
    backend.close()


def test_a_page_of_another_site_may_not_flush(comet: FlaskClient) -> None:
    reply = comet.get("/unsafe_flush_mempool", headers={"Origin": "https://evil.example"})

    assert reply.status_code == 403
    assert json.loads(reply.data)["error"]["code"] == -32001
