"""Tests of polled filters: each change is returned once, and filters expire."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.domain import search
from flask_noderpc.ethereum.rpc.subscriptions import filters
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.node import app_for

from ..chain import CONTRACT, TOPIC_A, TOPIC_B, transfer
from ..transports import TRANSPORTS, talking
from .fixtures import MINUTE, NOT_FOUND, Ask, Time, asked, asking, data, emit


@pytest.fixture(params=TRANSPORTS)
def ask(request: pytest.FixtureRequest, chain: EmbeddedChain) -> Iterator[Ask]:
    with talking(app_for(chain, json_rpc_enable=True), request.param) as say:
        yield partial(asked, say)


def test_a_block_filter_returns_hashes_of_new_blocks(chain: EmbeddedChain, ask: Ask) -> None:
    chain.produce()
    own = ask("newBlockFilter")
    assert ask("getFilterChanges", own) == []

    chain.produce()
    chain.produce()

    hashes = [ask("getBlockByNumber", height, False)["hash"] for height in ("0x2", "0x3")]
    assert ask("getFilterChanges", own) == hashes
    assert ask("getFilterChanges", own) == []


def test_a_log_filter_returns_new_matching_logs(chain: EmbeddedChain, ask: Ask) -> None:
    emit(chain, 0, TOPIC_A)
    own = ask("newFilter", {"fromBlock": "0x0", "topics": [data(TOPIC_A)]})
    assert ask("getFilterChanges", own) == []

    emit(chain, 1, TOPIC_B)
    emit(chain, 2, TOPIC_A, TOPIC_B)

    (received,) = ask("getFilterChanges", own)
    assert received["blockNumber"] == "0x3"
    assert received["topics"] == [data(TOPIC_A), data(TOPIC_B)]
    assert ask("getFilterChanges", own) == []
    # Only the filter's own range is searched, as by eth_getLogs.
    assert [log["blockNumber"] for log in ask("getFilterLogs", own)] == ["0x1", "0x3"]


def test_a_log_filter_ends_at_to_block(chain: EmbeddedChain, ask: Ask) -> None:
    chain.produce()
    own = ask("newFilter", {"fromBlock": "0x3", "toBlock": "0x4"})

    received = []
    for nonce in range(5):
        emit(chain, nonce, TOPIC_A)
        received += ask("getFilterChanges", own)

    assert [log["blockNumber"] for log in received] == ["0x3", "0x4"]


def test_a_pending_filter_returns_new_pending_transactions(
    chain: EmbeddedChain, ask: Ask
) -> None:
    chain.mempool.submit(transfer(0))
    hashes, whole = (ask("newPendingTransactionFilter", *rest) for rest in ((), (True,)))
    assert ask("getFilterChanges", hashes) == []

    chain.mempool.submit(transfer(1))
    chain.mempool.submit(transfer(2))

    expected = [data(keccak(transfer(nonce))) for nonce in (1, 2)]
    assert ask("getFilterChanges", hashes) == expected
    assert ask("getFilterChanges", hashes) == []
    received = ask("getFilterChanges", whole)
    assert [tx["hash"] for tx in received] == expected
    assert received[0]["blockHash"] is None


def test_a_pending_filter_returns_transactions_mined_at_once(
    chain: EmbeddedChain, ask: Ask
) -> None:
    hashes, whole = (ask("newPendingTransactionFilter", *rest) for rest in ((), (True,)))
    chain.mempool.submit(transfer(0))
    chain.mempool.submit(transfer(1))
    chain.produce()
    chain.mempool.submit(transfer(2))

    expected = [data(keccak(transfer(nonce))) for nonce in (0, 1, 2)]
    assert ask("getFilterChanges", hashes) == expected
    assert [tx["hash"] for tx in ask("getFilterChanges", whole)] == expected
    chain.produce()
    assert ask("getFilterChanges", hashes) == []


def test_ids_are_hex_without_zeros_in_front(ask: Ask) -> None:
    ids = {ask("newBlockFilter") for _ in range(50)}

    assert len(ids) == 50
    assert all(re.fullmatch("0x(0|[1-9a-f][0-9a-f]{0,31})", own) for own in ids)


def test_eth_uninstall_filter_removes_a_filter(ask: Ask) -> None:
    own = ask("newBlockFilter")

    assert ask("uninstallFilter", own) is True
    assert ask("uninstallFilter", own) is False
    assert ask("getFilterChanges", own) == NOT_FOUND
    assert ask("getFilterLogs", own) == NOT_FOUND


def test_only_a_log_filter_has_logs(ask: Ask) -> None:
    assert ask("getFilterLogs", ask("newBlockFilter")) == NOT_FOUND
    assert ask("getFilterLogs", ask("newPendingTransactionFilter")) == NOT_FOUND


def test_a_filter_lives_while_it_is_polled(clock: Time, ask: Ask) -> None:
    polled, idle = ask("newFilter", {}), ask("newFilter", {})
    for _ in range(3):
        clock.now += 4 * MINUTE
        assert ask("getFilterChanges", polled) == []

    assert ask("getFilterChanges", idle) == NOT_FOUND
    assert ask("uninstallFilter", idle) is False


def test_asking_for_all_logs_is_no_poll(clock: Time, chain: EmbeddedChain, ask: Ask) -> None:
    chain.produce()
    own = ask("newFilter", {})
    clock.now += 4 * MINUTE
    assert ask("getFilterLogs", own) == []
    clock.now += 4 * MINUTE

    assert ask("getFilterLogs", own) == NOT_FOUND


def test_filters_over_the_cap_are_refused(chain: EmbeddedChain, clock: Time) -> None:
    ask = asking(chain, evm_filter_cap=3)
    for method in ("newFilter", "newBlockFilter", "newPendingTransactionFilter"):
        ask(method, *([{}] if method == "newFilter" else []))

    refused = ask("newBlockFilter")
    assert refused["code"] == -32000
    assert refused["message"].startswith("3 filters exist already")
    assert "NODERPC_EVM_FILTER_CAP" in refused["message"]

    # Filters that are not polled make room for new ones.
    clock.now += 6 * MINUTE
    assert ask("newBlockFilter").startswith("0x")


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"fromBlock": "pending"}, "pending logs are not supported"),
        ({"toBlock": "pending"}, "pending logs are not supported"),
        ({"fromBlock": "0x5", "toBlock": "0x4"}, "invalid block range params"),
        ({"toBlock": "0x4"}, "invalid block range params"),
        ({"toBlock": "earliest"}, "invalid block range params"),
        ({"fromBlock": "0x0", "toBlock": "0x2712"}, "exceed maximum block range 10000"),
        ({"topics": [None] * 5}, "invalid argument 0: exceed max topics"),
    ],
)
def test_a_filter_of_no_new_logs_is_refused(
    ask: Ask, expected: dict[str, object], text: str
) -> None:
    refused = ask("newFilter", expected)

    assert refused["code"] == -32602
    assert refused["message"].startswith(text)


@pytest.mark.parametrize(
    "expected",
    [
        {"fromBlock": "latest", "toBlock": "latest"},
        {"fromBlock": "0x1", "toBlock": "0x1"},
        {"fromBlock": "0x1", "toBlock": "latest"},
        {"fromBlock": "earliest"},
        {"toBlock": "finalized"},
        {"address": data(CONTRACT), "topics": [None, [data(TOPIC_A), data(TOPIC_B)]]},
        {"blockHash": data(TOPIC_A)},
    ],
)
def test_every_other_filter_is_taken(ask: Ask, expected: dict[str, object]) -> None:
    assert ask("getFilterChanges", ask("newFilter", expected)) == []


def test_a_poller_that_was_away_gets_one_page_after_the_other(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "_MAX_BLOCKS", 2)
    ask = asking(chain, evm_logs_cap=1)
    blocks, logs = ask("newBlockFilter"), ask("newFilter", {})
    for nonce in range(5):
        emit(chain, nonce, TOPIC_A)

    received = [len(ask("getFilterChanges", blocks)) for _ in range(4)]
    assert received == [2, 2, 1, 0]
    pages = [ask("getFilterChanges", logs) for _ in range(6)]
    assert [log["blockNumber"] for page in pages for log in page] == [
        hex(height) for height in range(1, 6)
    ]
    assert max(map(len, pages)) == 1


def test_a_poll_beyond_its_limit_continues_after_the_returned_logs(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = asking(chain)("newFilter", {})
    for nonce in range(3):
        emit(chain, nonce, TOPIC_A)

    # A block and its transaction count as two rows.
    with monkeypatch.context() as patch:
        patch.setattr(search, "MIN_ROWS", 1)
        patch.setattr(search, "ROWS_PER_S", 0)
        assert "more than 1 rows" in asking(chain)("getFilterChanges", own)["message"]
    assert len(asking(chain)("getFilterChanges", own)) == 3
