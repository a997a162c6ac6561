"""Tests of the examples of docs/extending.rst and docs/recipes.rst, as their readers run
them."""

from __future__ import annotations

import json
import re
import runpy
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc.cosmos.bank.dev import dev_addresses
from flask_noderpc.cosmos.protocol.proto import MESSAGES
from flask_noderpc.extension import mounts
from flask_noderpc.testing.node import serve
from tests.cosmos.bank.bank_txs import ALICE, Draft, any_of, coin
from tests.helpers.websocket import WebSocketClient

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = DOCS / "examples"
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


@pytest.fixture
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FlaskClient]:
    """Return a client of the example app that the test names."""
    app = runpy.run_path(str(EXAMPLES / f"{request.param}.py"))["create_app"](str(tmp_path))
    yield app.test_client()
    for mount in mounts(app).values():
        mount.hang_up()
        mount.backend.close()


def example(name: str) -> pytest.MarkDecorator:
    """Return a mark that selects the example for a test."""
    return pytest.mark.parametrize("client", [name], indirect=True)


def test_every_example_is_shown_in_the_docs() -> None:
    shown = [
        name
        for page in DOCS.rglob("*.rst")
        for name in re.findall(
            r"literalinclude:: (?:\.\./)?examples/(\w+)\.py", page.read_text()
        )
    ]

    assert sorted(shown) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_uses_documented_names_alone() -> None:
    documented = (DOCS / "api.rst").read_text()
    for path in EXAMPLES.glob("*.py"):
        for module in re.findall(r"^from (flask_noderpc\.\S+) import", path.read_text(), re.M):
            assert module in documented, f"{path.name}: {module}"


def mine(client: FlaskClient, tx: str = "a=1") -> Any:
    """Send a transaction and wait for its block; return its result."""
    return client.get(f'/broadcast_tx_commit?tx="{tx}"').get_json()["result"]


def call(client: FlaskClient, path: str, method: str, params: Any = ()) -> Any:
    """Call a method by POST."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post(path, json=body).get_json()


@example("own_route")
def test_the_example_of_a_route_answers_with_its_schema(client: FlaskClient) -> None:
    mine(client)
    header = client.get("/block?height=1").get_json()["result"]["block"]["header"]
    expected = {
        "height": "1",
        "time": header["time"],
        "proposer": header["proposer_address"],
    }

    by_get = client.get("/proposers?minHeight=1").get_json()
    by_post = call(client, "/", "proposers", {"minHeight": "1", "count": 1})
    refused = client.get("/proposers?minHeight=1&count=1000")

    assert by_get["result"]["proposals"][0] == expected
    assert by_post["result"] == {"proposals": [expected]}
    assert "count must be from 1 to 100" in refused.get_json()["error"]["data"]
    described = client.get("/openapi.json").get_json()
    assert "ProposalSchema" in described["components"]["schemas"]
    (first, _) = described["paths"]["/proposers"]["get"]["parameters"]
    assert first["name"] == "minHeight"


@example("own_evm_method")
def test_the_example_of_an_evm_method_answers_beside_geth_s(client: FlaskClient) -> None:
    mine(client)
    block_id = client.get("/block?height=1").get_json()["result"]["block_id"]["hash"]

    found = call(client, "/evm", "acme_proposer", ["0x1"])["result"]

    assert found["number"] == "0x1"
    assert found["hash"] == f"0x{block_id.lower()}"
    assert call(client, "/evm", "eth_pendingBytes")["result"] == "0x0"
    assert "acme" in call(client, "/evm", "rpc_modules")["result"]
    assert "error" in call(client, "/evm", "acme_proposer", ["1"])


@example("own_dialect")
def test_the_example_of_a_dialect_replaces_two_entries(client: FlaskClient) -> None:
    counts = client.get("/num_unconfirmed_txs").get_json()["result"]
    refused = call(client, "/", "block", {"height": 1})

    assert counts == {"total": 0, "total_bytes": 0}
    assert "invalid 64-bit integer encoding" in refused["error"]["data"]
    assert "engine/PubKeyEd25519" in client.get("/status").text


@example("own_application")
def test_the_example_of_an_application_runs_a_chain(client: FlaskClient) -> None:
    mine(client, "12")
    last = mine(client, "30")
    refused = mine(client, "many")

    assert last["height"] == "2"
    assert refused["check_tx"]["log"] == "expected at most 18 digits"
    answer = client.get('/abci_query?data="total"').get_json()["result"]["response"]
    assert bytes.fromhex(answer["value"]) == b"42"
    found = client.get('/tx_search?query="added.number=12"').get_json()["result"]
    assert found["total_count"] == "1"


@example("own_message")
def test_the_example_of_a_message_stores_notes(client: FlaskClient) -> None:
    """The app's accounts are funded; tests/cosmos/bank/test_bank.py signs its message."""
    refused = mine(client, "note")
    assert refused["check_tx"]["code"] == 2

    send = {"address": dev_addresses()[1], "coins": "1token"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "dev_faucet", "params": send}
    assert client.post("/", json=body).get_json()["result"]["code"] == 0
    info = client.get("/abci_info").get_json()["result"]["response"]
    assert info["data"] == "bank"


@example("own_module")
def test_the_example_of_a_module_keeps_coins_and_serves_rest(client: FlaskClient) -> None:
    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/", json=body).get_json()["result"]

    def owned() -> str:
        path = f"/cosmos/bank/v1beta1/balances/{ALICE}/by_denom?denom=token"
        return str(client.get(path).get_json()["balance"]["amount"])

    def lock(sequence: int, seconds: int) -> dict[str, Any]:
        values = {"owner": ALICE, "amount": coin(5), "seconds": seconds}
        message = any_of(f"/{name}", MESSAGES.encode(name, **values))
        draft = Draft((message,), sequence, chain_id="vaults-1")
        tx = b64encode(draft.signed()).decode()
        return dict(call("broadcast_tx_commit", tx=tx)["tx_result"])

    name, path = "acme.vaults.v1.MsgLock", f"/acme/vaults/v1/vaults/{ALICE}"
    call("dev_mine")
    assert client.get(path).get_json()["message"] == "the owner has no vault"
    before = owned()

    assert lock(0, 3_601)["code"] == 2
    assert lock(1, 3_600)["code"] == 0
    vault = client.get(path).get_json()["vault"]
    assert (vault["owner"], vault["amount"]) == (ALICE, {"denom": "token", "amount": "5"})
    assert int(owned()) == int(before) - 5
    call("dev_increaseTime", seconds=3_600)
    call("dev_mine")
    assert (owned(), client.get(path).status_code) == (before, 404)
    found = client.get("/cosmos/tx/v1beta1/txs?query=lock.owner EXISTS").get_json()
    (sent,) = found["txs"][0]["body"]["messages"]
    assert sent == {
        "@type": f"/{name}",
        "owner": ALICE,
        "amount": vault["amount"],
        "seconds": "3600",
    }
    assert len((EXAMPLES / "own_module.py").read_text().splitlines()) <= 120


@example("own_access")
def test_the_example_of_access_challenges_and_limits(client: FlaskClient) -> None:
    token = {"Authorization": "Bearer let-me-in"}
    challenged = client.get('/broadcast_tx_sync?tx="a=1"')
    sent = client.get('/broadcast_tx_sync?tx="a=1"', headers=token)
    answers = [client.get("/status") for _ in range(250)]

    assert (challenged.status_code, challenged.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert sent.get_json()["result"]["code"] == "0"
    limited = next(one for one in answers if one.status_code != 200)
    assert limited.status_code == 429
    assert 0 < int(limited.headers["Retry-After"]) <= 60
    assert "too many calls" in limited.get_json()["error"]["data"]


@example("api_keys")
def test_the_recipe_of_keys_asks_for_one(client: FlaskClient) -> None:
    key = {"X-Api-Key": "let-me-in"}
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "abci_info"}] * 2
    challenged = client.get("/status")

    assert (challenged.status_code, challenged.headers["WWW-Authenticate"]) == (401, "ApiKey")
    assert client.get("/status", headers={"X-Api-Key": "guess"}).status_code == 401
    assert client.post("/", json=batch).status_code == 401
    assert client.get("/websocket", headers=WEBSOCKET).status_code == 401
    assert client.get("/status", headers=key).status_code == 200
    assert "error" not in client.post("/", json=batch, headers=key).get_json()[0]
    assert client.get("/me").status_code == 401
    assert client.get("/me", headers=key).get_json() == {"name": "satoshi"}


@example("cost_limit")
def test_the_recipe_of_costs_charges_a_search_more_than_a_read(client: FlaskClient) -> None:
    search = '/tx_search?query="tx.height>0"'
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "abci_info"}] * 10
    found = [client.get(search) for _ in range(19)]
    within = client.post("/", json=batch)
    refused = client.get(search)
    read = client.get("/abci_info")

    assert {one.status_code for one in [*found, within, read]} == {200}
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert "1000 per 1 minute are used up" in refused.get_json()["error"]["data"]


@example("rate_limit")
def test_the_recipe_of_a_limit_answers_as_json_rpc(client: FlaskClient) -> None:
    call = {"jsonrpc": "2.0", "id": "mine", "method": "abci_info"}
    accepted = [client.post("/", json=[call] * 10) for _ in range(10)]
    refused = client.post("/", json=call)
    batch = client.post("/", json=[call, call])
    read = client.get("/abci_info")
    deep = client.post("/", data="[" * 100_000, content_type="application/json")
    plain = client.post("/", data=json.dumps(call), content_type="text/plain")

    assert {found.status_code for found in accepted} == {200}
    assert {found.status_code for found in (refused, batch, read, deep, plain)} == {429}
    assert plain.get_json() == refused.get_json()
    assert refused.get_json() == {
        "jsonrpc": "2.0",
        "id": "mine",
        "error": {"code": -32005, "message": "Too many requests", "data": "100 per 1 minute"},
    }
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert [found.get_json()["id"] for found in (batch, read)] == [None, None]


@example("api_keys")
def test_the_recipe_of_keys_holds_for_a_websocket(client: FlaskClient) -> None:
    with serve(client.application) as url:
        with pytest.raises(ConnectionRefusedError, match="401"):
            WebSocketClient(url)
        with closing(WebSocketClient(url, headers={"X-Api-Key": "let-me-in"})) as sock:
            sock.call("health")
            assert json.loads(sock.read() or "")["result"] == {}


@example("cost_limit")
def test_the_recipe_of_costs_charges_each_call_of_a_websocket(client: FlaskClient) -> None:
    search = {"query": "tx.height>0"}
    with serve(client.application) as url, closing(WebSocketClient(url)) as sock:
        for number in range(25):
            sock.call("tx_search", search, number)
        found = [json.loads(sock.read() or "") for _ in range(25)]
    refused = [one["error"]["data"] for one in found if "result" not in one]

    # The handshake costs a part of the budget, too.
    assert len(refused) == 6
    assert all("1000 per 1 minute are used up" in reason for reason in refused)
