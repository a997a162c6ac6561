"""Tests of a node's block as an Ethereum block."""

from __future__ import annotations

from dataclasses import replace

import pytest
import rlp

from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, Genesis
from flask_noderpc.domain.time import SECOND, ZERO_TIME
from flask_noderpc.ethereum.domain.records import EMPTY_ROOT
from flask_noderpc.ethereum.ethermint_double import BASE_FEE, EmittedLog, EthermintDouble
from flask_noderpc.ethereum.protocol.blocks import (
    Block,
    ethereum_block,
    genesis_block,
    pending_block,
    raw_block,
)
from flask_noderpc.ethereum.protocol.consensus import encode_header
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.ethereum.protocol.trie import ordered_root
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.chains import ChainMaker

from .signing import OTHER, sample, transfer
from .test_execution import TOPIC, emitting


def _chain(*blocks: tuple[bytes, ...]) -> tuple[Genesis, list[Block]]:
    maker = ChainMaker(application=EthermintDouble)
    parent = genesis_block(maker.genesis).header.hash or b""
    found = []
    for txs in blocks:
        made = maker.block(*txs)
        block_id, _ = hashes.block_id(made.block)
        params = maker.genesis.consensus_params
        found.append(
            ethereum_block(
                block_id.hash, made.block.header, made.block.txs, made.results, params, parent
            )
        )
    return maker.genesis, found


def test_hashes_of_the_chain_lead_from_each_block_to_block_0() -> None:
    genesis, blocks = _chain((transfer(0),), (), (transfer(1),))
    headers = [genesis_block(genesis).header, *(block.header for block in blocks)]
    assert [header.number for header in headers] == [0, 1, 2, 3]
    assert [h.parent_hash for h in headers[1:]] == [h.hash for h in headers[:-1]]
    assert len({header.hash for header in headers}) == 4
    assert all(header.nonce == bytes(8) for header in headers)


def test_a_block_without_transactions_has_empty_roots() -> None:
    _, (block,) = _chain(())
    header = block.header
    assert header.transactions_root == header.receipts_root == EMPTY_ROOT
    assert (header.gas_used, header.base_fee, header.gas_limit) == (0, BASE_FEE, 0xFFFFFFFF)
    assert header.bloom == bytes(256)
    assert header.miner is not None
    assert len(header.miner) == 20
    assert (block.transactions, block.receipts) == ((), ())
    assert block.size == len(raw_block(block))


def test_a_block_has_the_roots_bloom_and_gas_of_its_transactions() -> None:
    raws = transfer(0), emitting(1, EmittedLog((TOPIC,))), transfer(0, OTHER)
    _, (block,) = _chain(raws)
    header = block.header
    assert [tx.transaction.raw for tx in block.transactions] == list(raws)
    assert [tx.inclusion for tx in block.transactions] == [r.inclusion for r in block.receipts]
    assert [tx.gas_price for tx in block.transactions] == [2 * 10**9, 10**9, 2 * 10**9]
    assert header.transactions_root == ordered_root(raws)
    assert header.receipts_root != EMPTY_ROOT
    assert header.bloom == block.receipts[1].bloom != bytes(256)
    assert header.gas_used == block.receipts[-1].cumulative_gas_used


def test_the_raw_block_is_read_by_another_library() -> None:
    raws = [sample("legacy"), sample("dynamic fee"), sample("set code")]
    _, (block,) = _chain(tuple(raws))
    header, txs, uncles = rlp.decode(raw_block(block))
    assert rlp.encode(header) == encode_header(block.header)
    assert [tx if isinstance(tx, bytes) else rlp.encode(tx) for tx in txs] == [
        tx.transaction.raw for tx in block.transactions
    ]
    assert uncles == []


def test_block_0_is_of_its_genesis() -> None:
    genesis = Genesis("a" * 50, 5 * SECOND, app_hash=b"\x01\x02")
    header = genesis_block(genesis).header
    assert header.hash == keccak(encode_header(header))
    assert header.timestamp == 5
    assert header.state_root == bytes(30) + b"\x01\x02"
    assert header.extra_data == b"a" * 32
    assert header.parent_hash == bytes(32)
    assert genesis_block(replace(genesis, genesis_time=ZERO_TIME)).header.timestamp == 0


@pytest.mark.parametrize(("limit", "shown"), [(-1, 0xFFFFFFFF), (0, 0), (10**7, 10**7)])
def test_the_gas_limit_is_that_of_the_parameters(limit: int, shown: int) -> None:
    params = ConsensusParams(block=BlockParams(max_gas=limit))
    made = ChainMaker().block()
    header = ethereum_block(
        b"\1" * 32, made.block.header, made.block.txs, made.results, params
    ).header
    assert header.gas_limit == shown
    assert header.base_fee is None


def test_gas_counts_other_transactions_until_one_does_not_fit() -> None:
    made = ChainMaker().block(b"a=1", b"b=2", b"c=3", b"d=4")
    full = ExecTxResult(code=11, log="no block gas left to run tx: out of gas", gas_used=70)
    results = BlockResults(
        made.results.height,
        (
            ExecTxResult(gas_used=5),
            ExecTxResult(code=1, gas_used=6),
            full,
            ExecTxResult(gas_used=1),
        ),
    )
    header = ethereum_block(
        b"\1" * 32, made.block.header, made.block.txs, results, ConsensusParams()
    ).header
    assert header.gas_used == 11


def test_a_strange_header_is_shown_as_far_as_it_goes() -> None:
    made = ChainMaker().block()
    head = replace(made.block.header, time=ZERO_TIME, proposer_address=b"")
    block, results = replace(made.block, header=head), replace(made.results, app_hash=b"x" * 40)
    header = ethereum_block(
        b"\1" * 32, block.header, block.txs, results, ConsensusParams()
    ).header
    assert header.timestamp == 0
    assert header.miner == bytes(20)
    assert header.state_root == b"x" * 32


def test_the_pending_block_has_no_hash_nonce_or_miner() -> None:
    _, (latest,) = _chain((transfer(0),))
    waiting = [decode(transfer(1)), decode(transfer(2))]
    pending = pending_block(latest.header, waiting, 0)
    header = pending.header
    assert (header.hash, header.nonce, header.miner) == (None, None, None)
    assert header.number == latest.header.number + 1
    assert header.parent_hash == latest.header.hash
    assert header.timestamp == latest.header.timestamp + 1
    assert header.transactions_root == ordered_root([transfer(1), transfer(2)])
    assert [tx.transaction for tx in pending.transactions] == waiting
    assert {(tx.inclusion, tx.gas_price) for tx in pending.transactions} == {(None, 5 * 10**9)}
    assert pending.receipts == ()
