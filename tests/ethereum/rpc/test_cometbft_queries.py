"""Tests of Ethereum transactions that are found by the node's own queries, in any letter case
of addresses."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.reads import scan_txs
from flask_noderpc.testing.node import app_for, serve
from tests.ethereum.protocol.signing import TO
from tests.helpers.websocket import WebSocketClient

from .chain import transfer

LETTERS = [TO, TO.lower(), "0X" + TO[2:].upper()]
KEYS = ["ethereum.recipient", "ethereum_tx.recipient"]


def found_by(backend: ChainBackend, query: str) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tx_search", "params": {"query": query}}
    return app_for(backend).test_client().post("/", json=call).get_json()["result"]["txs"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", LETTERS)
def test_tx_search_finds_an_evm_transaction_by_recipient(
    chain: EmbeddedChain, key: str, text: str
) -> None:
    query = f"tm.event='Tx' AND {key}='{text}'"
    with serve(app_for(chain)) as url:
        client = WebSocketClient(url)
        assert client.asked("subscribe", {"query": query})["result"] == {}
        chain.mempool.submit(transfer(3, value=9))
        chain.produce()
        result = client.json()["result"]
        client.close()

    assert result["query"] == query
    # The values in the event are searchable.
    assert TO in result["events"]["ethereum_tx.recipient"]
    assert TO in result["events"]["ethereum.recipient"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", LETTERS)
def test_a_transaction_is_found_by_its_recipient(
    chain: EmbeddedChain, key: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain has an index, or like other backends has none."""
    amount = key.replace("recipient", "amount")
    scanned = EmbeddedChain(chain.store.location.path, home=chain.home, produce=False)
    monkeypatch.setattr(scanned.reads, "search_txs", partial(scan_txs, scanned.reads))
    for backend in (chain, scanned):
        (found,) = found_by(backend, f"{key}='{text}' AND {amount}='5'")
        assert int(found["height"]) == 2
        assert found_by(backend, f"{key}='{text[:-1]}'") == []
        assert found_by(backend, f"transfer.recipient='{text}'") == []
    scanned.close()
