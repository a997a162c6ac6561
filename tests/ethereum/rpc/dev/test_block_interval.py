"""Tests of interval mining on a development chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain import block_scheduler
from flask_noderpc.testing.node import serve
from tests.helpers.until import PATIENCE

from .fixtures import FIRST, STRANGER, asked, chain_of, dev_app


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedChain, Any]]:
    """Yield a chain with a producer, and a client."""
    app = dev_app(tmp_path_factory.mktemp("paced"), produce=True)
    with serve(app) as url:
        yield chain_of(app), Web3(HTTPProvider(f"{url}/evm"))
    chain_of(app).close()


def done(w3: Any, method: str, *params: Any) -> Any:
    answer = asked(w3, method, *params)
    assert "error" not in answer, answer
    return answer["result"]


def sent(w3: Any, **more: Any) -> Any:
    tx = {"from": FIRST, "to": STRANGER, "value": 1, "gas": 21_000, **more}
    return w3.eth.send_transaction(tx)


def test_automine_mines_before_send_returns(
    paced: tuple[EmbeddedChain, Any],
) -> None:
    _, w3 = paced
    assert done(w3, "evm_setAutomine", True) is None
    assert done(w3, "hardhat_getAutomine") is True
    for _ in range(3):
        before = w3.eth.get_balance(STRANGER)
        tx_hash = sent(w3)
        assert w3.eth.get_transaction_receipt(tx_hash)["status"] == 1
        assert w3.eth.get_balance(STRANGER) == before + 1


def test_a_transaction_does_not_wait_for_a_short_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock stands still, so that an interval would never end.
    monkeypatch.setattr(block_scheduler, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    app = dev_app(tmp_path, produce=True, block_interval=0.1)
    with serve(app) as url, closing(chain_of(app)):
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        for _ in range(3):
            assert (
                w3.eth.wait_for_transaction_receipt(sent(w3), timeout=PATIENCE)["status"] == 1
            )


def test_sending_does_not_wait_for_a_block_in_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = dev_app(tmp_path)
    chain, begun, resume = chain_of(app), Event(), Event()
    with serve(app) as url, closing(chain):
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        sent(w3)
        assert chain.store.abci is not None
        run = chain.store.abci.finalize_block

        def slow(block: BlockRequest) -> BlockExecution:
            begun.set()
            assert resume.wait(PATIENCE)
            return run(block)

        monkeypatch.setattr(chain.store.abci, "finalize_block", slow)
        maker = Thread(target=chain.produce)
        maker.start()
        try:
            assert begun.wait(PATIENCE)
            tx_hash = sent(w3, nonce=1)
            assert maker.is_alive()
        finally:
            resume.set()
            maker.join()
        chain.produce()
        assert w3.eth.get_transaction_receipt(tx_hash)["blockNumber"] == 2


def test_future_nonces_neither_block_their_sender_nor_produce_blocks(
    paced: tuple[EmbeddedChain, Any],
) -> None:
    chain, w3 = paced
    done(w3, "evm_setAutomine", True)
    behind = sent(w3, nonce=w3.eth.get_transaction_count(FIRST) + 1)
    # The producer may make one more block before it notices, and none after it.
    one_more = chain.reads.latest_height() + 1
    assert chain.reads.wait_for_height(one_more, 0.5) <= one_more
    sent(w3)
    assert w3.eth.wait_for_transaction_receipt(behind, timeout=PATIENCE)["status"] == 1


def test_no_block_is_mined_once_automine_is_off(paced: tuple[EmbeddedChain, Any]) -> None:
    chain, w3 = paced
    done(w3, "evm_setAutomine", True)
    sent(w3)
    assert done(w3, "evm_setAutomine", False) is None
    assert done(w3, "anvil_getAutomine") is False
    height = chain.reads.latest_height()
    tx_hash = sent(w3)
    assert chain.reads.wait_for_height(height, 0.3) == height
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["transactions"] == [tx_hash]


@pytest.mark.parametrize(
    ("method", "number"), [("evm_setIntervalMining", 100), ("anvil_setIntervalMining", 1)]
)
def test_interval_mining_mines_blocks(
    paced: tuple[EmbeddedChain, Any], method: str, number: int
) -> None:
    chain, w3 = paced
    done(w3, method, number)
    assert done(w3, "anvil_getAutomine") is False
    height = chain.reads.latest_height()
    for _ in range(2):
        height += 1
        assert chain.reads.wait_for_height(height - 1, PATIENCE) >= height
    done(w3, method, 0)
    # A block may be in production.
    chain.control.mine()
    height = chain.reads.latest_height()
    assert chain.reads.wait_for_height(height, 0.3) == height
