"""Tests of the fixture ``noderpc_evm`` for authors of wallets and indexers."""

from __future__ import annotations

from typing import Any

import pytest
from web3 import HTTPProvider, Web3

from flask_noderpc.ethereum.testing import EvmNode

from ...helpers.http import get

SOMEBODY = Web3.to_checksum_address("0x" + "77" * 20)


@pytest.fixture
def w3(noderpc_evm: EvmNode) -> Web3:
    return Web3(HTTPProvider(noderpc_evm.url))


def sent(w3: Web3, node: EvmNode) -> Any:
    tx: Any = {
        "from": node.accounts[0].address,
        "to": SOMEBODY,
        "value": Web3.to_wei(1, "ether"),
    }
    return w3.eth.wait_for_transaction_receipt(w3.eth.send_transaction(tx), poll_latency=0.01)


@pytest.mark.parametrize("turn", [1, 2])
def test_the_evm_fixture_reverts_between_tests(
    w3: Web3, noderpc_evm: EvmNode, turn: int
) -> None:
    assert w3.eth.get_balance(SOMEBODY) == 0
    assert w3.eth.block_number == 0

    receipt = sent(w3, noderpc_evm)

    assert receipt["status"] == 1
    assert w3.eth.get_balance(SOMEBODY) == Web3.to_wei(1, "ether")


def test_a_snapshot_ends_with_its_block(w3: Web3, noderpc_evm: EvmNode) -> None:
    with noderpc_evm.snapshot():
        sent(w3, noderpc_evm)
    assert w3.eth.get_balance(SOMEBODY) == 0


def test_the_evm_fixture_mines_and_advances_time_on_request(
    w3: Web3, noderpc_evm: EvmNode
) -> None:
    noderpc_evm.mine(2)
    before = w3.eth.get_block("latest")["timestamp"]
    noderpc_evm.increase_time(3600)
    assert noderpc_evm.mine() == 3
    assert w3.eth.get_block("latest")["timestamp"] >= before + 3600
    assert noderpc_evm.mine(time=before + 10_000) == 4
    assert w3.eth.get_block(4)["timestamp"] == before + 10_000


def test_both_surfaces_show_one_chain(w3: Web3, noderpc_evm: EvmNode) -> None:
    receipt = sent(w3, noderpc_evm)
    header = get(noderpc_evm.node_url, f"/block?height={receipt['blockNumber']}").json
    assert header["result"]["block_id"]["hash"].lower() == receipt["blockHash"].hex()


def test_the_accounts_can_sign_by_themselves(w3: Web3, noderpc_evm: EvmNode) -> None:
    account = w3.eth.account.from_key(noderpc_evm.accounts[1].key)
    assert account.address == noderpc_evm.accounts[1].address
    assert w3.eth.get_balance(account.address) == Web3.to_wei(10_000, "ether")
    assert list(map(str, w3.eth.accounts)) == [each.address for each in noderpc_evm.accounts]
