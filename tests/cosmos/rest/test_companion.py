"""Tests of REST in front of a followed node of the SDK, which is asked for the state."""

from __future__ import annotations

from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import app_for

from ...helpers.until import PATIENCE, until

BASE, TXS = "/cosmos/base/tendermint/v1beta1", "/cosmos/tx/v1beta1/txs"


def asked(url: str) -> tuple[int, bytes]:
    try:
        with urlopen(url) as response:
            return response.status, response.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_companion_answers_as_its_node(noderpc_bank: BankNode, tmp_path: Path) -> None:
    sender, recipient = noderpc_bank.accounts[:2]
    sent = noderpc_bank.faucet(recipient, "7token")
    noderpc_bank.mine()
    assert asked(f"{noderpc_bank.url}{TXS}/{sent}")[0] == 200
    given = {"upstream": noderpc_bank.url, "upstream_timeout": PATIENCE}
    companion = companion_from_settings(read_settings({}, given), tmp_path / "chain.db")
    try:
        client = app_for(companion, rest=True, dialect="comet-0.38").test_client()
        for path in (
            "/cosmos/bank/v1beta1/params",
            f"/cosmos/bank/v1beta1/balances/{recipient}",
            "/cosmos/bank/v1beta1/balances/test",
            f"/cosmos/auth/v1beta1/accounts/{sender}",
            f"{TXS}/{sent}",
            f"{TXS}?query=tx.height%3E0",
            f"{TXS}/00",
            f"{BASE}/node_info",
            f"{BASE}/blocks/1",
            f"{BASE}/validatorsets/1",
            "/cosmos/consensus/v1/params",
            "/cosmos/none",
        ):
            reply = client.get(path)
            assert (reply.status_code, reply.data) == asked(noderpc_bank.url + path), path
    finally:
        companion.close()


def test_searches_are_the_nodes_whatever_the_store_has(
    noderpc_bank: BankNode, tmp_path: Path
) -> None:
    """The response is never a part of the results."""
    noderpc_bank.faucet(noderpc_bank.accounts[1], "7token")
    lowest = noderpc_bank.mine(3)
    given = {
        "upstream": noderpc_bank.url,
        "upstream_timeout": PATIENCE,
        "upstream_poll": 0.05,
        "backfill_from": lowest,
    }
    companion = companion_from_settings(read_settings({}, given), tmp_path / "chain.db")
    try:
        companion.follow()
        until(lambda: companion.store.reads.latest_height() == lowest, "the store has the head")
        assert companion.reads.base_height() >= lowest - 1
        client = app_for(companion, rest=True, dialect="comet-0.38").test_client()
        path = f"{TXS}?query=tx.height%3E0"
        reply = client.get(path)
        assert (reply.status_code, reply.data) == asked(noderpc_bank.url + path)
        assert b'"total":"1"' in reply.data
    finally:
        companion.close()
