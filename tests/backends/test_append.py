"""Tests that blocks are appended completely and in order, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import MemoryChain, SQLiteBackend
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.new_blocks import CommittedBlock
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import (
    ABSENT,
    Block,
    BlockID,
    Commit,
    PartSetHeader,
    Version,
    Vote,
    VoteType,
)
from flask_noderpc.domain.genesis import BlockParams, ConsensusParamsUpdate
from flask_noderpc.domain.time import SECOND
from flask_noderpc.domain.validator import ValidatorUpdate
from flask_noderpc.errors import HeightNotAvailable, InvalidBlock, StoreError
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.validators import median_time
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker

from .conftest import OpenStore

OTHER = BlockID(b"\x05" * 32, PartSetHeader(1, b"\x06" * 32))


def header(**changes: Any) -> Callable[[CommittedBlock], CommittedBlock]:
    def change(item: CommittedBlock) -> CommittedBlock:
        return with_block(
            item, replace(item.block, header=replace(item.block.header, **changes))
        )

    return change


def with_block(item: CommittedBlock, block: Block) -> CommittedBlock:
    """Return the item with another block, and with a commit for it."""
    block_id, _ = hashes.block_id(block)
    return replace(item, block=block, commit=replace(item.commit, block_id=block_id))


def last_commit(**changes: Any) -> Callable[[CommittedBlock], CommittedBlock]:
    """Return a change that replaces the parent's commit, whose hash the header contains."""

    def change(item: CommittedBlock) -> CommittedBlock:
        commit = replace(item.block.last_commit, **changes)
        carried = hashes.commit_hash(commit)
        moved = replace(item.block.header, last_commit_hash=carried)
        return with_block(item, replace(item.block, header=moved, last_commit=commit))

    return change


def part(**changes: Any) -> Callable[[CommittedBlock], CommittedBlock]:
    return lambda item: replace(item, **{k: change(item) for k, change in changes.items()})


REFUSALS: dict[str, Callable[[CommittedBlock], CommittedBlock]] = {
    "chain_id": header(chain_id="another"),
    "height": header(height=9),
    "last_block_id": header(last_block_id=OTHER),
    "last_commit_hash": header(last_commit_hash=b"\x01" * 32),
    "data_hash": lambda item: with_block(item, replace(item.block, txs=(b"other=tx",))),
    "validators_hash": header(validators_hash=b"\x01" * 32),
    "next_validators_hash": header(next_validators_hash=b"\x01" * 32),
    "consensus_hash": header(consensus_hash=b"\x01" * 32),
    "app_hash": header(app_hash=b"\x01" * 8),
    "last_results_hash": header(last_results_hash=b"\x01" * 32),
    "evidence_hash": header(evidence_hash=b"\x01" * 32),
    "proposer in the set": header(proposer_address=b"\x01" * 20),
    "time": header(time=1),
    "version.block": header(version=Version(block=99)),
    "last_commit.height": last_commit(height=1),
    "last_commit.block_id": last_commit(block_id=OTHER),
    "last_commit.signatures": last_commit(signatures=()),
    "commit.height": part(commit=lambda item: replace(item.commit, height=9)),
    "commit.block_id": part(commit=lambda item: replace(item.commit, block_id=OTHER)),
    "commit.signatures": part(commit=lambda item: replace(item.commit, signatures=(ABSENT,))),
    "results.height": part(results=lambda item: replace(item.results, height=9)),
    "results.tx_results": part(results=lambda item: replace(item.results, tx_results=())),
    "validator updates": part(
        results=lambda item: replace(
            item.results,
            validator_updates=(ValidatorUpdate(ChainMaker((1,) * 9).keys[8].public, 0),),
        )
    ),
}


@pytest.mark.parametrize("rule", REFUSALS)
def test_a_block_that_breaks_a_rule_is_refused_naming_it(
    store: SQLiteBackend, maker: ChainMaker, rule: str
) -> None:
    store.append_block(maker.block(b"a=1"), maker.block(b"b=2"))
    good = maker.block(b"c=3")

    with pytest.raises(InvalidBlock, match=rf"\b{rule}\b"):
        store.append_block(REFUSALS[rule](good))

    assert store.reads.latest_height() == 2
    store.append_block(good)
    assert store.verify() == 3


def test_a_group_with_one_bad_block_leaves_nothing(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    blocks = [maker.block(b"k%d=v" % number) for number in range(4)]
    blocks[2] = REFUSALS["app_hash"](blocks[2])

    with pytest.raises(InvalidBlock):
        store.append_block(*blocks)

    assert store.reads.latest_height() == 0
    with pytest.raises(HeightNotAvailable):
        store.reads.block(1)
    store.append_block(*blocks[:2])
    assert store.verify() == 2


def test_blocks_go_in_one_by_one_or_all_at_once(
    open_store: OpenStore, sample: SampleChain, full: SQLiteBackend, path: Path
) -> None:
    single = open_store(f"{path}.single")
    single.init_chain(sample.genesis, sample.state)
    for item in sample.blocks:
        single.append_block(item)

    for height in range(1, len(sample.blocks) + 1):
        assert single.reads.block(height) == full.reads.block(height)
        assert single.reads.validators(height + 2) == full.reads.validators(height + 2)


def test_appending_nothing_changes_nothing(store: SQLiteBackend) -> None:
    store.append_block()

    assert store.reads.latest_height() == 0


def test_the_same_block_twice_is_refused(store: SQLiteBackend, maker: ChainMaker) -> None:
    block = maker.block(b"a=1")
    store.append_block(block)

    with pytest.raises(InvalidBlock, match="height: expected 2, got 1"):
        store.append_block(block)


def test_blocks_of_two_backends_on_one_file_follow_each_other(
    store: SQLiteBackend, open_store: OpenStore, maker: ChainMaker
) -> None:
    other = open_store()
    for number in range(6):
        (store, other)[number % 2].append_block(maker.block(b"k%d=v" % number))

    assert store.verify() == other.verify() == 6


def test_a_backend_that_was_overtaken_is_refused_and_then_follows(
    store: SQLiteBackend, open_store: OpenStore, maker: ChainMaker
) -> None:
    store.append_block(maker.block())
    block = maker.block(b"a=1")
    open_store().append_block(block)

    with pytest.raises(InvalidBlock, match="height: expected 3, got 2"):
        store.append_block(block)
    store.append_block(maker.block(b"b=2"))

    assert store.verify() == 3


def test_the_commit_that_the_next_block_carries_is_the_canonical_one(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    first = maker.block(b"a=1")
    store.append_block(first)
    carried = signed_later(maker, first, round_number=1)
    child = foreign_child(maker, carried)

    assert store.reads.commit(1) == first.commit
    store.append_block(child)

    assert store.reads.commit(1) == carried
    assert store.reads.block(2)[1].last_commit == carried
    assert store.verify() == 2


def signed_later(maker: ChainMaker, item: CommittedBlock, round_number: int) -> Commit:
    """Return another commit for a block: other times, a later round, and only two
    signatures."""
    height = item.block.header.height
    signatures = []
    for index, validator in enumerate(maker.head.last_validators.validators):
        key = next(key for key in maker.keys if key.address == validator.address)
        if index == 2:
            signatures.append(ABSENT)
            continue
        time = item.block.header.time + (index + 5) * SECOND
        vote = Vote(
            VoteType.PRECOMMIT,
            height,
            round_number,
            item.commit.block_id,
            time,
            validator.address,
            index,
        )
        signatures.append(key.sign_vote(vote, maker.genesis.chain_id))
    return Commit(height, round_number, item.commit.block_id, tuple(signatures))


def foreign_child(maker: ChainMaker, carried: Commit) -> CommittedBlock:
    members = maker.head.last_validators
    maker.head = replace(maker.head, commit=carried)
    maker._now = median_time(carried, members) + SECOND
    return maker.block(b"b=2")


def test_a_number_beyond_the_store_s_is_a_store_error(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    block = maker.block(b"a=1")
    huge = replace(block.results, tx_results=(ExecTxResult(gas_used=1 << 63),))

    with pytest.raises(StoreError, match="at most 64 bits"):
        store.append_block(replace(block, results=huge))

    assert store.reads.latest_height() == 0


@pytest.mark.parametrize("number", [(1 << 63) - 1, -(1 << 63), 1 << 53])
def test_large_numbers_come_back_exactly(
    store: SQLiteBackend, maker: ChainMaker, number: int
) -> None:
    block = maker.block(b"a=1")
    given = (ExecTxResult(gas_wanted=number, gas_used=number),)
    store.append_block(replace(block, results=replace(block.results, tx_results=given)))

    assert store.reads.results(1).tx_results == given
    assert store.reads.tx(hashes.tx_hash(b"a=1")).result == given[0]


def test_a_changed_parameter_holds_from_the_next_height(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    update = ConsensusParamsUpdate(block=BlockParams(2_000_000, 2000))
    block = maker.block()
    store.append_block(
        replace(block, results=replace(block.results, consensus_param_updates=update))
    )

    assert store.reads.consensus_params(1).block == BlockParams()
    assert store.reads.consensus_params(2).block == BlockParams(2_000_000, 2000)


def test_memory_backend_refuses_a_block_that_does_not_follow(maker: ChainMaker) -> None:
    first, second = maker.block(), maker.block(b"a=1")

    with pytest.raises(InvalidBlock, match="height: expected 1, got 2"):
        ChainBackend(MemoryChain(maker.genesis, [second]))
    backend = ChainBackend(MemoryChain(maker.genesis, [first, second], state=maker.state))

    assert backend.reads.latest_height() == 2
