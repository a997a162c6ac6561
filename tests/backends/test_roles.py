"""Tests of the defaults of a backend that only reads, and of ``verify`` for any backend."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import ChainReads, EmbeddedChain, MemoryChain, SQLiteBackend
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.capabilities import Mempool
from flask_noderpc.backends.base.evidence import EvidencePool
from flask_noderpc.backends.base.filters import Filters, MemoryFilters
from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.backends.sql.mempool import SQLMempool
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.genesis import BlockParams, ConsensusParamsUpdate
from flask_noderpc.domain.network import NetInfo
from flask_noderpc.errors import ConfigurationError, InvalidBlock, NotSupported, StoreError
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for

from .conftest import OpenStore
from .test_mempool import failing


@pytest.fixture
def reader(sample: SampleChain) -> ChainBackend:
    return ChainBackend(MemoryChain(sample.genesis, sample.blocks, state=sample.state))


def test_a_backend_needs_at_most_fifteen_reads() -> None:
    assert 0 < len(ChainReads.__abstractmethods__) <= 15
    assert vars(MemoryChain).keys() >= ChainReads.__abstractmethods__


def test_capabilities_are_built_once(reader: ChainBackend, open_store: OpenStore) -> None:
    for backend in (reader, open_store()):
        for name in ("mempool", "evidence", "network", "application"):
            assert getattr(backend, name) is getattr(backend, name)


def test_a_capability_is_replaced_on_one_backend(reader: ChainBackend) -> None:
    class Upstream(Mempool):
        def submit(self, tx: bytes) -> ExecTxResult:
            return ExecTxResult(data=tx)

    reader.mempool = Upstream()
    response = app_for(reader).test_client().get('/broadcast_tx_sync?tx="a=b"')

    assert response.get_json()["result"]["data"]


def test_a_backend_that_only_reads_takes_no_transactions(reader: ChainBackend) -> None:
    with pytest.raises(NotSupported, match="accepts no transactions"):
        reader.mempool.submit(b"a=b")

    assert reader.mempool.pending(10).txs == ()
    assert reader.mempool.pending_count().total == 0
    assert (reader.mempool.latest_pending(), reader.mempool.pending_after(0, 10)) == (0, ())
    assert not reader.mempool.wait_for_pending_after(0, 0)


def test_a_backend_that_only_reads_has_no_application(reader: ChainBackend) -> None:
    for ask in (
        reader.application.info,
        lambda: reader.application.check_tx(b"a=b"),
        lambda: reader.application.query("", b"", 0, False),
    ):
        with pytest.raises(NotSupported, match="no application"):
            ask()


def test_a_backend_that_only_reads_is_a_node_alone(reader: ChainBackend) -> None:
    reader.start()

    assert reader.network.net_info() == NetInfo()
    assert not reader.network.catching_up()
    assert reader.network.node_info().id == bytes(20)
    assert reader.network.validator_key().value == bytes(32)
    reader.close()


def test_a_memory_backend_starts_with_the_application_s_parameters(maker: ChainMaker) -> None:
    update = ConsensusParamsUpdate(block=BlockParams(2_000_000, 6))

    backend = ChainBackend(MemoryChain(maker.genesis, state=InitChain(consensus_params=update)))

    assert backend.reads.consensus_params(1).block == BlockParams(2_000_000, 6)


def test_a_memory_backend_does_not_hide_a_success_behind_a_failure(maker: ChainMaker) -> None:
    blocks = [maker.block(b"a=1"), failing(maker.block(b"a=1"))]
    backend = ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state))

    assert backend.reads.tx(tx_hash(b"a=1")).height == 1


def test_a_backend_that_finds_a_block_elsewhere_does_not_verify(sample: SampleChain) -> None:
    class Lost(MemoryChain):
        def height_of(self, block_hash: bytes) -> int:
            return min(2, super().height_of(block_hash))

    backend = ChainBackend(Lost(sample.genesis, sample.blocks, state=sample.state))

    with pytest.raises(InvalidBlock, match="block 3: a look-up of its hash"):
        verify_chain(backend.reads)


def test_a_chain_can_be_verified_from_a_later_block_on(sample: SampleChain) -> None:
    class Later(MemoryChain):
        low = 1

        def base_height(self) -> int:
            return self.low

    later = Later(sample.genesis, sample.blocks, state=sample.state)
    offset = len(sample.blocks) - 3
    whole = {height: later._at(height) for height in range(1, len(sample.blocks) + 1)}
    later._at = whole.__getitem__  # type: ignore[method-assign,assignment]
    later.low = offset + 1

    assert verify_chain(later) == 3


def test_a_store_without_a_chain_takes_no_transactions(open_store: OpenStore) -> None:
    backend = open_store(application=KVStore)

    with pytest.raises(StoreError, match="call init_chain or init_at first"):
        backend.mempool.submit(b"a=b")


@pytest.mark.sqlite
def test_a_store_that_lost_its_validators_takes_no_blocks(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute("DELETE FROM validator_priorities")

    with pytest.raises(
        StoreError, match="latest block has no results, validators or parameters"
    ):
        open_store().head()


@pytest.mark.sqlite
def test_a_row_that_breaks_the_tables_is_an_invalid_block(
    store: SQLiteBackend, maker: ChainMaker, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute("INSERT INTO evidence VALUES (1, 0, X'', 'stray', 1, X'')")
    second = ChainMaker((10, 7, 3))
    first_vote = second.double_vote(0, 1, second.genesis.genesis_time)

    with pytest.raises(InvalidBlock, match="block 1: UNIQUE constraint failed: evidence"):
        store.append_block(second.block(evidence=[first_vote]))

    assert store.reads.latest_height() == 0


def test_a_subclass_replaces_the_capabilities_of_a_chain(tmp_path: Path) -> None:
    class Own(EmbeddedChain):
        @property
        def mempool(self) -> Mempool:
            return own

        @cached_property
        def evidence(self) -> EvidencePool:
            return own_evidence

        @property
        def filters(self) -> Filters:
            return own_filters

    own, own_evidence, own_filters = Mempool(), EvidencePool(), MemoryFilters()
    with closing(Own(tmp_path / "chain.db", produce=False)) as chain:
        assert (chain.mempool, chain.evidence, chain.filters) == (
            own,
            own_evidence,
            own_filters,
        )
        assert chain.store.mempool is not own


@pytest.mark.parametrize("reads", [None, "chain.db", ChainBackend])
def test_what_can_not_be_read_is_refused(reads: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"reads: expected a ChainReads"):
        ChainBackend(reads)


def test_a_mempool_of_a_store_has_no_subclass() -> None:
    with pytest.raises(TypeError, match=r"Filtered: .* derive it from Mempool"):
        type("Filtered", (SQLMempool,), {})
