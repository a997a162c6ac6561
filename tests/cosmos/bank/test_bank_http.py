"""Tests of the application ``bank`` over HTTP, as the fixture ``noderpc_bank`` serves it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from flask_noderpc import EmbeddedChain
from flask_noderpc.cosmos.bank.application import Bank
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.protocol.protobuf import Message, integer, string
from flask_noderpc.testing.node import Node, app_for

from ...helpers.until import until
from .bank_txs import ALICE, BOB, Draft


def call(node: BankNode, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = Request(node.url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        return json.load(response)


def sent(node: BankNode, **fields: Any) -> dict[str, Any]:
    chain_id = call(node, "status")["result"]["node_info"]["network"]
    raw = Draft(chain_id=chain_id, **fields).signed()
    check = call(node, "broadcast_tx_sync", tx=b64encode(raw).decode())["result"]
    assert check["code"] == 0, check
    by_hash = {"hash": b64encode(sha256(raw).digest()).decode()}
    until(lambda: "result" in call(node, "tx", **by_hash), "the transaction is in a block")
    found: dict[str, Any] = call(node, "tx", **by_hash)["result"]
    return found


def test_a_transfer_is_sent_found_and_searched(noderpc_bank: BankNode) -> None:
    assert noderpc_bank.accounts[:2] == (ALICE, BOB)

    found = sent(noderpc_bank)

    # Dialect 0.38 writes numbers as strings and omits a code of 0.
    assert found["tx_result"].get("code", 0) == 0
    assert int(found["tx_result"]["gas_used"]) > 60_000
    query = f"message.sender='{ALICE}' AND message.action='/cosmos.bank.v1beta1.MsgSend'"
    hits = call(noderpc_bank, "tx_search", query=query)["result"]
    assert [hit["hash"] for hit in hits["txs"]] == [found["hash"]]
    wrong = call(noderpc_bank, "broadcast_tx_sync", tx=b64encode(b"garbage").decode())
    assert wrong["result"]["codespace"] == "sdk"


def test_what_a_test_does_has_never_happened_for_the_next_one(noderpc_bank: BankNode) -> None:
    with noderpc_bank.snapshot():
        sent(noderpc_bank, memo="within")
        noderpc_bank.mine(3)
    data = string(1, ALICE).hex()
    path = "/cosmos.auth.v1beta1.Query/Account"

    answer = call(noderpc_bank, "abci_query", path=path, data=data)["result"]["response"]

    account = Message(Message(Message(b64decode(answer["value"])).blob(1)).blob(2))
    assert account.integer(4) == 0
    assert int(answer["height"]) > 0


def asked(node: BankNode, path: str, data: bytes = b"", **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = call(node, "abci_query", path=path, data=data.hex(), **params)[
        "result"
    ]["response"]
    return found


def value(node: BankNode, path: str, data: bytes = b"") -> Message:
    answer = asked(node, path, data)
    assert not answer.get("code"), answer
    return Message(b64decode(answer["value"] or ""))


_TX = "/cosmos.tx.v1beta1.Service/"
_NODE = "/cosmos.base.tendermint.v1beta1.Service/"


def test_a_transaction_is_found_by_its_hash(noderpc_bank: BankNode) -> None:
    committed = sent(noderpc_bank, memo="found")

    found = value(noderpc_bank, f"{_TX}GetTx", string(1, committed["hash"].lower()))

    raw = b64decode(committed["tx"])
    assert found.blob(1) == raw
    response = Message(found.blob(2))
    assert response.integer(1) == int(committed["height"])
    assert response.text(2) == committed["hash"]
    assert bytes.fromhex(response.text(5)) == b64decode(committed["tx_result"]["data"])
    assert response.integer(10) == int(committed["tx_result"]["gas_used"])
    wrapped = Message(response.blob(11))
    assert (wrapped.text(1), wrapped.blob(2)) == ("/cosmos.tx.v1beta1.Tx", raw)
    block = call(noderpc_bank, "block", height=committed["height"])["result"]["block"]
    assert response.text(12) == block["header"]["time"][:19] + "Z"
    events = [Message(each).text(1) for each in response.blobs(13)]
    assert events == [each["type"] for each in committed["tx_result"]["events"]]


def test_a_transaction_that_is_not_there_is_none_of_the_sdk(noderpc_bank: BankNode) -> None:
    absent = "AB" * 32

    answer = asked(noderpc_bank, f"{_TX}GetTx", string(1, absent))

    assert (answer["code"], answer["codespace"]) == (22, "sdk")
    assert answer["log"] == (
        f"rpc error: code = NotFound desc = tx not found: {absent}: key not found"
    )
    for text, log in (
        ("", "rpc error: code = InvalidArgument desc = tx hash cannot be empty"),
        ("nothing", "encoding/hex: invalid byte: U+006E 'n'"),
        ("ABC", "encoding/hex: odd length hex string"),
    ):
        wrong = asked(noderpc_bank, f"{_TX}GetTx", string(1, text))
        assert (wrong["code"], wrong["log"]) == (18, f"{log}: invalid request")
    garbage = asked(noderpc_bank, f"{_TX}GetTx", b"\xff\xff")
    assert garbage["log"] == "unexpected EOF: invalid request"


def test_transactions_are_searched_by_their_events(noderpc_bank: BankNode) -> None:
    hashes = [sent(noderpc_bank, sequence=sequence)["hash"] for sequence in range(3)]
    query = string(6, f"message.sender='{ALICE}'")

    def searched(more: bytes = b"") -> tuple[int, list[str]]:
        found = value(noderpc_bank, f"{_TX}GetTxsEvent", more + query)
        responses = [Message(each).text(2) for each in found.blobs(2)]
        assert len(found.blobs(1)) == len(responses)
        return found.integer(4), responses

    assert searched() == (3, hashes)
    newest_first = integer(3, 2)
    assert searched(newest_first) == (3, hashes[::-1])
    second_of_two = integer(4, 2) + integer(5, 2)
    assert searched(second_of_two) == (3, hashes[2:])
    empty = asked(noderpc_bank, f"{_TX}GetTxsEvent")
    assert empty["log"] == (
        "rpc error: code = Internal desc = query cannot be empty: unknown request"
    )
    wrong = asked(noderpc_bank, f"{_TX}GetTxsEvent", string(6, "no query"))
    assert wrong["code"] == 6
    assert "failed to search for txs: " in wrong["log"]


def test_the_node_tells_of_itself_and_of_its_blocks(noderpc_bank: BankNode) -> None:
    committed = sent(noderpc_bank)
    height = int(committed["height"])
    status = call(noderpc_bank, "status")["result"]

    info = value(noderpc_bank, f"{_NODE}GetNodeInfo")
    own, application = Message(info.blob(1)), Message(info.blob(2))
    assert own.text(4) == status["node_info"]["network"]
    assert own.text(2) == status["node_info"]["id"]
    assert own.text(5) == status["node_info"]["version"]
    assert (application.text(1), application.text(8)) == ("bank", "v0.53.8")
    assert value(noderpc_bank, f"{_NODE}GetSyncing").integer(1) == 0

    latest = value(noderpc_bank, f"{_NODE}GetLatestBlock")
    by_height = value(noderpc_bank, f"{_NODE}GetBlockByHeight", integer(1, height))
    for found in (latest, by_height):
        block, shown = Message(found.blob(2)), Message(found.blob(3))
        header, with_text = Message(block.blob(1)), Message(shown.blob(1))
        assert header.text(2) == with_text.text(2) == own.text(4)
        proposer = bech32.encode("cosmosvalcons", header.blob(14))
        assert with_text.text(14) == proposer
        assert [block.blob(n) for n in (2, 3, 4)] == [shown.blob(n) for n in (2, 3, 4)]
    known = call(noderpc_bank, "block", height=str(height))["result"]
    assert Message(by_height.blob(1)).blob(1).hex().upper() == known["block_id"]["hash"]
    assert Message(Message(by_height.blob(2)).blob(2)).blobs(1) == [b64decode(committed["tx"])]

    with_txs = value(noderpc_bank, f"{_TX}GetBlockWithTxs", integer(1, height))
    assert with_txs.blobs(1) == [b64decode(committed["tx"])]
    assert Message(with_txs.blob(4)).integer(2) == 1
    state = value(noderpc_bank, "/cosmos.base.node.v1beta1.Service/Status")
    assert state.integer(2) >= height
    later = asked(noderpc_bank, f"{_NODE}GetBlockByHeight", integer(1, 1_000_000))
    assert later["log"] == (
        "rpc error: code = InvalidArgument desc = requested block height is bigger then the"
        " chain length: invalid request"
    )
    none = asked(noderpc_bank, f"{_TX}GetBlockWithTxs", integer(1, 0))
    assert none["log"].startswith("requested height 0 but height must not be less than 1")
    # A height without a state is refused with the application's error.
    for at, wrong, kind in (
        ("-1", "< 0", "invalid request"),
        ("1000000", "in the future", "invalid height"),
    ):
        for path in (f"{_NODE}GetLatestBlock", "/cosmos.bank.v1beta1.Query/Params"):
            refused = call(noderpc_bank, "abci_query", path=path, height=at)["result"]
            assert refused["response"]["log"] == (
                f"cannot query with height {wrong}; please provide a valid height: {kind}"
            )


def test_other_applications_have_no_services_of_the_sdk(noderpc_node: Node) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "abci_query",
        "params": {"path": f"{_NODE}GetNodeInfo", "data": ""},
    }
    request = Request(
        noderpc_node.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request) as response:
        answer = json.load(response)["result"]["response"]
    # The response is the key-value store's, which has no such key.
    assert answer.get("log") == "does not exist"


def test_an_unknown_path_is_the_applications_error_in_our_own_dialect(tmp_path: Path) -> None:
    chain = EmbeddedChain(tmp_path / "chain.db", application=Bank, produce=False)
    try:
        client = app_for(chain, dialect="document").test_client()
        answer = client.get('/abci_query?path="/nowhere"').get_json()["result"]["response"]
    finally:
        chain.close()

    assert answer["log"] == "unknown query path: unknown request"
    assert answer["key"] == ""
