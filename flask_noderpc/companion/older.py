"""Read heights below the store's base from a node; headers prove those that are near the
base."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..backends.base.reads import mark_unverified
from ..backends.sql.store import ChainStore
from ..domain.abci import BlockResults, ExecTxResult
from ..domain.block import Block, BlockID, BlockMeta, Commit, Header, SignedHeader
from ..domain.genesis import ConsensusParams
from ..domain.responses import ResultBlock, ResultTx
from ..domain.search import TxResult
from ..domain.validator import ValidatorSet
from ..errors import Busy, NotFound, UpstreamError, UpstreamMismatch, UpstreamRefused
from ..protocol.comet import hashes
from ..protocol.comet.key_types import are_known
from .growth import are_proven
from .in_flight import ReadsInFlight
from .pool import Upstreams
from .proven_headers import ProvenHeaders
from .reader import Reader

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FetchedValue(Generic[T]):
    """A value read from a node; ``is_proven`` if headers that link it to the store prove
    it."""

    value: T
    is_proven: bool


class _Headers(NamedTuple):
    """The proven headers of a height and of the next one."""

    own: Header
    above: Header


class OlderReads:
    """Reads of heights below the store's lowest block, from nodes.

    The headers from the lowest block downwards prove the values of the next 1,000 heights;
    lower ones are marked as unverified. Each read raises ``missing``, the store's error, if no
    node has the value, or only a wrong one. ``unchecked`` names fields that the chain
    computes in its own way. Equal reads in flight are shared.
    """

    def __init__(
        self, upstreams: Upstreams, store: ChainStore, unchecked: frozenset[str] = frozenset()
    ) -> None:
        self._upstreams, self._store, self._unchecked = upstreams, store, unchecked
        self._proven = ProvenHeaders(store)
        self._reads = ReadsInFlight(upstreams.reserve)

    def block(self, height: int, missing: NotFound) -> tuple[BlockID, Block]:
        """Return a block with its ID."""
        return self._read(
            ("block", height), lambda reader: self._block(reader, height), missing
        )

    def meta(self, height: int, missing: NotFound) -> BlockMeta:
        """Return the header of a block, with a size and a number of transactions that are not
        proven."""
        return self._read(("meta", height), lambda reader: self._meta(reader, height), missing)

    def metas(self, low: int, high: int, missing: NotFound) -> tuple[BlockMeta, ...]:
        """Return the metadata of the heights of a range that a node has, highest first,
        unverified."""
        return self._read(
            ("metas", low, high),
            lambda reader: FetchedValue(
                tuple(reader.metas_descending(low, high)), is_proven=False
            ),
            missing,
        )

    def results(self, height: int, missing: NotFound) -> BlockResults:
        """Return the results of a block; only code, data and gas of transactions are
        proven."""
        return self._read(
            ("results", height), lambda reader: self._results(reader, height), missing
        )

    def commit(self, height: int, missing: NotFound) -> Commit:
        """Return the commit of a block."""
        return self._read(
            ("commit", height), lambda reader: self._commit(reader, height), missing
        )

    def signed_header(self, height: int, missing: NotFound) -> tuple[SignedHeader, bool]:
        """Return the header of a block with its commit, which the next block contains."""
        commit = self.commit(height, missing)
        return SignedHeader(self.meta(height, missing).header, commit), True

    def validators(self, height: int, missing: NotFound) -> ValidatorSet:
        """Return the validator set of a height; its proposer priorities are not proven."""
        return self._read(
            ("validators", height), lambda reader: self._validators(reader, height), missing
        )

    def params(self, height: int, missing: NotFound) -> ConsensusParams:
        """Return the consensus parameters of a height; only limits of blocks are proven."""
        return self._read(
            ("params", height), lambda reader: self._params(reader, height), missing
        )

    def tx(self, tx_hash: bytes, missing: NotFound) -> TxResult:
        """Return a transaction with its result; one in a block above the store's head counts
        as missing."""
        latest = self._store.reads.latest_height()
        return self._read(
            ("tx", tx_hash, latest), lambda reader: self._tx(reader, tx_hash, latest), missing
        )

    def height_of(self, block_hash: bytes, missing: NotFound) -> int:
        """Return the height of a block below the store's lowest one."""
        return self._read(
            ("height", block_hash), lambda reader: self._height(reader, block_hash), missing
        )

    def _read(
        self, key: Hashable, action: Callable[[Reader], FetchedValue[T]], missing: NotFound
    ) -> T:
        try:
            found = self._reads.get(key, lambda: self._upstreams.attempt(action))
        except (UpstreamError, Busy):
            raise missing from None
        if not found.is_proven:
            mark_unverified()
        return found.value

    def _headers(self, reader: Reader, height: int) -> _Headers | None:
        """Return the headers that prove a height; ``None`` if it is more than 1,000 below the
        store."""
        own = self._proven.get(reader, height)
        above = self._proven.get(reader, height + 1)
        return _Headers(own, above) if own and above else None

    def _block(self, reader: Reader, height: int) -> FetchedValue[tuple[BlockID, Block]]:
        block_id, block = reader.block(height)
        headers = self._headers(reader, height)
        if headers is None:
            return FetchedValue((block_id, block), is_proven=False)
        linked = headers.above.last_block_id
        is_proven = block_id == linked == hashes.block_id(block)[0]
        # A chain that hashes its data in its own way has another part set hash in the block
        # ID, so only compare the reported ID.
        if not is_proven and not ("data_hash" in self._unchecked and block_id == linked):
            raise UpstreamMismatch(reader.name, f"block {height} differs from the chain's")
        return FetchedValue((block_id, block), is_proven)

    def _meta(self, reader: Reader, height: int) -> FetchedValue[BlockMeta]:
        (found,) = reader.metas(height, height)
        headers = self._headers(reader, height)
        if headers and (found.header, found.block_id) != (
            headers.own,
            headers.above.last_block_id,
        ):
            raise UpstreamMismatch(reader.name, f"header {height} differs from the chain's")
        return FetchedValue(found, headers is not None)

    def _results(self, reader: Reader, height: int) -> FetchedValue[BlockResults]:
        found = reader.results(height)
        headers = self._headers(reader, height)
        if headers and not are_proven(found, headers.above):
            # Reject only this response, and not the node: after an upgrade, honest nodes decode
            # old results wrongly.
            raise UpstreamRefused(
                reader.name, 0, f"header {height + 1} refutes the results of block {height}"
            )
        return FetchedValue(found, headers is not None)

    def _commit(self, reader: Reader, height: int) -> FetchedValue[Commit]:
        found = reader.commit(height)[1]
        headers = self._headers(reader, height)
        if headers and (found.block_id, hashes.commit_hash(found)) != (
            headers.above.last_block_id,
            headers.above.last_commit_hash,
        ):
            raise UpstreamMismatch(reader.name, f"commit {height} differs from the chain's")
        return FetchedValue(found, headers is not None)

    def _validators(self, reader: Reader, height: int) -> FetchedValue[ValidatorSet]:
        found = reader.validators(height)
        own = self._proven.get(reader, height)
        if own is None or "validators_hash" in self._unchecked or not are_known(found):
            return FetchedValue(found, is_proven=False)
        if hashes.validators_hash(found) != own.validators_hash:
            raise UpstreamMismatch(
                reader.name, f"the validators of height {height} do not match its header"
            )
        return FetchedValue(found, is_proven=True)

    def _params(self, reader: Reader, height: int) -> FetchedValue[ConsensusParams]:
        found = reader.params(height)
        own = self._proven.get(reader, height)
        if own is None or "consensus_hash" in self._unchecked:
            return FetchedValue(found, is_proven=False)
        if hashes.consensus_hash(found) != own.consensus_hash:
            raise UpstreamMismatch(
                reader.name,
                f"the consensus parameters of height {height} do not match its header",
            )
        return FetchedValue(found, is_proven=True)

    def _height(self, reader: Reader, block_hash: bytes) -> FetchedValue[int]:
        block = reader.node.get(ResultBlock, "block_by_hash", hash=block_hash).block
        if block is None:
            raise UpstreamRefused(reader.name, 0, "no block has this hash")
        if hashes.header_hash(block.header) != block_hash:
            raise UpstreamMismatch(reader.name, "block_by_hash: the block has another hash")
        height = block.header.height
        if height >= self._store.reads.base_height():
            raise UpstreamRefused(reader.name, 0, f"block {height} is stored, or will be soon")
        own = self._proven.get(reader, height)
        if own is not None and hashes.header_hash(own) != block_hash:
            raise UpstreamMismatch(reader.name, f"block {height} differs from the chain's")
        return FetchedValue(height, own is not None)

    def _tx(self, reader: Reader, tx_hash: bytes, latest: int) -> FetchedValue[TxResult]:
        reported = reader.node.get(ResultTx, "tx", hash=tx_hash)
        if hashes.tx_hash(reported.tx) != tx_hash:
            raise UpstreamMismatch(reader.name, "tx: the transaction has another hash")
        if reported.height > latest:
            raise UpstreamRefused(reader.name, 0, f"block {reported.height} is not stored yet")
        found = TxResult(reported.height, reported.index, reported.tx, reported.tx_result)
        return FetchedValue(found, self._is_in_block(reader, found))

    def _is_in_block(self, reader: Reader, found: TxResult) -> bool:
        """Return true if a transaction and its result are proven; raise an error if they
        contradict the block."""
        block, results = self._content(reader, found.height)
        if not (block.is_proven and results.is_proven):
            return False
        txs, reported = block.value[1].txs, results.value.tx_results
        index = found.index
        if not 0 <= index < len(txs) == len(reported) or txs[index] != found.tx:
            raise UpstreamMismatch(
                reader.name, f"tx returned a transaction that is not in block {found.height}"
            )
        if _proven_part(reported[index]) != _proven_part(found.result):
            raise UpstreamRefused(
                reader.name,
                0,
                f"the routes tx and block_results have different results of transaction {index}"
                f" of block {found.height}",
            )
        return True

    def _content(
        self, reader: Reader, height: int
    ) -> tuple[FetchedValue[tuple[BlockID, Block]], FetchedValue[BlockResults]]:
        try:
            stored = self._store.reads.block(height), self._store.reads.results(height)
        except NotFound:
            return self._block(reader, height), self._results(reader, height)
        return FetchedValue(stored[0], is_proven=True), FetchedValue(stored[1], is_proven=True)


def _proven_part(result: ExecTxResult) -> bytes:
    """Return a hash of a result's code, data and gas, which a header proves."""
    return hashes.results_hash([result])
