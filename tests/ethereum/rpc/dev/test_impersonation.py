"""Tests of transactions of impersonated accounts, which only the node can submit."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from web3 import Web3
from web3.exceptions import Web3RPCError

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.protocol.transactions import decode, encode_unsigned

from .fixtures import ETHER, FIRST, STRANGER, asked, settled

# PUSH1 42, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN; and the init code.
_CODE = bytes.fromhex("602a60005260206000f3")
_INIT = bytes.fromhex("69") + _CODE + bytes.fromhex("600052600a6016f3")


@pytest.mark.parametrize("family", ["anvil", "hardhat"])
def test_an_impersonated_account_sends_without_its_key(
    chain: EmbeddedChain, w3: Any, family: str
) -> None:
    settled(chain, w3, {"from": w3.eth.accounts[5], "to": STRANGER, "value": ETHER})
    sent = {"from": STRANGER, "to": FIRST, "value": 7, "gas": 21_000}

    answer = {"anvil": None, "hardhat": True}[family]
    own = w3.eth.accounts
    assert asked(w3, f"{family}_impersonateAccount", STRANGER)["result"] is answer
    assert w3.eth.accounts == [*own, STRANGER]
    receipt = settled(chain, w3, sent)
    assert (receipt["status"], receipt["from"]) == (1, STRANGER)
    assert w3.eth.get_transaction(receipt["transactionHash"])["from"] == STRANGER

    assert asked(w3, f"{family}_stopImpersonatingAccount", STRANGER)["result"] is answer
    assert w3.eth.accounts == own
    with pytest.raises(Web3RPCError, match="unknown account"):
        w3.eth.send_transaction(sent)


def test_any_account_may_be_impersonated_a_contract_too(chain: EmbeddedChain, w3: Any) -> None:
    rich = w3.eth.accounts[6]
    contract = settled(chain, w3, {"from": rich, "data": _INIT})["contractAddress"]
    assert w3.eth.get_code(contract) == _CODE
    settled(chain, w3, {"from": rich, "to": contract, "value": ETHER})

    assert asked(w3, "anvil_autoImpersonateAccount", True)["result"] is None
    receipt = settled(chain, w3, {"from": contract, "to": FIRST, "value": 1})
    assert (receipt["status"], receipt["from"]) == (1, contract)

    assert asked(w3, "anvil_autoImpersonateAccount", False)["result"] is None
    assert "error" in asked(w3, "eth_sendTransaction", {"from": contract, "to": FIRST})


def test_impersonated_transactions_are_mined_after_others(
    chain: EmbeddedChain, w3: Any
) -> None:
    rich = w3.eth.accounts[7]
    other = Web3.to_checksum_address("0x" + "66" * 20)
    settled(chain, w3, {"from": rich, "to": other, "value": ETHER})
    asked(w3, "anvil_impersonateAccount", other)
    tx = {"from": other, "to": FIRST, "gas": 21_000}
    behind = w3.eth.send_transaction({**tx, "nonce": 1})
    asked(w3, "anvil_stopImpersonatingAccount", other)
    # The transaction is checked again after this block.
    chain.produce()
    asked(w3, "anvil_impersonateAccount", other)
    w3.eth.send_transaction(tx)
    asked(w3, "anvil_stopImpersonatingAccount", other)
    chain.produce()

    assert w3.eth.get_transaction_receipt(behind)["status"] == 1


def _unsigned(w3: Any) -> bytes:
    """Return a transaction of an impersonated sender."""
    asked(w3, "anvil_impersonateAccount", FIRST)
    found = asked(w3, "eth_signTransaction", {"from": FIRST, "to": FIRST, "nonce": "0x63"})
    tx = decode(bytes.fromhex(found["result"]["raw"][2:]))
    return encode_unsigned(DEV_KEYS[8].address, tx)


def test_nothing_unsigned_comes_in_from_outside(url: str, app: Flask, w3: Any) -> None:
    asked(w3, "anvil_autoImpersonateAccount", True)
    raw = _unsigned(w3).hex()
    message = "invalid transaction v, r, s values"

    for method in ("eth_sendRawTransaction", "eth_sendRawTransactionSync"):
        assert asked(w3, method, f"0x{raw}")["error"]["message"] == message
    node: Any = app.test_client()
    waiting = node.get("/num_unconfirmed_txs").text
    for route in ("broadcast_tx_sync", "broadcast_tx_commit", "check_tx"):
        answer = node.get(f"/{route}?tx=0x{raw}").text
        assert message in answer, answer
    node.get(f"/broadcast_tx_async?tx=0x{raw}")
    assert node.get("/num_unconfirmed_txs").text == waiting
    asked(w3, "anvil_autoImpersonateAccount", False)
