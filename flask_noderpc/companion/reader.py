"""Read blocks, results, headers and validators of one upstream, with few calls per height."""

from __future__ import annotations

import re
import time
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass

from .. import jsoncodec
from ..backends.sql.block_writes import Precomputed
from ..domain.abci import BlockResults
from ..domain.block import Block, BlockID, BlockMeta, Commit, Header, SignedHeader
from ..domain.genesis import ConsensusParams, Genesis, GenesisChunk
from ..domain.responses import (
    ResultBlock,
    ResultBlockchainInfo,
    ResultCommit,
    ResultConsensusParams,
    ResultStatus,
    ResultValidators,
)
from ..domain.time import ZERO_TIME
from ..domain.validator import Validator, ValidatorSet
from ..errors import (
    ConfigurationError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from ..protocol.comet.genesis import read_genesis
from ..protocol.comet.hashes import header_hash
from .light import SignedBlock
from .upstream import (
    Call,
    CallResult,
    LoadedBlock,
    LoadedResults,
    NotDecoded,
    Upstream,
    call,
)

# CometBFT: rpc/core/env.go, maxPerPage; rpc/core/blocks.go, limit.
_PER_PAGE, METAS = 100, 20
_MAX_VALIDATORS = 10_000
_MAX_GENESIS_CHUNKS = 4_096
# Osmosis returns the large results of an epoch's last block only after minutes (cometbft#564).
_MAX_RESULTS_S = 120.0

# Bytes of the response to genesis_chunked that are read to find the initial height: GenesisDoc
# begins with time, chain ID and initial height (CometBFT: types/genesis.go).
_GENESIS_HEAD = 4_096
_CHUNK = re.compile(rb'"data"\s*:\s*"([A-Za-z0-9+/]*)')
_INITIAL_HEIGHT = re.compile(rb'"initial_height"\s*:\s*"(\d{1,18})"')
# Error texts of nodes without results: CometBFT's state/store.go, and forks.
_NO_RESULTS = re.compile(r"could not find results|not persist|not available|pruned|discard")


def _is_refused(answer: CallResult) -> bool:
    """Return true if the node has not said that it lacks the block or its results."""
    return isinstance(answer, UpstreamRefused) and not _NO_RESULTS.search(answer.text)


class NoResults(UpstreamRefused):
    """The upstream has a block without its results."""


class MismatchedResponse(UpstreamMismatch):
    """The response belongs to another request, such as from a proxy that was just
    reconfigured."""


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block of an upstream, with its results if the upstream has them."""

    block_id: BlockID
    block: Block
    results: BlockResults | None
    precomputed: Precomputed | None = None
    """Hashes, rows and index entries, if a decoding process has computed them."""

    @property
    def height(self) -> int:
        """Height of the block."""
        return self.block.header.height


class Reader:
    """Reads one upstream; raises the errors of :class:`Upstream`.

    A response for another height or page than requested raises :exc:`MismatchedResponse`.
    """

    def __init__(self, node: Upstream) -> None:
        self.node = node
        self.name = node.name
        self._results_s = node.limits.timeout

    def status(self) -> ResultStatus:
        """Return the node's status: version, chain ID and heights."""
        return self.node.get(ResultStatus, "status")

    def blocks(
        self, heights: Sequence[int], *, may_lack_results: bool = False
    ) -> list[ReadBlock]:
        """Return the blocks of these heights with their results, in this order.

        Raise :exc:`NoResults` for a block without results, unless blocks may lack them.
        """
        calls = [
            call(method, height=height)
            for height in heights
            for method in ("block", "block_results")
        ]
        answers = self._ask_with_growing_timeout(calls)
        if len(heights) == 1:
            # A node may limit the size of the response to a batch: ask for each part alone.
            answers = [
                self._ask_with_growing_timeout([asked])[0] if _is_refused(answer) else answer
                for asked, answer in zip(calls, answers, strict=True)
            ]
        loaded = self.node.load_blocks(calls, answers)
        found = [self._block(*each) for each in zip(heights, loaded, strict=True)]
        for each in found:
            if each.results is None and not may_lack_results:
                raise NoResults(
                    self.name,
                    0,
                    f"the upstream {self.name} has no results of block {each.height}: they are"
                    " pruned, not stored yet, or discarded (discard_abci_responses)",
                )
        return found

    def _ask_with_growing_timeout(self, calls: Sequence[Call]) -> list[CallResult]:
        """Send calls for blocks and results. After a timeout, double the timeout of the next
        request, up to 120 s."""
        timeout, began = self._results_s, time.monotonic()
        try:
            answers = self.node.ask(calls, timeout)
        except UpstreamUnavailable:
            if time.monotonic() - began >= timeout:
                self._results_s = min(2 * timeout, max(_MAX_RESULTS_S, timeout))
            raise
        self._results_s = self.node.limits.timeout
        return answers

    def _block(
        self, height: int, loaded: tuple[LoadedBlock, LoadedResults, Precomputed | None]
    ) -> ReadBlock:
        found, results, precomputed = loaded
        return ReadBlock(
            *self._check_height(height, found), self._results(height, results), precomputed
        )

    def _results(self, height: int, found: LoadedResults) -> BlockResults | None:
        if isinstance(found, UpstreamRefused):
            if _NO_RESULTS.search(found.text):
                return None
            raise found
        if found.height != height:
            raise self._mismatch("block_results", height)
        return found

    def blocks_without_results(self, low: int, high: int) -> list[tuple[BlockID, Block]]:
        """Return the blocks of a range, highest first, without their results."""
        heights = range(high, low - 1, -1)
        calls = [call("block", height=height) for height in heights]
        return [
            self._check_height(
                height,
                each
                if isinstance(each, UpstreamRefused)
                else self.node.load(ResultBlock, asked, each),
            )
            for height, asked, each in zip(heights, calls, self.node.ask(calls), strict=True)
        ]

    def block(self, height: int) -> tuple[BlockID, Block]:
        """Return one block without its results."""
        return self._check_height(height, self.node.get(ResultBlock, "block", height=height))

    def _check_height(self, height: int, found: LoadedBlock) -> tuple[BlockID, Block]:
        """Return a block, or raise its error. Raise ``MismatchedResponse`` for a block of
        another height, and ``UpstreamMismatch`` if its header does not have the reported
        hash."""
        if isinstance(found, UpstreamRefused):
            raise found
        if found.block is None or found.block.header.height != height:
            raise self._mismatch("block", height)
        if header_hash(found.block.header) != found.block_id.hash:
            raise UpstreamMismatch(
                self.name, f"block {height}: its header does not have the reported hash"
            )
        return found.block_id, found.block

    def results(self, height: int) -> BlockResults:
        """Return the results of one block."""
        found = self.node.get(BlockResults, "block_results", height=height)
        if found.height != height:
            raise self._mismatch("block_results", height)
        return found

    def commit(self, height: int) -> tuple[Header, Commit]:
        """Return the header of a height, and the commit that signs it."""
        found = self.node.get(ResultCommit, "commit", height=height).signed_header
        if found.header.height != height:
            raise self._mismatch("commit", height)
        return found.header, found.commit

    def signed_block(self, height: int) -> SignedBlock:
        """Return a header with its commit and its validators."""
        return SignedBlock(SignedHeader(*self.commit(height)), self.validators(height))

    def headers(self, low: int, high: int) -> list[Header]:
        """Return the headers of a range of at most ``METAS`` heights, highest first."""
        return [meta.header for meta in self.metas(low, high)]

    def metas(self, low: int, high: int) -> Sequence[BlockMeta]:
        """Return the metadata of a range of at most ``METAS`` heights, highest first."""
        found = self.node.get(
            ResultBlockchainInfo, "blockchain", minHeight=low, maxHeight=high
        ).block_metas
        if [meta.header.height for meta in found] != list(range(high, low - 1, -1)):
            raise self._mismatch("blockchain", low)
        return found

    def metas_descending(self, low: int, high: int) -> Sequence[BlockMeta]:
        """Return the metadata of a range of at most ``METAS`` heights, highest first, without
        heights that the node has pruned."""
        found = self.node.get(
            ResultBlockchainInfo, "blockchain", minHeight=low, maxHeight=high
        ).block_metas
        self._check_down(found, high)
        return found

    def headers_descending(self, low: int, high: int) -> list[Header]:
        """Return the headers of a range of any length, highest first; raise ``UpstreamRefused``
        if the node has pruned some."""
        tops = range(high, low - 1, -METAS)
        calls = [
            call("blockchain", minHeight=max(low, top - METAS + 1), maxHeight=top)
            for top in tops
        ]
        answers = self.node.ask(calls)
        headers: list[Header] = []
        for top, asked, answer in zip(tops, calls, answers, strict=True):
            if isinstance(answer, UpstreamRefused):
                raise answer
            metas = self.node.load(ResultBlockchainInfo, asked, answer).block_metas
            self._check_down(metas, top)
            headers += [meta.header for meta in metas]
            if len(metas) < min(METAS, top - low + 1):
                raise UpstreamRefused(self.name, 0, f"header {low} is not available")
        return headers

    def _check_down(self, metas: Sequence[BlockMeta], high: int) -> None:
        heights = [meta.header.height for meta in metas]
        if heights != list(range(high, high - len(metas), -1)):
            raise self._mismatch("blockchain", high)

    def header(self, height: int) -> Header:
        """Return one header."""
        (found,) = self.headers(height, height)
        return found

    def validators(self, height: int) -> ValidatorSet:
        """Return the validator set of a height with its priorities; read all pages."""
        members: list[Validator] = []
        page = 1
        while True:
            found = self.node.get(
                ResultValidators, "validators", height=height, page=page, per_page=_PER_PAGE
            )
            members += found.validators
            if found.block_height != height or not found.validators:
                raise self._mismatch("validators", height)
            if len(members) >= found.total:
                return ValidatorSet(tuple(members))
            if len(members) > _MAX_VALIDATORS:
                raise UpstreamMismatch(
                    self.name, f"more than {_MAX_VALIDATORS} validators at height {height}"
                )
            page += 1

    def params(self, height: int) -> ConsensusParams:
        """Return the consensus parameters of a height."""
        found = self.node.get(ResultConsensusParams, "consensus_params", height=height)
        if found.block_height != height:
            raise self._mismatch("consensus_params", height)
        return found.consensus_params

    def initial_height(self) -> int:
        """Return the initial height of the genesis document, by default 1; nothing proves
        it."""
        head = self.node.head_of(call("genesis_chunked", chunk=0), _GENESIS_HEAD)
        found = _CHUNK.search(head)
        content = b64decode(found[1][: len(found[1]) // 4 * 4]) if found else b""
        height = _INITIAL_HEIGHT.search(content)
        if height is None:
            height = _INITIAL_HEIGHT.search(self.genesis_chunk(0).content)
        return int(height[1]) if height else 1

    def genesis_of(self, document: bytes) -> Genesis:
        """Decode a genesis document."""
        dialect = self.node.dialect.name
        if not dialect.startswith("comet-"):
            asked = call("genesis_chunked")
            return self.node.load(Genesis, asked, jsoncodec.Raw(document))
        try:
            return read_genesis(document, ZERO_TIME, dialect)
        except ConfigurationError as error:
            raise NotDecoded(self.name, f"genesis_chunked: {error}") from None

    def genesis_chunk(self, number: int) -> GenesisChunk:
        """Return a chunk of the genesis document."""
        found = self.node.get(GenesisChunk, "genesis_chunked", chunk=number)
        if found.chunk != number:
            raise UpstreamMismatch(
                self.name, f"genesis_chunked: expected chunk {number}, got chunk {found.chunk}"
            )
        if not 0 < found.total <= _MAX_GENESIS_CHUNKS:
            raise UpstreamMismatch(
                self.name,
                f"genesis_chunked: expected a total of 1 to {_MAX_GENESIS_CHUNKS} chunks, got"
                f" {found.total}",
            )
        return found

    def _mismatch(self, method: str, height: int) -> MismatchedResponse:
        return MismatchedResponse(
            self.name, f"{method}: the response is not that of height {height}"
        )
