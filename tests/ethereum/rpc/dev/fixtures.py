"""A development chain as a fixture, and its notifications."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask
from web3 import Web3

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.extension import mounts
from tests.helpers.until import PATIENT

FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
STRANGER = Web3.to_checksum_address("0x" + "77" * 20)
ETHER = 10**18

TYPED = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}],
        "Mail": [{"name": "contents", "type": "string"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Ether Mail"},
    "message": {"contents": "Hello, Bob!"},
}


def dev_app(folder: Path, **settings: Any) -> Flask:
    """Return an app with a development chain that makes no block by itself."""
    app = Flask("dev", instance_path=str(folder))
    node = {"application": "evm", "dev": True, "json_rpc_enable": True, "produce": False}
    NodeRPC(app, **{**node, **PATIENT, **settings})
    return app


def chain_of(app: Flask) -> EmbeddedChain:
    """Return the app's chain."""
    found = mounts(app)["noderpc"].backend
    assert isinstance(found, EmbeddedChain)
    return found


def asked(w3: Any, method: str, *params: Any) -> Any:
    """Return the whole response to a call."""
    return w3.provider.make_request(method, params)


def settled(chain: EmbeddedChain, w3: Any, tx: Any) -> Any:
    """Return the receipt of a transaction that the node signs."""
    tx_hash = w3.eth.send_transaction(tx)
    chain.produce()
    return w3.eth.get_transaction_receipt(tx_hash)
