"""Tests that transactions which take longer than a block may do not halt the chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from flask_noderpc.backends.base import location
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.errors import BlockNotExecuted, ExecutorDied
from flask_noderpc.ethereum.application import state as runtime
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.patches import Change, app_state, patch_tx
from flask_noderpc.ethereum.application.state import ChainRules, ExecutionLimits
from flask_noderpc.ethereum.engine.base import Job
from flask_noderpc.ethereum.state import EVM_STATE

from ..ethereum.protocol.signing import ACCOUNT, CHAIN_ID, OTHER, sender, signed, transfer
from ..helpers.until import PATIENCE, until

# EIP-152: each round costs one gas; these rounds take minutes, even if blake2b-py is installed.
BLAKE2 = "0x" + "00" * 19 + "09"
ROUNDS = 4_000_000_000
OTHERS = 9


T = TypeVar("T")


class EvmRuntime(runtime.EvmRuntime):
    """A runtime whose executor for blocks can be made to fail each time."""

    broken: Exception | None = None

    def execute(self, job: Job[T]) -> T:
        if self.broken is not None:
            raise self.broken
        return super().execute(job)


@pytest.fixture
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedChain]:
    path = tmp_path / "chain.db"
    # Blocks of other transactions must not run into the time limit.
    limits = ExecutionLimits(executors=1, block_s=getattr(request, "param", PATIENCE))
    chain = EmbeddedChain(
        path,
        produce=False,
        schedule=BlockSchedule(interval_s=0.01, lease_s=0.2),
        application=lambda state: EvmApplication(
            state,
            EvmRuntime(state, location.location_of(path).path, limits),
            CHAIN_ID,
            dev=True,
            rules=ChainRules(caps_tx_gas=False),
        ),
        dev=True,
        app_state=app_state({sender(ACCOUNT): 10**22, sender(OTHER): 10**22}),
    )
    chain.start()
    yield chain
    chain.close()


def slow(nonce: int = 0) -> bytes:
    data = ROUNDS.to_bytes(4) + bytes(208) + b"\1"
    return signed(
        {
            "nonce": nonce,
            "to": BLAKE2,
            "gas": ROUNDS + 100_000,
            "gasPrice": 10**10,
            "data": data,
            "chainId": CHAIN_ID,
        }
    )


@pytest.mark.integration
@pytest.mark.parametrize("chain", [2.0], indirect=True)
def test_a_transaction_that_times_out_is_dropped_and_the_rest_mined(
    chain: EmbeddedChain,
) -> None:
    limits = replace(chain.reads.consensus_params(1).block, max_gas=2 * ROUNDS)
    chain.control.include(patch_tx(Change(block=limits)))
    before = chain.reads.latest_height()
    assert chain.mempool.submit(slow()).code == 0
    # The later transaction waits, and is not dropped.
    assert chain.mempool.submit(transfer(1)).code == 0
    for nonce in range(OTHERS):
        assert chain.mempool.submit(transfer(nonce, OTHER)).code == 0
    chain.block_scheduler().start()
    until(lambda: chain.mempool.pending(100).total == 1, "the others are mined")
    made = range(before + 1, chain.reads.latest_height() + 1)
    assert sum(len(chain.reads.block(at)[1].txs) for at in made) == OTHERS
    again = chain.mempool.submit(slow())
    text = "the transaction takes longer than a block may; split it into smaller ones"
    assert (again.code, again.log) == (1, text)
    assert chain.mempool.submit(transfer(0)).code == 0
    until(lambda: chain.mempool.pending(100).total == 0, "its sender's others are mined")


def test_a_transaction_is_not_to_blame_where_nothing_is_executed(chain: EmbeddedChain) -> None:
    chain.mempool.submit(transfer(0))
    own = EVM_STATE.of(chain)
    assert isinstance(own, EvmRuntime)
    own.broken = ExecutorDied()
    for _ in range(2):
        with pytest.raises(BlockNotExecuted, match="has ended"):
            chain.produce()
    with pytest.raises(ExecutorDied):
        chain.produce()
    own.broken = None
    height = chain.produce()
    assert chain.reads.block(height)[1].txs == (transfer(0),)


def test_an_empty_block_needs_no_executor(chain: EmbeddedChain) -> None:
    chain.mempool.submit(transfer(0))
    chain.produce()
    own = EVM_STATE.of(chain)
    assert isinstance(own, EvmRuntime)
    own.broken = ExecutorDied()
    assert chain.produce() == 2


def test_a_process_that_ended_once_costs_no_transaction(chain: EmbeddedChain) -> None:
    own = EVM_STATE.of(chain)
    assert isinstance(own, EvmRuntime)
    for nonce in range(3):
        chain.mempool.submit(transfer(nonce))
        own.broken = ExecutorDied()
        with pytest.raises(BlockNotExecuted):
            chain.produce()
        own.broken = None
        height = chain.produce()
        assert chain.reads.block(height)[1].txs == (transfer(nonce),)


def test_an_engine_failure_does_not_halt_the_chain(chain: EmbeddedChain) -> None:
    own = EVM_STATE.of(chain)
    assert isinstance(own, EvmRuntime)
    chain.mempool.submit(transfer(0))
    own.broken = ValueError("a fault of the engine")
    for _ in range(2):
        with pytest.raises(BlockNotExecuted, match="a fault of the engine"):
            chain.produce()
    own.broken = None
    assert not chain.reads.block(chain.produce())[1].txs
    assert chain.mempool.pending_count().total == 0


def test_unminable_transactions_produce_no_blocks(chain: EmbeddedChain) -> None:
    chain.mempool.submit(transfer(1))
    chain.mempool.submit(transfer(0, OTHER, maxFeePerGas=7, maxPriorityFeePerGas=1))
    chain.block_scheduler().start()
    chain.mempool.submit(transfer(1, OTHER))
    assert chain.reads.wait_for_height(0, 1.5) == 0
    chain.mempool.submit(transfer(0))
    until(lambda: chain.mempool.pending_count().total == 2, "what came behind a gap is mined")
    assert sum(len(chain.reads.block(at)[1].txs) for at in heights(chain)) == 2
    assert all(chain.reads.block(at)[1].txs for at in heights(chain))


def heights(chain: EmbeddedChain) -> range:
    return range(1, chain.reads.latest_height() + 1)
