"""The application ``bank`` over HTTP, as the fixture ``noderpc_bank`` serves it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any
from urllib.request import Request, urlopen

from flask_noderpc.protocol.protobuf import Message, string
from flask_noderpc.testing.bank import BankNode

from ..helpers.until import until
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

    # That of 0.38 has numbers as texts and no code of 0.
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
