"""Tests of the control of a development chain of the application ``bank``, by JSON-RPC and from
Python."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.bank.faucet import send
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.errors import NotSupported, TxNotFound, TxRejected, ValueNotAllowed
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.node import Node, app_for, serve

from ...chain.conftest import Open
from ...helpers.until import until
from .bank_txs import ALICE, BOB, CHAIN_ID, NOBODY, Draft, account, balance, draft

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
    raw = Draft(chain_id=node.chain.reads.genesis().chain_id, **fields).signed()
    check = call(node, "broadcast_tx_sync", tx=b64encode(raw).decode())
    return tx_hash(raw), check


def is_in_block(node: BankNode, found: bytes) -> bool:
    try:
        node.chain.reads.tx(found)
    except TxNotFound:
        return False
    return True


def result_of(node: BankNode, found: bytes) -> ExecTxResult:
    until(lambda: is_in_block(node, found), "the transaction is in a block")
    return node.chain.reads.tx(found).result


def test_blocks_are_made_by_hand_and_taken_back(noderpc_bank: BankNode) -> None:
    before = noderpc_bank.chain.reads.latest_height()
    number = call(noderpc_bank, "dev_snapshot")

    assert call(noderpc_bank, "dev_mine") == before + 1
    assert call(noderpc_bank, "dev_mine", blocks=3) == before + 4
    assert call(noderpc_bank, "dev_revert", id=number) is True
    assert noderpc_bank.chain.reads.latest_height() == before
    assert call(noderpc_bank, "dev_revert", id=number) is False
    assert "blocks: expected 0 to 100000" in refusal(noderpc_bank, "dev_mine", blocks=100_001)


def test_many_blocks_are_made_and_taken_back(noderpc_bank: BankNode) -> None:
    """Each block has its own state, although many are stored together."""
    node, chain = noderpc_bank, noderpc_bank.chain

    def pay() -> None:
        node.faucet(node.accounts[1], "7token")
        until(lambda: not chain.mempool.pending(1).txs, "it is in a block")

    pay()
    height = chain.reads.latest_height()
    with node.snapshot():
        assert node.mine(620) == height + 620
        pay()
        node.mine(120)
        assert verify_chain(chain.reads) == chain.reads.latest_height()
        assert chain.store.abci is not None
        chain.store.abci.verify_state(chain.reads)
    assert chain.reads.latest_height() == height
    pay()
    node.mine(3)
    assert verify_chain(chain.reads) == chain.reads.latest_height()


def test_the_clock_of_the_chain_goes_ahead(noderpc_bank: BankNode) -> None:
    def time() -> int:
        height = noderpc_bank.chain.reads.latest_height()
        return noderpc_bank.chain.reads.block_meta(height).header.time // 10**9

    before = time()
    assert call(noderpc_bank, "dev_increaseTime", seconds=86_400) >= 86_400
    call(noderpc_bank, "dev_mine")
    assert time() >= before + 86_400
    later = time() + 1_000
    call(noderpc_bank, "dev_mine", time=later)
    assert time() == later
    assert "lower than or equal" in refusal(noderpc_bank, "dev_mine", time=1)
    assert "seconds: expected 0" in refusal(noderpc_bank, "dev_increaseTime", seconds=-1)


def test_the_next_transaction_fails_in_its_block(noderpc_bank: BankNode) -> None:
    chain = noderpc_bank.chain
    call(noderpc_bank, "dev_failNextTx", code=7, codespace="mine", log="out of luck")

    first, check = handed_in(noderpc_bank)

    assert check["code"] == 0
    failed = result_of(noderpc_bank, first)
    assert (failed.code, failed.codespace, failed.log) == (7, "mine", "out of luck")
    # Like a transaction whose messages fail, it pays its fee and uses its sequence.
    assert [event.type for event in failed.events][:2] == ["coin_spent", "coin_received"]
    assert account(chain, ALICE)[1] == 1
    assert balance(chain, BOB) == 1_000_000_000_000
    second, _ = handed_in(noderpc_bank, sequence=1)
    assert result_of(noderpc_bank, second).code == 0
    assert "code: expected 1" in refusal(noderpc_bank, "dev_failNextTx", code=0)


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
    assert not chain.reads.block(height)[1].txs
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
    assert "got none" in refusal(noderpc_bank, "dev_faucet", address=NOBODY, coins="")


@pytest.mark.parametrize("dialect", ["document", "comet-0.38", "comet-1.0"])
def test_a_refused_value_is_an_invalid_parameter(noderpc_bank: BankNode, dialect: str) -> None:
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("dev_faucet", {"address": NOBODY, "coins": "garbage"}),
        ("dev_faucet", {"address": NOBODY, "coins": "5nothing"}),
        ("dev_faucet", {"address": "nobody", "coins": "1token"}),
        ("dev_mine", {"blocks": -1}),
        ("dev_mine", {"time": 1}),
        ("dev_increaseTime", {"seconds": -1}),
        ("dev_failNextTx", {"code": 0}),
        ("dev_missBlocks", {"validator": "x", "blocks": 1}),
        ("dev_equivocate", {"validator": "x"}),
    )
    with serve(app_for(noderpc_bank.chain, dialect=dialect, dev=True)) as url:
        for method, params in wrong:
            error = reply(url, method, **params)["error"]
            assert (error["code"], error["message"]) == (-32602, "Invalid params"), error
            assert error["data"], method


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

    # Both changes are gone after the revert.
    sent = noderpc_bank.faucet(NOBODY, "3token")
    assert result_of(noderpc_bank, bytes.fromhex(sent)).code == 0
    assert balance(chain, NOBODY) == 3


def test_only_those_on_this_machine_control_the_chain(noderpc_bank: BankNode) -> None:
    for headers in ({"Origin": "https://other.example"}, {"X-Forwarded-For": "192.0.2.1"}):
        for method in METHODS:
            answer = reply(noderpc_bank.url, method, headers)
            assert "error" in answer, method
    before = noderpc_bank.chain.reads.latest_height()
    reply(noderpc_bank.url, "dev_mine", {"X-Forwarded-For": "192.0.2.1"})
    assert noderpc_bank.chain.reads.latest_height() == before


def test_other_nodes_have_no_such_methods(noderpc_node: Node) -> None:
    for method in METHODS:
        answer = reply(noderpc_node.url, method)
        assert answer["error"]["code"] == -32601, method


def test_a_failed_block_leaves_the_failure_for_the_next_one(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
    failure = ExecTxResult(code=9, log="on request", codespace="mine")
    chain.control.fail_next_tx(failure)

    # The failure is for the block: both transactions pass the check before it.
    for number, raw in enumerate((draft(0).signed(), draft(1).signed())):
        assert chain.mempool.submit(raw).code == 0, number
    found = chain.reads.results(chain.produce()).tx_results

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
    (found,) = chain.reads.results(chain.produce()).tx_results
    assert found.code == 0
    assert balance(chain, ALICE, "stake") == 1_000_000_000_000 - 5_000
    with pytest.raises(ValueNotAllowed, match="hrp does not match"):
        send(chain, "other1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqyg23fl", "1token")


def test_a_mount_of_a_host_controls_its_chain(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
    with serve(app_for(chain, dev=True)) as url:
        before = chain.reads.latest_height()
        assert reply(url, "dev_mine", blocks=2)["result"] == before + 2


def waiting(node: BankNode) -> int:
    return int(call(node, "num_unconfirmed_txs")["n_txs"])


def test_what_waited_waits_again_after_a_revert(noderpc_bank: BankNode) -> None:
    call(noderpc_bank, "dev_freezeMempool")
    first, _ = handed_in(noderpc_bank)
    second, _ = handed_in(noderpc_bank, sequence=1)
    number = call(noderpc_bank, "dev_snapshot")
    call(noderpc_bank, "dev_freezeMempool", on=False)
    for each in (first, second):
        assert result_of(noderpc_bank, each).code == 0

    assert call(noderpc_bank, "dev_revert", id=number) is True

    assert waiting(noderpc_bank) == 2
    call(noderpc_bank, "dev_mine", blocks=2)
    assert waiting(noderpc_bank) == 2
    call(noderpc_bank, "dev_freezeMempool", on=False)
    for each in (first, second):
        assert result_of(noderpc_bank, each).code == 0


def test_what_came_after_a_snapshot_is_gone_after_the_revert(noderpc_bank: BankNode) -> None:
    number = call(noderpc_bank, "dev_snapshot")
    call(noderpc_bank, "dev_freezeMempool")
    raw = Draft(chain_id=noderpc_bank.chain.reads.genesis().chain_id).signed()
    sent = {"tx": b64encode(raw).decode()}
    assert call(noderpc_bank, "broadcast_tx_sync", **sent)["code"] == 0

    assert call(noderpc_bank, "dev_revert", id=number) is True

    assert waiting(noderpc_bank) == 0
    call(noderpc_bank, "dev_mine")
    assert account(noderpc_bank.chain, ALICE) == (0, 0)
    # The same bytes may be sent again.
    assert call(noderpc_bank, "broadcast_tx_sync", **sent)["code"] == 0
    assert result_of(noderpc_bank, tx_hash(raw)).code == 0


def test_balances_at_old_heights_are_those_of_the_chain_it_is_now(
    noderpc_bank: BankNode,
) -> None:
    chain = noderpc_bank.chain
    noderpc_bank.mine()
    before = chain.reads.latest_height()
    number = call(noderpc_bank, "dev_snapshot")
    gone = noderpc_bank.faucet(NOBODY, "7token")
    assert result_of(noderpc_bank, bytes.fromhex(gone)).code == 0
    assert balance(chain, NOBODY) == 7

    assert call(noderpc_bank, "dev_revert", id=number) is True
    kept = noderpc_bank.faucet(NOBODY, "2token")
    assert result_of(noderpc_bank, bytes.fromhex(kept)).code == 0
    noderpc_bank.mine()

    heights = range(before, chain.reads.latest_height() + 1)
    assert {balance(chain, NOBODY, height=height) for height in heights} == {0, 2}
    assert balance(chain, NOBODY, height=before) == 0
    assert "not found" in str(reply(noderpc_bank.url, "tx", hash=b64_of(gone))["error"])


def b64_of(found: str) -> str:
    return b64encode(bytes.fromhex(found)).decode()


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("dev_mine", {"blocks": -1}, "blocks: expected 0 to 100000, got -1"),
        ("dev_mine", {"blocks": "many"}, "expected a 64-bit integer"),
        ("dev_mine", {"time": 1 << 62}, "timestamp: expected at most"),
        ("dev_mine", {"time": -1}, "lower than or equal"),
        ("dev_increaseTime", {}, "seconds: expected a value, got none"),
        ("dev_increaseTime", {"seconds": 1 << 40}, "seconds: expected 0"),
        ("dev_increaseTime", {"seconds": 1.5}, "64-bit integer"),
        ("dev_revert", {}, "id: expected a value, got none"),
        ("dev_revert", {"id": None}, "id: expected a value, got none"),
        ("dev_revert", {"id": 1 << 70}, "a 64-bit integer from"),
        ("dev_failNextTx", {}, "code: expected a value, got none"),
        ("dev_failNextTx", {"code": 1 << 32}, "code: expected 1 to 4294967295"),
        ("dev_failNextTx", {"code": 5, "check": 1}, "cannot unmarshal number"),
        ("dev_failNextTx", {"code": 5, "log": {"a": 1}}, "cannot unmarshal object"),
        ("dev_freezeMempool", {"on": "maybe"}, "cannot unmarshal string"),
        ("dev_faucet", {"address": NOBODY}, "got none"),
        ("dev_faucet", {"address": "x" * 5_000, "coins": "1token"}, "address 'xxx"),
        ("dev_faucet", {"address": NOBODY, "coins": "-1token"}, "invalid coin"),
        ("dev_faucet", {"address": NOBODY, "coins": "1token,1token"}, "duplicate denomination"),
        (
            "dev_faucet",
            {"address": NOBODY, "coins": "9" * 90 + "token"},
            "integer out of range",
        ),
        ("dev_faucet", {"address": NOBODY, "coins": [1]}, "cannot unmarshal array"),
    ],
)
def test_wrong_parameters_are_one_error(
    noderpc_bank: BankNode,
    caplog: pytest.LogCaptureFixture,
    method: str,
    params: dict[str, Any],
    words: str,
) -> None:
    before = noderpc_bank.chain.reads.latest_height()

    error = reply(noderpc_bank.url, method, **params)["error"]

    assert words in f"{error['message']} {error['data']}"
    assert len(str(error)) < 1_000
    assert "Traceback" not in caplog.text
    assert noderpc_bank.chain.reads.latest_height() == before


def test_the_faucet_says_what_it_does_not_have(noderpc_bank: BankNode) -> None:
    sent = call(noderpc_bank, "dev_faucet", address=NOBODY, coins="9000000000000token")
    # As in the SDK, the check of a transfer only looks at fee, sequence and signature.
    found = result_of(noderpc_bank, bytes.fromhex(sent["hash"]))
    assert (found.code, found.codespace) == (5, "sdk")
    assert "insufficient" in found.log


def test_a_failure_asked_for_while_a_block_is_made_is_for_the_next(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state())
    app = chain.store.abci
    assert app is not None
    chain.produce()
    stored = chain.store.append_block

    def store_and_ask(*given: Any, **more: Any) -> Any:
        done = stored(*given, **more)
        app.fail_next_tx(ExecTxResult(code=9, codespace="mine"))
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain.store, "append_block", store_and_ask)
        chain.produce()
    assert [chain.mempool.submit(draft(at).signed()).code for at in range(2)] == [0, 0]

    found = chain.reads.results(chain.produce()).tx_results

    assert [each.code for each in found] == [9, 0]


def test_a_revert_too_far_is_refused_and_changes_nothing(open_chain: Open) -> None:
    chain = open_chain(
        application=lambda state: Bank(state, retained_heights=2),
        chain_id=CHAIN_ID,
        app_state=dev.app_state(),
        dev=True,
    )
    chain.control.mine()
    with serve(app_for(chain, dev=True)) as url:
        number = reply(url, "dev_snapshot")["result"]
        height = reply(url, "dev_mine", blocks=5)["result"]
        assert chain.mempool.submit(draft(0).signed()).code == 0

        error = reply(url, "dev_revert", id=number)["error"]

        assert "NODERPC_BANK_HEIGHTS" in str(error["data"])
        assert chain.reads.latest_height() == height
        # The transaction waits, and gets into the next block.
        reply(url, "dev_mine")
        assert account(chain, ALICE)[1] == 1


def test_any_chain_is_made_by_hand_and_only_a_bank_fails_on_request(open_chain: Open) -> None:
    chain = open_chain(dev=True)
    with serve(app_for(chain, dev=True)) as url:
        number = reply(url, "dev_snapshot")["result"]
        reply(url, "dev_freezeMempool")
        chain.mempool.submit(b"a=1")
        assert reply(url, "dev_mine", blocks=2)["result"] == 2
        assert chain.reads.block(2)[1].txs == ()
        reply(url, "dev_freezeMempool", on=False)
        reply(url, "dev_mine")
        assert chain.reads.block(3)[1].txs == (b"a=1",)
        cure = "NODERPC_APPLICATION = 'bank'"
        for method, params in (
            ("dev_revert", {"id": number}),
            ("dev_failNextTx", {"code": 5}),
            ("dev_faucet", {"address": NOBODY, "coins": "1token"}),
        ):
            assert cure in reply(url, method, **params)["error"]["data"], method
        assert chain.reads.latest_height() == 3
        # Blocks after the failure are made as before.
        chain.mempool.submit(b"b=2")
        reply(url, "dev_mine")
        assert chain.reads.block(4)[1].txs == (b"b=2",)


def test_a_chain_that_is_not_for_development_names_what_brings_control(
    open_chain: Open,
) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state())
    with serve(app_for(chain)) as url:
        for method in METHODS:
            error = reply(url, method)["error"]
            assert error["code"] == -32601, method
            assert "NODERPC_DEV enables it" in str(error), method
            with pytest.raises(HTTPError):
                urlopen(f"{url}/{method}")
    # The mount's setting alone does not make its chain a development chain.
    with serve(app_for(chain, dev=True)) as url:
        error = reply(url, "dev_mine")["error"]
        assert "set NODERPC_DEV" in str(error)
    assert chain.reads.latest_height() == 0


def test_a_process_that_produces_no_blocks_names_the_cure(open_chain: Open) -> None:
    first, second = (
        open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
        for _ in range(2)
    )
    first.produce()
    with serve(app_for(second, dev=True)) as url:
        assert "run one worker" in reply(url, "dev_mine")["error"]["data"]


def test_pages_of_other_sites_control_nothing_by_a_link(noderpc_bank: BankNode) -> None:
    before = noderpc_bank.chain.reads.latest_height()
    link = f"{noderpc_bank.url}/dev_mine?blocks=2"
    for header in ({"Sec-Fetch-Site": "cross-site"}, {"Referer": "https://other.example/"}):
        with pytest.raises(HTTPError):
            urlopen(Request(link, headers=header))
    assert noderpc_bank.chain.reads.latest_height() == before
    with urlopen(link):
        assert noderpc_bank.chain.reads.latest_height() == before + 2


@pytest.mark.parametrize("coins", ["5nothing", "5stake,7nothing"])
def test_the_faucet_refuses_coins_that_nobody_has(noderpc_bank: BankNode, coins: str) -> None:
    told = refusal(noderpc_bank, "dev_faucet", address=BOB, coins=coins)

    assert "coins: expected coins that this chain has (stake, token), got nothing" in told
