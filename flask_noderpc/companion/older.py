"""Heights below the store's lowest one: as a node answers them, until they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..domain.abci import BlockResults
from ..domain.block import Block, BlockID, BlockMeta, Commit
from ..domain.genesis import ConsensusParams
from ..domain.responses import ResultTx
from ..domain.search import TxResult
from ..domain.validator import ValidatorSet
from ..errors import Busy, NotFound, UpstreamError, UpstreamMismatch
from ..protocol.comet import hashes
from .pool import Upstreams
from .reader import Reader

T = TypeVar("T")


class OlderReads:
    """Reads of the nodes; they fit their request, and are not proven by anything.

    Each raises ``missing``, the error of the store, where no node has an answer.
    """

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    def block(self, height: int, missing: NotFound) -> tuple[BlockID, Block]:
        """Return a block, which has the hash that the node says."""
        return self._read(lambda reader: _block(reader, height), missing)

    def meta(self, height: int, missing: NotFound) -> BlockMeta:
        """Return the header of a block, its size, and its number of transactions."""
        return self._read(lambda reader: reader.metas(height, height)[0], missing)

    def results(self, height: int, missing: NotFound) -> BlockResults:
        """Return the results of a block."""
        return self._read(lambda reader: reader.results(height), missing)

    def commit(self, height: int, missing: NotFound) -> Commit:
        """Return the commit of a block."""
        return self._read(lambda reader: reader.commit(height)[1], missing)

    def validators(self, height: int, missing: NotFound) -> ValidatorSet:
        """Return the set of a height."""
        return self._read(lambda reader: reader.validators(height), missing)

    def params(self, height: int, missing: NotFound) -> ConsensusParams:
        """Return the consensus parameters of a height."""
        return self._read(lambda reader: reader.params(height), missing)

    def tx(self, tx_hash: bytes, missing: NotFound) -> TxResult:
        """Return a transaction, which has this hash."""
        return self._read(lambda reader: _tx(reader, tx_hash), missing)

    def _read(self, action: Callable[[Reader], T], missing: NotFound) -> T:
        try:
            return self._upstreams.attempt(action)
        except (UpstreamError, Busy):
            raise missing from None


def _block(reader: Reader, height: int) -> tuple[BlockID, Block]:
    block_id, block = reader.block(height)
    if hashes.header_hash(block.header) != block_id.hash:
        raise UpstreamMismatch(reader.name, f"block {height} does not have its hash")
    return block_id, block


def _tx(reader: Reader, tx_hash: bytes) -> TxResult:
    found = reader.node.get(ResultTx, "tx", hash=tx_hash)
    if hashes.tx_hash(found.tx) != tx_hash:
        raise UpstreamMismatch(reader.name, "tx is not the one that was asked for")
    return TxResult(found.height, found.index, found.tx, found.tx_result)
