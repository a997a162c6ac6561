"""Tests of messages and structured data that the node signs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from web3 import AsyncWeb3, WebSocketProvider

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS

from .fixtures import FIRST, STRANGER, TYPED, asked


def test_the_node_signs_over_a_websocket_too(chain: EmbeddedChain, url: str) -> None:
    async def talk() -> Any:
        async with AsyncWeb3(WebSocketProvider(f"{url.replace('http', 'ws')}/evm/ws")) as w3:
            signature = await w3.eth.sign(FIRST, text="Hello")
            assert (
                bytes(signature)
                == Account.sign_message(
                    encode_defunct(text="Hello"), DEV_KEYS[0].secret
                ).signature
            )
            tx_hash = await w3.eth.send_transaction({"from": FIRST, "to": FIRST})
            chain.produce()
            return await w3.eth.get_transaction_receipt(tx_hash)

    assert asyncio.run(talk())["status"] == 1


def test_a_message_is_signed(w3: Any) -> None:
    signature = w3.eth.sign(FIRST, text="Hello")
    assert Account.recover_message(encode_defunct(text="Hello"), signature=signature) == FIRST


@pytest.mark.parametrize("password", [(), ("",), (None,)], ids=["none", "text", "null"])
def test_a_message_is_signed_as_wallets_ask_for_it(w3: Any, password: tuple[Any, ...]) -> None:
    message = "0x" + b"Hello".hex()
    signature = asked(w3, "personal_sign", message, FIRST, *password)["result"]
    assert Account.recover_message(encode_defunct(text="Hello"), signature=signature) == FIRST


def test_eth_request_accounts_returns_the_accounts(w3: Any) -> None:
    assert asked(w3, "eth_requestAccounts")["result"] == asked(w3, "eth_accounts")["result"]


@pytest.mark.parametrize("document", [TYPED, json.dumps(TYPED)], ids=["object", "text"])
def test_structured_data_is_signed(w3: Any, document: Any) -> None:
    message = encode_typed_data(full_message=TYPED)
    for method in ("eth_signTypedData", "eth_signTypedData_v4"):
        signature = asked(w3, method, FIRST, document)["result"]
        assert Account.recover_message(message, signature=signature) == FIRST


def test_malformed_typed_data_is_refused(w3: Any) -> None:
    error = asked(w3, "eth_signTypedData", FIRST, {**TYPED, "message": {}})["error"]
    assert error == {
        "code": -32602,
        "message": "invalid argument 1: Mail: expected a value for the field 'contents', got"
        " none; add it",
    }
    error = asked(w3, "eth_signTypedData", FIRST, "{")["error"]
    assert error["message"].startswith("invalid argument 1: typed data: ")


def test_signing_with_an_unknown_account_is_refused(w3: Any) -> None:
    tx = {"from": STRANGER, "to": FIRST}
    for method, params in (
        ("eth_sendTransaction", [tx]),
        ("eth_sendTransaction", [{"to": FIRST}]),
        ("eth_signTransaction", [tx]),
        ("eth_sign", [STRANGER, "0x00"]),
        ("personal_sign", ["0x00", STRANGER]),
        ("eth_signTypedData_v4", [STRANGER, TYPED]),
    ):
        error = asked(w3, method, *params)["error"]
        assert error == {"code": -32000, "message": "unknown account"}
