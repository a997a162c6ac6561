"""Tests of Ethereum's JSON-RPC on chains that execute no Ethereum transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.cosmos.bank.application import Bank
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import CHAIN_ID

from .evm_node import tx

APPLICATIONS = {"kvstore": KVStore, "merkle": MerkleKVStore, "bank": Bank}


def tx_with_one_equals_sign() -> bytes:
    """Return an Ethereum transaction that kvstore would accept as its own."""
    return next(raw for raw in (tx(nonce) for nonce in range(1000)) if raw.count(b"=") == 1)


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "eth_sendRawTransactionSync"])
@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_raw_transaction_is_refused_with_the_setting_to_change(
    name: str, method: str, tmp_path: Path
) -> None:
    application: Callable[[Any], Any] = APPLICATIONS[name]
    chain = EmbeddedChain(tmp_path / "chain.db", application=application, produce=False)
    try:
        client = app_for(chain, json_rpc_enable=True).test_client()
        call = {"jsonrpc": "2.0", "id": 1, "method": method}
        params = [f"0x{tx_with_one_equals_sign().hex()}"]
        error = client.post("/evm", json={**call, "params": params}).get_json()["error"]

        assert error["code"] == -32004
        assert error["message"].startswith(
            f"the application {name} executes no Ethereum transactions, only "
        )
        assert "NODERPC_APPLICATION=evm" in error["message"]
        assert chain.mempool.pending_count().total == 0
    finally:
        chain.close()


class Own(KVStore):
    """An application of a user, which takes what kvstore takes."""

    name = "own"


def test_an_application_of_a_user_decides_itself(tmp_path: Path) -> None:
    chain = EmbeddedChain(tmp_path / "chain.db", application=Own, produce=False)
    try:
        settings = {"json_rpc_enable": True, "evm_chain_id": CHAIN_ID}
        client = app_for(chain, **settings).test_client()
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction"}
        params = [f"0x{tx_with_one_equals_sign().hex()}"]
        reply = client.post("/evm", json={**call, "params": params}).get_json()
        assert "executes no Ethereum transactions" not in str(reply)
    finally:
        chain.close()
