"""Tests that every backend must pass: subclass the contract and return your backend.

.. code-block:: python

    class TestMine(ChainBackendContract):
       def make_backend(self, chain):
           return MyBackend(chain.genesis, chain.blocks, state=chain.state)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache

import pytest

from ..backends.base.backend import ChainBackend
from ..backends.base.reads import scan_blocks, scan_txs
from ..backends.base.verify import verify_chain
from ..domain.search import Bound, FilterKind, Page, PolledFilter, Search, SearchLimits, Term
from ..domain.time import SECOND
from ..errors import (
    BlockNotFound,
    Busy,
    FilterNotFound,
    HeightNotAvailable,
    NotFound,
    ResultNotFound,
    TxNotFound,
)
from ..protocol.comet import hashes
from .chains import SampleChain, make_chain

# Searches for events of the sample chain's application.
SEARCHES = (
    Search(),
    Search(low=3, high=5),
    Search((Term("app.key", equals="k2.1"),)),
    Search((Term("app.creator", equals="Cosmoshi"), Term("app.key", contains="1"))),
    Search((Term("app.key"), Term("app.index_key")), low=4),
    Search((Term("app.key", within=(Bound(">=", Decimal(0)),)),)),
)


# Allow much time, because searches may take long on a busy machine.
_LIMITS = SearchLimits(seconds=60.0)


@cache
def _the_chain() -> SampleChain:
    return make_chain()


class ChainBackendContract(ABC):
    """Tests of a backend: inherit from this class in one whose name starts with ``Test``."""

    @abstractmethod
    def make_backend(self, chain: SampleChain) -> ChainBackend:
        """Return a backend with this chain."""

    @pytest.fixture
    def chain(self) -> SampleChain:
        """The chain under test."""
        return _the_chain()

    @pytest.fixture
    def backend(self, chain: SampleChain) -> Iterator[ChainBackend]:
        """The backend under test."""
        backend = self.make_backend(chain)
        yield backend
        backend.close()

    @pytest.fixture
    def empty(self, chain: SampleChain) -> Iterator[ChainBackend]:
        """A backend with the same genesis and no blocks."""
        backend = self.make_backend(SampleChain(chain.genesis, chain.state, ()))
        yield backend
        backend.close()

    def test_heights_span_the_chain(self, backend: ChainBackend, chain: SampleChain) -> None:
        """Base and latest height are the heights of the first and the last block."""
        base = chain.blocks[0].block.header.height
        assert backend.reads.base_height() == base
        assert backend.reads.base_meta() == backend.reads.block_meta(base)
        assert backend.reads.latest_height() == chain.blocks[-1].block.header.height

    def test_blocks_come_back_as_they_went_in(
        self, backend: ChainBackend, chain: SampleChain
    ) -> None:
        """Every block, block ID and metadata is returned as it was stored."""
        for item in chain.blocks:
            height = item.block.header.height
            block_id, size = hashes.block_id(item.block)
            assert backend.reads.block(height) == (block_id, item.block)
            meta = backend.reads.block_meta(height)
            assert (meta.block_id, meta.size) == (block_id, size)
            assert (meta.header, meta.tx_count) == (item.block.header, len(item.block.txs))
            assert backend.reads.block_txs(height) == (meta, item.block.txs)
            assert backend.reads.height_of(block_id.hash) == height

    def test_metas_come_highest_first(self, backend: ChainBackend) -> None:
        """Metadata of a range includes both ends, highest first."""
        low, high = backend.reads.base_height(), backend.reads.latest_height()
        metas = backend.reads.block_metas(low, high)
        assert [meta.header.height for meta in metas] == list(range(high, low - 1, -1))
        assert metas[0] == backend.reads.block_meta(high)

    def test_commits_are_those_of_the_next_block(
        self, backend: ChainBackend, chain: SampleChain
    ) -> None:
        """A block's commit is the one in the next block; for the last block, it is the commit
        that was stored with it."""
        for item, child in zip(chain.blocks, chain.blocks[1:], strict=False):
            assert backend.reads.commit(item.block.header.height) == child.block.last_commit
        assert backend.reads.commit(backend.reads.latest_height()) == chain.blocks[-1].commit

    def test_results_come_back_as_they_went_in(
        self, backend: ChainBackend, chain: SampleChain
    ) -> None:
        """Results keep their order, their events and their bytes."""
        for item in chain.blocks:
            assert backend.reads.results(item.block.header.height) == item.results

    def test_transactions_are_found_by_hash(
        self, backend: ChainBackend, chain: SampleChain
    ) -> None:
        """Each transaction is found with its position and its result."""
        for item in chain.blocks:
            for index, tx in enumerate(item.block.txs):
                found = backend.reads.tx(hashes.tx_hash(tx))
                assert (found.height, found.index) == (item.block.header.height, index)
                assert (found.tx, found.result) == (tx, item.results.tx_results[index])

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize("window", [Page(0, 100), Page(1, 2, newest_first=True)])
    def test_a_search_finds_what_a_scan_finds(
        self, backend: ChainBackend, search: Search, window: Page
    ) -> None:
        """An index of the backend returns the same results as a scan, in the same order."""
        for prove in (False, True):
            found = backend.reads.search_txs(search, window, _LIMITS, prove)
            assert found == scan_txs(backend.reads, search, window, _LIMITS, prove)
        looked = scan_blocks(backend.reads, search, window, _LIMITS)
        assert backend.reads.search_blocks(search, window, _LIMITS) == looked

    def test_the_whole_chain_verifies(self, backend: ChainBackend, chain: SampleChain) -> None:
        """Hashes, signatures, validator sets and parameters are consistent."""
        assert verify_chain(backend.reads) == len(chain.blocks)

    def test_validators_are_known_two_heights_ahead(self, backend: ChainBackend) -> None:
        """Validator sets are available for every height up to two above the latest, and for no
        other height."""
        low, high = backend.reads.base_height(), backend.reads.latest_height()
        for height in range(low, high + 3):
            assert backend.reads.validators(height).total_power > 0
        for height in (low - 1, high + 3, 1 << 62):
            with pytest.raises(ResultNotFound):
                backend.reads.validators(height)

    def test_parameters_are_known_one_height_ahead(self, backend: ChainBackend) -> None:
        """Parameters are available for every height up to one above the latest, and for no
        other height."""
        low, high = backend.reads.base_height(), backend.reads.latest_height()
        assert backend.reads.consensus_params(low) == backend.reads.genesis().consensus_params
        backend.reads.consensus_params(high + 1)
        for height in (low - 1, high + 2):
            with pytest.raises(ResultNotFound):
                backend.reads.consensus_params(height)

    def test_the_genesis_is_stored(self, backend: ChainBackend, chain: SampleChain) -> None:
        """The genesis is returned completely."""
        assert backend.reads.genesis() == chain.genesis

    def test_what_is_not_there_is_a_typed_error(self, backend: ChainBackend) -> None:
        """Reads of missing heights and hashes raise errors, and never return ``None``."""
        for height in (-1, 0, backend.reads.latest_height() + 1, (1 << 63) - 1):
            for read in (
                backend.reads.block,
                backend.reads.block_meta,
                backend.reads.block_txs,
                backend.reads.commit,
                backend.reads.results,
            ):
                with pytest.raises(HeightNotAvailable):
                    read(height)
        for unknown in (b"", b"\x00" * 32, b"short"):
            with pytest.raises(BlockNotFound):
                backend.reads.height_of(unknown)
            with pytest.raises(TxNotFound):
                backend.reads.tx(unknown)

    def test_an_empty_chain_has_no_heights(self, empty: ChainBackend) -> None:
        """Before the first block, both heights are 0, and the first validator set is
        available."""
        assert (empty.reads.base_height(), empty.reads.latest_height()) == (0, 0)
        first = empty.reads.initial_height()
        assert empty.reads.validators(first).total_power > 0
        with pytest.raises(NotFound):
            empty.reads.block(first)

    def test_a_read_view_has_the_version_of_the_chain(self, backend: ChainBackend) -> None:
        """A read view shows one version of the chain."""
        latest = backend.reads.latest_height()
        with backend.reads.read_view() as version:
            assert version == backend.reads.version()
            assert backend.reads.latest_height() == latest

    def test_a_wait_ends_at_once_when_there_is_news(self, backend: ChainBackend) -> None:
        """Waiting for an existing height returns at once."""
        latest = backend.reads.latest_height()
        assert backend.reads.wait_for_height(latest - 1, timeout=60) == latest

    def test_a_wait_ends_at_its_timeout(self, backend: ChainBackend) -> None:
        """Waiting without a new block returns the latest height after the timeout."""
        latest = backend.reads.latest_height()
        assert backend.reads.wait_for_height(latest, timeout=0.01) == latest

    def test_a_filter_moves_once(self, backend: ChainBackend) -> None:
        """If two polls start from the same cursor, only one returns the changes."""
        filters, made = backend.filters, PolledFilter("0x1", FilterKind.BLOCKS, 3, "{}")
        filters.add(made, 1)
        with pytest.raises(Busy, match="NODERPC_EVM_FILTER_CAP"):
            filters.add(replace(made, id="0x2"), 1)
        assert [filters.move(made, 5) for _ in range(2)] == [True, False]
        assert backend.filters.get("0x1") == replace(made, cursor=5)
        assert [filters.drop("0x1") for _ in range(2)] == [True, False]
        with pytest.raises(FilterNotFound):
            filters.get("0x1")

    def test_the_filter_limit_is_divided_among_clients(self, backend: ChainBackend) -> None:
        """At the limit, a new client evicts a filter of the client with the most, until it has
        its share."""
        filters = backend.filters
        made = PolledFilter("0x1", FilterKind.BLOCKS, 3, "{}", owner="one")
        for request_id in ("0x1", "0x2", "0x3"):
            filters.add(replace(made, id=request_id), 3)
        filters.add(replace(made, id="0x4", owner="other"), 3)
        for owner in ("one", "other"):
            with pytest.raises(Busy, match="NODERPC_EVM_FILTER_CAP"):
                filters.add(replace(made, id="0x5", owner=owner), 3)
        with pytest.raises(FilterNotFound):
            filters.get("0x1")
        assert filters.get("0x4").owner == "other"

    def test_the_node_introduces_itself(self, backend: ChainBackend) -> None:
        """The node info contains the chain ID; the key and the peers have their types."""
        assert backend.network.node_info().network == backend.reads.chain_id()
        assert len(backend.network.validator_key().value) == 32
        assert isinstance(backend.network.net_info().peers, tuple)

    def test_times_keep_their_nanoseconds(self, backend: ChainBackend) -> None:
        """A header's time is not rounded."""
        first, second = backend.reads.base_height(), backend.reads.base_height() + 1
        step = (
            backend.reads.block_meta(second).header.time
            - backend.reads.block_meta(first).header.time
        )
        assert step == SECOND
