"""Tests of responses that depend on settings or time: caching, genesis, broken stores."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from flask_noderpc import ConfigurationError, MemoryChain, NodeRPC, get_backend, noderpc_bp
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.capabilities import Network
from flask_noderpc.cometbft import info
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.chains import ChainMaker

from .conftest import MakeApp

CHAIN = make_chain(6)
BLOCK_HASH = CHAIN.blocks[1].block.last_commit.block_id.hash.hex()
TX_HASH = tx_hash(CHAIN.blocks[1].block.txs[0]).hex()


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    host = make_app()
    NodeRPC(
        host, backend=ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))
    )
    return host


@pytest.mark.parametrize(
    "path",
    [
        "/block?height=6",
        "/header?height=1",
        "/block_results?height=2",
        "/commit?height=5",
        "/validators?height=3",
        "/consensus_params?height=3",
        f"/block_by_hash?hash=0x{BLOCK_HASH}",
        f"/header_by_hash?hash=0x{BLOCK_HASH}",
        "/genesis",
        "/genesis_chunked",
    ],
)
def test_immutable_answers_are_cacheable_for_a_day(app: Flask, path: str) -> None:
    answer = app.test_client().get(path)

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "public, max-age=86400"


@pytest.mark.parametrize(
    "path",
    [
        "/health",
        "/status",
        "/net_info",
        "/block",
        "/block?height=",
        "/block?height=null",
        "/header",
        "/block_results",
        "/commit",
        # The next block may contain another commit.
        "/commit?height=6",
        "/validators",
        "/validators?page=1",
        "/consensus_params",
        "/blockchain",
        "/blockchain?minHeight=1&maxHeight=2",
        "/unconfirmed_txs",
        "/num_unconfirmed_txs",
        "/block?height=99",
        "/block?height=x",
        "/tx?hash=0x00",
        # The transaction may be committed again, at another height.
        f"/tx?hash=0x{TX_HASH}",
        "/",
    ],
)
def test_mutable_answers_are_not_cacheable(app: Flask, path: str) -> None:
    assert "Cache-Control" not in app.test_client().get(path).headers


def test_posts_are_not_cacheable(app: Flask) -> None:
    answer = app.test_client().post("/", json={"id": 1, "method": "genesis"})

    assert "Cache-Control" not in answer.headers


def test_a_genesis_over_one_chunk_is_served_in_pieces_that_join(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = ChainMaker(app_state=json.dumps({"accounts": ["x" * 50] * 100}).encode())
    backend = ChainBackend(MemoryChain(maker.genesis, state=maker.state))
    large, whole = make_app(), make_app()
    monkeypatch.setattr(info, "GENESIS_CHUNK_BYTES", 1000)
    NodeRPC(large, backend=backend)
    NodeRPC(whole, backend=backend)
    client = large.test_client()

    refused = client.get("/genesis")
    first = client.get("/genesis_chunked").get_json()["result"]
    pieces = [
        client.get(f"/genesis_chunked?chunk={index}").get_json()["result"]
        for index in range(first["total"])
    ]

    assert refused.status_code == 400
    assert refused.get_json()["error"] == {
        "code": -32603,
        "message": "Internal error",
        "data": "genesis response is large, please use the genesis_chunked API instead",
    }
    assert "Cache-Control" not in refused.headers
    assert first["total"] > 5
    assert [piece["chunk"] for piece in pieces] == list(range(first["total"]))
    joined = b"".join(b64decode(piece["data"]) for piece in pieces)
    assert {len(b64decode(piece["data"])) for piece in pieces[:-1]} == {1000}
    monkeypatch.undo()
    full = whole.test_client().get("/genesis").get_json()["result"]["genesis"]
    assert json.loads(joined) == full
    beyond = client.get(f"/genesis_chunked?chunk={first['total']}")
    assert (beyond.status_code, "Cache-Control" in beyond.headers) == (400, False)


def test_evidence_names_the_validator_as_it_was(app: Flask) -> None:
    height = next(item.block.header.height for item in CHAIN.blocks if item.block.evidence)
    accused = CHAIN.genesis.validators[0]

    (piece,) = (
        app.test_client()
        .get(f"/block?height={height}")
        .get_json()["result"]["block"]["evidence"]
    )

    assert piece["type"] == "engine/DuplicateVoteEvidence"
    assert piece["validator"]["address"] == accused.address.hex().upper()
    assert piece["validator"]["pub_key"]["type"] == "engine/PubKeyEd25519"
    assert b64decode(piece["validator"]["pub_key"]["value"]) == accused.pub_key.value
    assert (piece["total_voting_power"], piece["validator"]["voting_power"]) == (20, 10)


def test_a_byzantine_validator_of_a_pruned_set_has_only_its_address(make_app: MakeApp) -> None:
    class Pruned(MemoryChain):
        def validators(self, height: int):  # type: ignore[no-untyped-def]
            return super().validators(height + 1000)

    host = make_app()
    NodeRPC(host, backend=ChainBackend(Pruned(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state)))
    height = next(item.block.header.height for item in CHAIN.blocks if item.block.evidence)

    answer = host.test_client().get(f"/block?height={height}").get_json()
    status = host.test_client().get("/status").get_json()

    (piece,) = answer["result"]["block"]["evidence"]
    assert piece["validator"]["pub_key"] == {"type": "engine/PubKeyEd25519", "value": ""}
    assert piece["validator"]["voting_power"] == 10
    assert status["result"]["validator_info"]["voting_power"] == "0"


def test_a_node_that_fetches_blocks_does_not_know_the_next_height(make_app: MakeApp) -> None:
    class Fetching(Network):
        def catching_up(self) -> bool:
            return True

    host, backend = (
        make_app(),
        ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state)),
    )
    backend.network = Fetching(lambda: CHAIN.genesis.chain_id)
    NodeRPC(host, backend=backend)
    client = host.test_client()

    assert client.get("/validators").get_json()["result"]["block_height"] == "6"
    assert client.get("/validators?height=7").status_code == 404
    assert client.get("/status").get_json()["result"]["sync_info"]["catching_up"] is True


@pytest.mark.parametrize(
    "path",
    ["/abci_info", '/abci_query?data="x"', '/check_tx?tx="a=1"', '/broadcast_tx_sync?tx="a=1"'],
)
def test_missing_capabilities_are_refused_by_name(app: Flask, path: str) -> None:
    answer = app.test_client().get(path)

    assert (answer.status_code, answer.get_json()["error"]["code"]) == (400, -32603)
    assert "this backend" in answer.get_json()["error"]["data"]


# Tests of stores that can't be opened.


def test_a_store_that_can_t_be_opened_is_an_error_object_of_each_call(
    make_app: MakeApp, tmp_path: Path
) -> None:
    database = tmp_path / "chain.db"
    database.write_bytes(b"no database at all" * 100)
    app = make_app(NODERPC_DATABASE=database)
    app.register_blueprint(noderpc_bp)
    client = app.test_client()

    by_get = client.get("/status")
    by_post = client.post(
        "/", json=[{"id": 7, "method": "status"}, {"id": 8, "method": "net_info"}]
    )

    assert (by_get.status_code, by_get.content_type) == (500, "application/json")
    error = by_get.get_json()["error"]
    assert error["code"] == -32603
    assert "the file is not a SQLite database" in error["data"]
    assert by_post.get_json() == [
        {"jsonrpc": "2.0", "id": request_id, "error": error} for request_id in (7, 8)
    ]
    assert database.read_bytes() == b"no database at all" * 100


def test_a_wrong_chain_id_is_logged_and_not_sent_to_callers(
    make_app: MakeApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "chain.db"
    first, second = (
        make_app(NODERPC_DATABASE=database, NODERPC_CHAIN_ID=name) for name in ("one", "two")
    )
    for app in (first, second):
        app.register_blueprint(noderpc_bp)
    assert first.test_client().get("/status").status_code == 200

    answer = second.test_client().get("/status")

    assert answer.status_code == 500
    assert (
        answer.get_json()["error"]["data"] == "the node can't start; the server's log says why"
    )
    assert "got 'two'; remove it" in caplog.text
    with second.app_context(), pytest.raises(ConfigurationError, match="'two'"):
        get_backend()


class Faulty(MemoryChain):
    def latest_height(self) -> int:
        raise RuntimeError("the secret of the database")


@pytest.mark.parametrize(
    ("config", "raised"),
    [
        ({"TESTING": True}, True),
        ({"PROPAGATE_EXCEPTIONS": True}, True),
        ({"TESTING": True, "PROPAGATE_EXCEPTIONS": False}, False),
        ({}, False),
    ],
)
def test_faults_reach_the_test_as_those_of_other_views(
    make_app: MakeApp, config: dict[str, bool], *, raised: bool
) -> None:
    host = make_app(**config)
    NodeRPC(host, backend=ChainBackend(Faulty(CHAIN.genesis)))
    client = host.test_client()
    call = {"jsonrpc": "2.0", "id": 1, "method": "block"}

    asks: tuple[Callable[[], TestResponse], ...] = (
        lambda: client.get("/block"),
        lambda: client.post("/", json=call),
        lambda: client.post("/", json=[call, call]),
    )
    for ask in asks:
        if raised:
            with pytest.raises(RuntimeError, match="the secret"):
                ask()
        else:
            assert "-32603" in ask().text
    # An error response to bad input is not a fault.
    assert client.get("/block?height=x").status_code == 400


def test_a_fault_of_a_backend_is_logged_and_not_shown(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    host = make_app()
    NodeRPC(host, backend=ChainBackend(Faulty(CHAIN.genesis)))

    answer = host.test_client().get("/block")

    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "the secret of the database" in caplog.text
