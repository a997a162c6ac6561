"""Tests of a block's size limits, and of transactions that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import BlockExecution, BlockLimits, BlockRequest
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    ConsensusParamsUpdate,
    EvidenceParams,
)
from flask_noderpc.errors import InvalidBlock, TxRejected
from flask_noderpc.protocol.comet.chain_state import max_data_bytes, tx_bytes
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker

from .conftest import Open
from .fixtures import Recorder, write_home


def limited(folder: Path, **limits: int) -> None:
    params = ConsensusParams(BlockParams(**limits), EvidenceParams(max_bytes=500))
    write_home(folder, {1: 10}, [1], params)


def test_max_data_bytes_is_that_of_cometbft() -> None:
    # CometBFT: MaxDataBytes in types/block.go.
    assert max_data_bytes(BlockParams(max_bytes=-1), 3) == 104_857_600 - 1064
    assert max_data_bytes(BlockParams(max_bytes=1000), 1) == 1000 - 11 - 626 - 94 - 111
    assert max_data_bytes(BlockParams(max_bytes=1000), 2) == 1000 - 11 - 626 - 94 - 222
    assert max_data_bytes(BlockParams(max_bytes=100), 1) == 0


@pytest.mark.parametrize(
    ("size", "framed"), [(0, 2), (127, 129), (128, 131), (16_383, 16_386), (16_384, 16_388)]
)
def test_a_transaction_takes_its_tag_and_its_length_too(size: int, framed: int) -> None:
    # CometBFT: ComputeProtoSizeForTxs in types/tx.go.
    assert tx_bytes(bytes(size)) == framed


def test_evidence_reduces_the_bytes_for_transactions() -> None:
    maker = ChainMaker()
    maker.block()
    piece = maker.double_vote(0, 1, 1)

    with_it = max_data_bytes(BlockParams(max_bytes=5000), 1, (piece,))

    assert with_it < max_data_bytes(BlockParams(max_bytes=5000), 1) - 300


def test_a_block_stays_within_its_bytes_and_the_rest_comes_later(
    open_chain: Open, tmp_path: Path
) -> None:
    limited(tmp_path, max_bytes=1500)
    chain = open_chain()
    txs = [b"key%d=" % number + b"v" * 190 for number in range(7)]
    for tx in txs:
        chain.mempool.submit(tx)

    blocks = [chain.reads.block(chain.produce())[1].txs for _ in range(3)]

    assert [len(block) for block in blocks] == [3, 3, 1]
    assert [tx for block in blocks for tx in block] == txs
    assert max(chain.reads.block_meta(height).size for height in (1, 2, 3)) <= 1500


def test_a_block_stays_within_its_gas(open_chain: Open, tmp_path: Path) -> None:
    limited(tmp_path, max_gas=10)
    chain = open_chain(application=Recorder())
    for tx in (b"4", b"6", b"1", b"10"):
        chain.mempool.submit(tx)

    blocks = [chain.reads.block(chain.produce())[1].txs for _ in range(3)]

    assert blocks == [(b"4", b"6"), (b"1",), (b"10",)]


def test_no_limit_takes_everything(open_chain: Open, tmp_path: Path) -> None:
    limited(tmp_path, max_bytes=-1, max_gas=-1)
    chain = open_chain(application=Recorder())
    for number in range(50):
        chain.mempool.submit(b"%d" % (number + 1_000_000))

    assert len(chain.reads.block(chain.produce())[1].txs) == 50


def test_a_transaction_that_fits_no_block_is_refused(open_chain: Open, tmp_path: Path) -> None:
    limited(tmp_path, max_bytes=1000)
    room = max_data_bytes(BlockParams(max_bytes=1000), 1)
    chain = open_chain()
    frame = tx_bytes(bytes(room)) - room
    largest = b"a=".ljust(room - frame, b"x")

    with pytest.raises(
        TxRejected, match=rf"^tx pre check: tx size is too big: {room + 1}, max: {room}$"
    ):
        chain.mempool.submit(largest + b"x")

    assert chain.mempool.submit(largest).code == 0
    assert chain.reads.block(chain.produce())[1].txs == (largest,)


def test_a_transaction_that_wants_more_gas_than_a_block_has_is_refused(
    open_chain: Open, tmp_path: Path
) -> None:
    limited(tmp_path, max_gas=10)
    chain = open_chain(application=Recorder())

    with pytest.raises(TxRejected, match=r"^gas wanted 11 is greater than max gas 10$"):
        chain.mempool.submit(b"11")

    assert chain.mempool.pending_count().total == 0


class Shrinking(Recorder):
    """An application that lowers the limits in its first block."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        made = super().finalize_block(block)
        if block.height > 1:
            return made
        lower = ConsensusParamsUpdate(BlockParams(max_bytes=1000, max_gas=50))
        return replace(made, consensus_param_updates=lower)


def test_lowering_the_limits_drops_transactions_too_large_for_a_block(
    open_chain: Open, tmp_path: Path
) -> None:
    limited(tmp_path, max_gas=60)
    chain = open_chain(application=Shrinking())
    large = b"1".zfill(900)
    for tx in (b"60", b"55", large, b"2"):
        chain.mempool.submit(tx)

    chain.produce()

    assert chain.mempool.pending(10).txs == (b"2",)
    assert chain.reads.block(chain.produce())[1].txs == (b"2",)
    with pytest.raises(TxRejected, match="too big"):
        chain.mempool.submit(large)


def test_a_transaction_too_large_for_any_block_does_not_block_others(
    open_chain: Open, tmp_path: Path
) -> None:
    limited(tmp_path, max_gas=60)
    chain = open_chain(application=Recorder())
    for tx in (b"55", b"2"):
        chain.mempool.submit(tx)

    assert chain.store.reap(BlockLimits(-1, 50)) == (b"2",)
    assert chain.store.reap(BlockLimits(tx_bytes(b"2"), -1)) == (b"2",)
    assert chain.store.reap(BlockLimits(0, 0)) == ()


def test_a_transaction_larger_than_a_part_is_found_again(open_chain: Open) -> None:
    chain = open_chain()
    tx = b"large=" + b"v" * 200_000
    chain.mempool.submit(tx)

    height = chain.produce()

    assert chain.reads.block_meta(height).block_id.parts.total == 4
    assert chain.reads.tx(tx_hash(tx)).tx == tx
    assert chain.store.verify() == 1


def test_a_proposal_that_fits_no_block_is_refused(unstarted: Open, tmp_path: Path) -> None:
    class Greedy(KVStore):
        def prepare_proposal(self, txs: object, limits: object) -> tuple[bytes, ...]:
            return (b"k=" + b"v" * 5000,)

    limited(tmp_path, max_bytes=4000)
    chain = unstarted(application=Greedy)

    with pytest.raises(InvalidBlock, match="bytes of transactions, got 5005"):
        chain.produce()

    assert chain.reads.latest_height() == 0
