"""Control of a development chain of the application ``bank``, by JSON-RPC and from Python."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from flask_noderpc.chain.applications.bank import Bank, dev
from flask_noderpc.chain.applications.bank.faucet import send
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.errors import NotSupported, TxNotFound, TxRejected, ValueNotAllowed
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.bank import BankNode
from flask_noderpc.testing.node import Node, app_for, serve

from ..helpers.until import until
from .bank_txs import ALICE, BOB, CHAIN_ID, NOBODY, Draft, account, balance, draft
from .conftest import Open

METHODS = (
    "dev_faucet",
    "dev_failNextTx",
    "dev_freezeMempool",
    "dev_increaseTime",
    "dev_mine",
    "dev_revert",
    "dev_snapshot",
)


def reply(url: str, method: str, headers: dict[str, str] | None = None, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    sent = {"Content-Type": "application/json", **(headers or {})}
    try:
        with urlopen(Request(url, json.dumps(body).encode(), sent)) as response:
            return json.load(response)
    except HTTPError as error:
        return json.load(error)


def call(node: BankNode, method: str, **params: Any) -> Any:
    answer = reply(node.url, method, **params)
    assert "result" in answer, answer
    return answer["result"]


def refusal(node: BankNode, method: str, **params: Any) -> str:
    error = reply(node.url, method, **params)["error"]
    return str(error["data"])


def handed_in(node: BankNode, **fields: Any) -> tuple[bytes, dict[str, Any]]:
    raw = Draft(chain_id=node.chain.genesis().chain_id, **fields).signed()
    check = call(node, "broadcast_tx_sync", tx=b64encode(raw).decode())
    return tx_hash(raw), check


def is_in_block(node: BankNode, found: bytes) -> bool:
    try:
        node.chain.tx(found)
    except TxNotFound:
        return False
    return True


def result_of(node: BankNode, found: bytes) -> ExecTxResult:
    until(lambda: is_in_block(node, found), "the transaction is in a block")
    return node.chain.tx(found).result


def test_blocks_are_made_by_hand_and_taken_back(noderpc_bank: BankNode) -> None:
    before = noderpc_bank.chain.latest_height()
    number = call(noderpc_bank, "dev_snapshot")

    assert call(noderpc_bank, "dev_mine") == before + 1
    assert call(noderpc_bank, "dev_mine", blocks=3) == before + 4
    assert call(noderpc_bank, "dev_revert", id=number) is True
    assert noderpc_bank.chain.latest_height() == before
    assert call(noderpc_bank, "dev_revert", id=number) is False
    assert "blocks is from 0 to 10000" in refusal(noderpc_bank, "dev_mine", blocks=10_001)


def test_the_clock_of_the_chain_goes_ahead(noderpc_bank: BankNode) -> None:
    def time() -> int:
        height = noderpc_bank.chain.latest_height()
        return noderpc_bank.chain.block_meta(height).header.time // 10**9

    before = time()
    assert call(noderpc_bank, "dev_increaseTime", seconds=86_400) >= 86_400
    call(noderpc_bank, "dev_mine")
    assert time() >= before + 86_400
    later = time() + 1_000
    call(noderpc_bank, "dev_mine", time=later)
    assert time() == later
    assert "lower than or equal" in refusal(noderpc_bank, "dev_mine", time=1)
    assert "seconds is from 0" in refusal(noderpc_bank, "dev_increaseTime", seconds=-1)


def test_the_next_transaction_fails_in_its_block(noderpc_bank: BankNode) -> None:
    chain = noderpc_bank.chain
    call(noderpc_bank, "dev_failNextTx", code=7, codespace="mine", log="out of luck")

    first, check = handed_in(noderpc_bank)

    assert check["code"] == 0
    failed = result_of(noderpc_bank, first)
    assert (failed.code, failed.codespace, failed.log) == (7, "mine", "out of luck")
    # As one whose messages fail: its fee is paid, and its sequence is used.
    assert [event.type for event in failed.events][:2] == ["coin_spent", "coin_received"]
    assert account(chain, ALICE)[1] == 1
    assert balance(chain, BOB) == 1_000_000_000_000
    second, _ = handed_in(noderpc_bank, sequence=1)
    assert result_of(noderpc_bank, second).code == 0
    assert "code is from 1" in refusal(noderpc_bank, "dev_failNextTx", code=0)


def test_the_next_transaction_is_refused_when_it_is_sent(noderpc_bank: BankNode) -> None:
    call(noderpc_bank, "dev_failNextTx", code=20, log="mempool is full", check=True)

    first, check = handed_in(noderpc_bank)

    assert (check["code"], check["codespace"]) == (20, "sdk")
    assert check["log"] == "mempool is full"
    assert not is_in_block(noderpc_bank, first)
    second, check = handed_in(noderpc_bank)
    assert check["code"] == 0
    assert result_of(noderpc_bank, second).code == 0


def test_a_frozen_mempool_lets_transactions_wait(noderpc_bank: BankNode) -> None:
    chain = noderpc_bank.chain
    call(noderpc_bank, "dev_freezeMempool")

    waiting, check = handed_in(noderpc_bank)

    assert check["code"] == 0
    height = call(noderpc_bank, "dev_mine", blocks=2)
    assert not is_in_block(noderpc_bank, waiting)
    assert not chain.block(height)[1].txs
    assert call(noderpc_bank, "num_unconfirmed_txs")["n_txs"] == "1"
    call(noderpc_bank, "dev_freezeMempool", on=False)
    assert result_of(noderpc_bank, waiting).code == 0


def test_the_faucet_sends_coins(noderpc_bank: BankNode) -> None:
    chain = noderpc_bank.chain

    sent = [
        call(noderpc_bank, "dev_faucet", address=NOBODY, coins="7token,5stake")
        for _ in range(3)
    ]

    for each in sent:
        assert each["code"] == 0, each
        assert result_of(noderpc_bank, bytes.fromhex(each["hash"])).code == 0
    assert (balance(chain, NOBODY), balance(chain, NOBODY, "stake")) == (21, 15)
    wrong = refusal(noderpc_bank, "dev_faucet", address="nobody", coins="1token")
    assert "decoding bech32 failed" in wrong
    assert "invalid coin" in refusal(noderpc_bank, "dev_faucet", address=NOBODY, coins="x")
    assert "no coins" in refusal(noderpc_bank, "dev_faucet", address=NOBODY, coins="")


def test_a_test_controls_the_chain_from_python(noderpc_bank: BankNode) -> None:
    chain = noderpc_bank.chain
    with noderpc_bank.snapshot():
        noderpc_bank.fail_next_tx(5, log="no funds", check=True)
        with pytest.raises(TxRejected, match="no funds"):
            noderpc_bank.faucet(NOBODY, "1token")
        noderpc_bank.fail_next_tx(11, log="out of gas")
        failed = noderpc_bank.faucet(NOBODY, "1token")
        assert result_of(noderpc_bank, bytes.fromhex(failed)).code == 11
        noderpc_bank.freeze()
        waiting = bytes.fromhex(noderpc_bank.faucet(NOBODY, "2token"))
        noderpc_bank.mine()
        assert not is_in_block(noderpc_bank, waiting)
        noderpc_bank.freeze(on=False)
        assert result_of(noderpc_bank, waiting).code == 0
        noderpc_bank.increase_time(1_000)
        noderpc_bank.freeze()
        noderpc_bank.fail_next_tx(11)

    # Neither is left of the snapshot.
    sent = noderpc_bank.faucet(NOBODY, "3token")
    assert result_of(noderpc_bank, bytes.fromhex(sent)).code == 0
    assert balance(chain, NOBODY) == 3


def test_only_those_on_this_machine_control_the_chain(noderpc_bank: BankNode) -> None:
    for headers in ({"Origin": "https://other.example"}, {"X-Forwarded-For": "192.0.2.1"}):
        for method in METHODS:
            answer = reply(noderpc_bank.url, method, headers)
            assert "error" in answer, method
    before = noderpc_bank.chain.latest_height()
    reply(noderpc_bank.url, "dev_mine", {"X-Forwarded-For": "192.0.2.1"})
    assert noderpc_bank.chain.latest_height() == before


def test_other_nodes_have_no_such_methods(noderpc_node: Node) -> None:
    for method in METHODS:
        answer = reply(noderpc_node.url, method)
        assert answer["error"]["code"] == -32601, method


def test_a_failed_block_leaves_the_failure_for_the_next_one(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
    failure = ExecTxResult(code=9, log="on request", codespace="mine")
    chain.control.fail_next_tx(failure)

    # One that its own check refuses is not the next.
    for number, raw in enumerate((draft(0).signed(), draft(1).signed())):
        assert chain.mempool.submit(raw).code == 0, number
    found = chain.results(chain.produce()).tx_results

    assert [each.code for each in found] == [9, 0]


def test_a_faucet_needs_a_bank_with_the_accounts(open_chain: Open) -> None:
    plain = open_chain()
    with pytest.raises(NotSupported, match="no faucet"):
        send(plain, ALICE, "1token")


def test_the_faucet_pays_for_gas(open_chain: Open) -> None:
    chain = open_chain(
        application=lambda state: Bank(state, min_gas_prices="0.025stake"),
        chain_id=CHAIN_ID,
        app_state=dev.app_state(),
    )
    chain.produce()

    _, check = send(chain, NOBODY, "1token")

    assert check.code == 0, check.log
    (found,) = chain.results(chain.produce()).tx_results
    assert found.code == 0
    assert balance(chain, ALICE, "stake") == 1_000_000_000_000 - 5_000
    with pytest.raises(ValueNotAllowed, match="hrp does not match"):
        send(chain, "other1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqyg23fl", "1token")


def test_a_mount_of_a_host_controls_its_chain(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
    with serve(app_for(chain, dev=True)) as url:
        before = chain.latest_height()
        assert reply(url, "dev_mine", blocks=2)["result"] == before + 2
