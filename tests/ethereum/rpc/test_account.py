"""Tests of whole accounts, code by its hash, and a transaction by its sender and nonce."""

from __future__ import annotations

from typing import Any

import pytest

from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.protocol.signing import ACCOUNT

from .trace_chain import FIRST, Node, machine


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with machine(tmp_path_factory.mktemp("account")) as made:
        yield made


ADDRESS = f"0x{FIRST.hex()}"


def test_accounts_are_those_of_the_proof(node: Node) -> None:
    proof = node.ask("eth_getProof", ADDRESS, [], "latest")
    code = node.ask("eth_getCode", ADDRESS, "latest")
    assert node.ask("eth_getAccount", ADDRESS, "latest") == {
        "balance": proof["balance"],
        "nonce": proof["nonce"],
        "codeHash": proof["codeHash"],
        "storageRoot": proof["storageHash"],
    }
    assert node.ask("eth_getAccountInfo", ADDRESS, "latest") == {
        "balance": proof["balance"],
        "nonce": proof["nonce"],
        "code": code,
    }
    assert node.ask("debug_codeByHash", proof["codeHash"]) == code != "0x"
    assert node.ask("debug_preimage", proof["codeHash"]) == code
    root = node.ask("eth_getBlockByNumber", "latest", False)["stateRoot"]
    assert node.ask("debug_preimage", root) == proof["accountProof"][0]
    unknown = f"0x{keccak(b'unknown').hex()}"
    assert node.ask("debug_preimage", unknown) == "unknown preimage"
    assert node.ask("debug_codeByHash", f"0x{keccak(b'unknown').hex()}") == "0x"


def test_transactions_are_found_by_sender_and_nonce(node: Node) -> None:
    sender, first = ACCOUNT.address, node.nonce
    one, two = node.block({"to": FIRST}, {"to": FIRST})
    node.chain.produce()
    (three,) = node.block({"to": FIRST})
    waiting = node.send(to=FIRST)

    def found(nonce: int) -> Any:
        tx = node.ask("eth_getTransactionBySenderAndNonce", sender, hex(nonce))
        return tx and (tx["hash"], tx["blockNumber"] is None)

    assert [found(first + more) for more in range(5)] == [
        (one, False),
        (two, False),
        (three, False),
        (waiting, True),
        None,
    ]
    node.chain.produce()
    assert found(first + 3) == (waiting, False)
    assert node.ask("eth_getTransactionBySenderAndNonce", "0x" + "42" * 20, "0x0") is None
