"""Tests of applications other than the kvstore: calls of the chain, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockRequest,
    InitChain,
)
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.domain.abci import AppInfo, Event, ExecTxResult, QueryResult
from flask_noderpc.domain.genesis import BlockParams, ConsensusParamsUpdate, Genesis
from flask_noderpc.domain.validator import SECP256K1, PublicKey, ValidatorUpdate
from flask_noderpc.errors import InvalidBlock
from flask_noderpc.protocol.comet.hashes import consensus_hash

from .conftest import Open
from .fixtures import Recorder, key


class Counter(Application):
    """An application whose next transaction must be the next number, so validity depends on the
    state."""

    def __init__(self, state: AppState) -> None:
        self._state = state

    def _count(self) -> int:
        return int(self._state.get(b"count") or b"0")

    def info(self) -> AppInfo:
        return AppInfo(last_block_height=int(self._state.get(b"height") or b"0"))

    def init_chain(self, genesis: Genesis) -> InitChain:
        return InitChain(changes={b"count": b"5"})

    def check_tx(self, tx: bytes) -> ExecTxResult:
        return ExecTxResult(code=int(int(tx) < self._count()))

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        count = max([self._count(), *(int(tx) + 1 for tx in block.txs)])
        changes: dict[bytes, bytes | None] = {
            b"count": b"%d" % count,
            b"height": b"%d" % block.height,
        }
        return BlockExecution(
            tuple(ExecTxResult() for _ in block.txs),
            b"%d" % count,
            begin_events=(Event("begin"),),
            end_events=(Event("end"),),
            changes=changes,
        )

    def prepare_proposal(self, txs: Sequence[bytes], limits: object) -> tuple[bytes, ...]:
        return tuple(txs[:1])

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        return QueryResult(value=b"%d" % self._count())


def test_waiting_transactions_are_checked_again_after_each_block(open_chain: Open) -> None:
    chain = open_chain(application=Counter)
    for tx in (b"7", b"6", b"9"):
        chain.mempool.submit(tx)

    chain.produce()

    assert chain.mempool.pending(10).txs == (b"9",)
    assert chain.application.check_tx(b"6").code == 1


def test_a_transaction_refused_by_recheck_can_be_sent_again(open_chain: Open) -> None:
    chain = open_chain(application=Counter)
    for tx in (b"7", b"6"):
        chain.mempool.submit(tx)
    chain.produce()

    assert chain.mempool.submit(b"6").code == 1


def test_transactions_that_an_application_leaves_out_wait_for_another_block(
    open_chain: Open,
) -> None:
    chain = open_chain(application=Counter)
    for tx in (b"7", b"8", b"9"):
        chain.mempool.submit(tx)

    heights = [chain.produce() for _ in range(3)]

    assert [chain.reads.block(height)[1].txs for height in heights] == [
        (b"7",),
        (b"8",),
        (b"9",),
    ]


def test_the_initial_state_is_the_application_s(open_chain: Open) -> None:
    chain = open_chain(application=Counter)

    assert chain.application.query("", b"", 0, False).value == b"5"


def test_begin_and_end_block_events_are_stored_separately(open_chain: Open) -> None:
    chain = open_chain(application=Counter)

    results = chain.reads.results(chain.produce())

    assert results.begin_block_events == (Event("begin"),)
    assert results.end_block_events == (Event("end"),)


class Updating(Recorder):
    """An application that updates validators and parameters with its blocks."""

    validators: tuple[ValidatorUpdate, ...] = ()
    params: ConsensusParamsUpdate | None = None

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        return replace(
            super().finalize_block(block),
            validator_updates=self.validators,
            consensus_param_updates=self.params,
        )


@pytest.mark.parametrize(
    "updates",
    [
        (ValidatorUpdate(key(1).public, -1),),
        (ValidatorUpdate(key(1).public, 0),),
        (ValidatorUpdate(key(1).public, 1), ValidatorUpdate(key(1).public, 2)),
        (ValidatorUpdate(PublicKey(SECP256K1, bytes(33)), 1),),
        (ValidatorUpdate(key(1).public, 1 << 62),),
    ],
)
def test_invalid_validator_updates_are_refused_and_nothing_is_stored(
    open_chain: Open, updates: tuple[ValidatorUpdate, ...]
) -> None:
    app = Updating()
    chain = open_chain(application=app)
    chain.mempool.submit(b"1")
    app.validators = updates

    with pytest.raises(InvalidBlock, match="validator updates at 1"):
        chain.produce()
    app.validators = ()

    assert (chain.reads.latest_height(), app.kept) == (0, [])
    assert chain.reads.block(chain.produce())[1].txs == (b"1",)


def test_results_of_another_count_are_refused(open_chain: Open) -> None:
    class Short(Recorder):
        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            return BlockExecution((), b"")

    chain = open_chain(application=Short())
    chain.mempool.submit(b"1")

    with pytest.raises(InvalidBlock, match="tx_results"):
        chain.produce()


def test_new_consensus_parameters_hold_from_the_next_height(open_chain: Open) -> None:
    app = Updating()
    chain = open_chain(application=app)
    app.params = ConsensusParamsUpdate(block=BlockParams(4_194_304, 10_000_000), app_version=7)

    chain.produce()
    app.params = None
    chain.produce()

    before, after = chain.reads.consensus_params(1), chain.reads.consensus_params(2)
    assert before.block == BlockParams()
    assert (after.block.max_gas, after.app_version) == (10_000_000, 7)
    assert after.evidence == before.evidence
    header = chain.reads.block_meta(2).header
    assert header.consensus_hash == consensus_hash(after)
    assert header.consensus_hash.hex().upper().startswith("68ECD6F333119CE4")
    assert chain.store.verify() == 2


def test_init_chain_may_replace_validators_and_parameters(open_chain: Open) -> None:
    class Founder(Recorder):
        def init_chain(self, genesis: Genesis) -> InitChain:
            own = genesis.validators[0].pub_key
            return InitChain(
                b"founded",
                (ValidatorUpdate(own, 20), ValidatorUpdate(key(1).public, 5)),
                ConsensusParamsUpdate(BlockParams(max_bytes=5_000_000)),
            )

    chain = open_chain(application=Founder())

    chain.produce()

    assert chain.reads.validators(1).total_power == 25
    assert chain.reads.consensus_params(1).block.max_bytes == 5_000_000
    assert chain.reads.block_meta(1).header.app_hash == b"founded"
    assert chain.store.verify() == 1


@pytest.mark.sqlite
def test_the_genesis_app_hash_holds_when_the_application_has_none(
    open_chain: Open, tmp_path: Path
) -> None:
    class Silent(Recorder):
        def init_chain(self, genesis: Genesis) -> InitChain:
            return InitChain()

    chain = open_chain(application=Silent())
    chain.close()
    for file in tmp_path.glob("chain.db*"):
        file.unlink()
    document = tmp_path / "config" / "genesis.json"
    document.write_text(document.read_text().replace('"app_hash": ""', '"app_hash": "AB12"'))

    again = open_chain(application=Silent())

    assert again.reads.block_meta(again.produce()).header.app_hash == b"\xab\x12"


def test_finalize_block_gets_the_time_and_the_proposer(open_chain: Open) -> None:
    asked: list[BlockRequest] = []

    class Curious(Recorder):
        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            asked.append(block)
            return super().finalize_block(block)

    chain = open_chain(application=Curious(), schedule=BlockSchedule(0.01))
    chain.produce()
    chain.produce()

    block_id, block = chain.reads.block(2)
    assert (asked[1].hash, asked[1].time) == (block_id.hash, block.header.time)
    assert asked[1].proposer_address == block.header.proposer_address
    assert asked[1].last_commit == chain.reads.commit(1)
