"""``MemoryChain``: reads of a chain that is only in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice

from ..domain.abci import BlockResults
from ..domain.block import Block, BlockID, BlockMeta, Commit
from ..domain.genesis import ConsensusParams, Genesis
from ..domain.search import TxResult
from ..domain.validator import ValidatorSet
from ..errors import BlockNotFound, HeightNotAvailable, ResultNotFound, TxNotFound
from ..protocol.comet.chain_state import ChainState
from ..protocol.comet.hashes import block_hashes, tx_hash
from .base.application import InitChain
from .base.new_blocks import CommittedBlock
from .base.reads import ChainReads


class MemoryChain(ChainReads):
    """Reads of blocks in memory; nothing is written to disk."""

    def __init__(
        self,
        genesis: Genesis,
        blocks: Sequence[CommittedBlock] = (),
        *,
        state: InitChain | None = None,
    ) -> None:
        self._genesis = genesis
        state = state or InitChain()
        params = genesis.consensus_params
        if state.consensus_params:
            params = params.updated(state.consensus_params)
        self._heads = [ChainState.at_genesis(genesis, state.app_hash, state.validators, params)]
        self._blocks: list[tuple[CommittedBlock, BlockID, int]] = []
        self._heights: dict[bytes, int] = {}
        self._txs: dict[bytes, TxResult] = {}
        self._grown = threading.Condition()
        self.append_block(*blocks)

    def append_block(self, *blocks: CommittedBlock) -> None:
        """Append blocks; raise :exc:`~flask_noderpc.errors.InvalidBlock` if one does not follow
        its parent."""
        for item in blocks:
            found = block_hashes(item.block)
            hashes = self._heads[-1].check(item.block, item.commit, item.results, found)
            block_id, size, header = hashes.block_id, hashes.size, item.block.header
            head = self._heads[-1].next_state(block_id, header.time, item.commit, item.results)
            with self._grown:
                self._heights[block_id.hash] = header.height
                self._index(item)
                self._heads.append(head)
                self._blocks.append((item, block_id, size))
                self._grown.notify_all()

    def _index(self, item: CommittedBlock) -> None:
        height = item.block.header.height
        pairs = zip(item.block.txs, item.results.tx_results, strict=True)
        for index, (tx, result) in enumerate(pairs):
            known = self._txs.get(tx_hash(tx))
            # As in CometBFT, a later failure does not hide an earlier success.
            if known is None or result.code == 0 or known.result.code != 0:
                self._txs[tx_hash(tx)] = TxResult(height, index, tx, result)

    def latest_height(self) -> int:
        return self._genesis.initial_height - 1 + len(self._blocks) if self._blocks else 0

    def base_height(self) -> int:
        return self._genesis.initial_height if self._blocks else 0

    def _at(self, height: int) -> tuple[CommittedBlock, BlockID, int]:
        base, latest = self.base_height(), self.latest_height()
        if not self._blocks or not base <= height <= latest:
            raise HeightNotAvailable(height, base, latest)
        return self._blocks[height - base]

    def block(self, height: int) -> tuple[BlockID, Block]:
        item, block_id, _ = self._at(height)
        return block_id, item.block

    def block_meta(self, height: int) -> BlockMeta:
        item, block_id, size = self._at(height)
        block = item.block
        return BlockMeta(block_id, size, block.header, len(block.txs), block.form)

    def height_of(self, block_hash: bytes) -> int:
        if block_hash not in self._heights:
            raise BlockNotFound(block_hash)
        return self._heights[block_hash]

    def commit(self, height: int) -> Commit:
        item, _, _ = self._at(height)
        if height < self.latest_height():
            return self._at(height + 1)[0].block.last_commit
        return item.commit

    def results(self, height: int) -> BlockResults:
        return self._at(height)[0].results

    def genesis(self) -> Genesis:
        return self._genesis

    def validators(self, height: int) -> ValidatorSet:
        offset = height - self._genesis.initial_height
        if 0 <= offset < len(self._heads):
            return self._heads[offset].validators
        if offset == len(self._heads):
            return self._heads[-1].next_validators
        raise ResultNotFound(f"could not find validator set for height #{height}")

    def consensus_params(self, height: int) -> ConsensusParams:
        offset = height - self._genesis.initial_height
        if 0 <= offset < len(self._heads):
            return self._heads[offset].params
        raise ResultNotFound(f"could not find consensus params for height #{height}")

    def tx(self, tx_hash: bytes) -> TxResult:
        if tx_hash not in self._txs:
            raise TxNotFound(tx_hash)
        return self._txs[tx_hash]

    def latest_txs(self, limit: int) -> tuple[TxResult, ...]:
        positions = (
            (item, index)
            for item, _, _ in reversed(self._blocks)
            for index in range(len(item.block.txs) - 1, -1, -1)
        )
        return tuple(
            TxResult(
                item.block.header.height,
                index,
                item.block.txs[index],
                item.results.tx_results[index],
            )
            for item, index in islice(positions, limit)
        )

    def wait_for_height(self, after: int, timeout: float) -> int:
        with self._grown:
            self._grown.wait_for(lambda: self.latest_height() > after, timeout)
            return self.latest_height()
