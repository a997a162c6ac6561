"""Append blocks above the head: the signed header of each chunk's highest block proves the
chunk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

from ..backends.base.new_blocks import BlockWithoutResults, CommittedBlock
from ..backends.sql.lease import Lease
from ..backends.sql.store import ChainStore
from ..domain.abci import BlockResults
from ..domain.block import Header, SignedHeader
from ..domain.responses import ResultABCIInfo
from ..domain.validator import ValidatorSet
from ..errors import (
    InvalidBlock,
    LeaseLost,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from ..protocol.comet import hashes
from ..protocol.comet.chain_state import check_signatures
from ..protocol.comet.key_types import are_known
from .beginning import state_after
from .chunks import Chunk, Range, are_down, ascending_ranges, fetch_all, fetch_next, fetch_one
from .gaps import reason_of
from .head_age import HeadAge
from .history import Progress
from .light import SignedBlock
from .pool import Upstreams
from .reader import Reader
from .revival import Revival, check_not_pruned
from .trust import (
    HeaderAhead,
    TrustOptions,
    check_linked,
    check_trusted,
    links,
    lowest_ahead,
    prove,
)

log = logging.getLogger("flask_noderpc.companion")


@dataclass(frozen=True, slots=True)
class NewerBlocks:
    """Blocks of a range, lowest first, with the signed header of the highest block."""

    blocks: list[CommittedBlock]
    top: SignedBlock


FindSigners = Callable[[Reader, Header], ValidatorSet]
"""A function that returns the validator set that signed a header; priorities are not
proven."""


def fetch_newer(reader: Reader, low: int, high: int, members: FindSigners) -> NewerBlocks:
    """Return the blocks of a range with results, and the signed header of the highest
    block."""
    header, commit = reader.commit(high)
    top = SignedBlock(SignedHeader(header, commit), members(reader, header))
    found = reader.blocks(range(low, high + 1))
    above = [each.block for each in found[1:]]
    commits = [*(block.last_commit for block in above), top.signed_header.commit]
    app_hashes = [*(block.header.app_hash for block in above), b""]
    blocks = []
    for each, commit, app_hash in zip(found, commits, app_hashes, strict=True):
        results = each.results
        assert results is not None, "blocks are asked for with their results"
        if not results.app_hash:
            # Before 0.38, CometBFT's results do not contain the app hash.
            results = replace(results, app_hash=app_hash or _app_hash(reader, each.height))
        blocks.append(
            CommittedBlock(
                each.block,
                commit,
                results,
                source=reader.name,
                precomputed=each.precomputed,
            )
        )
    return NewerBlocks(blocks, top)


def _app_hash(reader: Reader, height: int) -> bytes:
    """Return the app hash after a block, from the next header or from the application."""
    with suppress(UpstreamRefused):
        info = reader.node.get(ResultABCIInfo, "abci_info").response
        if info.last_block_height == height:
            return info.last_block_app_hash
    with suppress(UpstreamRefused):
        return reader.commit(height + 1)[0].app_hash
    # Do not count this as a failure of the node: in the dialect "document", abci_info has no
    # height, so the app hash is only known once the next header exists.
    reason = f"upstream {reader.name}: it does not have the app hash of height {height} yet"
    raise UpstreamError(reader.name, reason)


class Growth:
    """Appends chunks of blocks to a store, after signatures of the head's validators proved
    them.

    ``unchecked`` names fields that the chain computes in its own way. With
    ``proven_only``, a block is only appended once the next header proves its results.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Upstreams,
        trust: TrustOptions,
        age: HeadAge,
        jobs: int = 4,
        unchecked: frozenset[str] = frozenset(),
        *,
        proven_only: bool = False,
    ) -> None:
        self._store, self._upstreams, self._trust = store, upstreams, trust
        self._jobs, self._unchecked = jobs, unchecked
        self._proven_only = proven_only
        self._age = age
        self._revival = Revival(store, upstreams, trust, age)

    def extend(self, last: int, progress: Progress, lease: Lease | None = None) -> None:
        """Append the blocks from above the head up to ``last``.

        Raise :exc:`CannotFollow` if the head is older than the trusting period and no newer
        trusted header is set, and if all nodes have pruned the next blocks. Raise
        :exc:`HeaderAhead` at a block whose time is ahead of this machine's clock, after
        appending the blocks before it, and the errors of :meth:`Upstreams.attempt`.
        """
        while (first := self._store.reads.latest_height() + 1) <= last:
            high = self._below_ahead(first, last)
            try:
                if linked_to := self._revival.linked_trusted_height():
                    self._extend(min(high, linked_to - self._proven_only), progress, lease)
                self._extend(high, progress, lease)
            except UpstreamRefused:
                low = self._store.reads.latest_height() + 1
                if low < high:
                    check_not_pruned(self._store, self._upstreams, low, high)
                raise

    def _below_ahead(self, first: int, last: int) -> int:
        """Return the height up to which no header is ahead of this machine's clock, according
        to one node; at least ``first``, as only the block's signatures prove its time."""
        if first == last:
            return last
        top = last + self._proven_only
        ahead = lowest_ahead(self._upstreams, first, top, self._trust)
        return last if ahead is None else max(first, ahead - 1 - self._proven_only)

    def close(self) -> None:
        """Forget the link between the head and a trusted header."""
        self._revival.close()

    def _extend(self, last: int, progress: Progress, lease: Lease | None) -> None:
        first = self._store.reads.latest_height() + 1
        if first == last:
            # The store has the validators of this block. With proven_only, the next block's
            # validators are needed as well, and have to be fetched.
            fetch = self._fetch if self._proven_only else self._fetch_next
            self._append(fetch_next(self._upstreams, fetch, last), lease)
            progress(1)
            return
        chunks = fetch_all(self._chunk, ascending_ranges(first, last), self._jobs)
        with closing(chunks):
            for chunk in chunks:
                self._append(chunk, lease)
                low, high = chunk.range
                progress(high - low + 1)

    def _chunk(self, wanted: Range) -> Chunk[NewerBlocks]:
        return fetch_one(self._upstreams, self._fetch, wanted)

    def _fetch(self, reader: Reader, low: int, high: int) -> NewerBlocks:
        top = high + 1 if self._proven_only else high
        return fetch_newer(reader, low, top, self._members)

    def _members(self, reader: Reader, header: Header) -> ValidatorSet:
        """Return the validator set of a header: the stored set of the next block if it has the
        header's hash, as sets rarely change, and reading a large one takes several calls."""
        known = self._store.reads.validators(self._store.reads.latest_height() + 1)
        if are_known(known) and hashes.validators_hash(known) == header.validators_hash:
            return known
        return reader.validators(header.height)

    def _fetch_next(self, reader: Reader, low: int, high: int) -> NewerBlocks:
        return fetch_newer(reader, low, high, lambda *_: self._store.reads.validators(high))

    def may_step_over(self, error: UpstreamError) -> bool:
        """Return true if a node responds, so that an error concerns only the next block."""
        return not are_down(self._upstreams, error)

    def step_over(self, lease: Lease) -> str:
        """Append the next block, without its results if no node returns them.

        Return why the results are missing; an empty string if they are stored. Raise the
        errors of :meth:`extend` if the nodes lack the block itself or the following one.
        """
        height = self._store.reads.latest_height() + 1
        try:
            self.extend(height, lambda count: None, lease)
        except HeaderAhead:
            raise
        except (UpstreamRefused, UpstreamUnavailable) as error:
            reason = reason_of(error)
        else:
            return ""
        while True:
            chunk = fetch_next(self._upstreams, self._fetch_without_results, height)
            self._check_not_overtaken(chunk)
            item, top = chunk.content
            try:
                self._prove(chunk.reader, [item.block.header], top)
                self._store.append_without_results(item, lease)
            except (InvalidBlock, UpstreamMismatch) as error:
                self._check_not_overtaken(chunk)
                self._upstreams.refuse(chunk.reader.name, error.text)
            else:
                return reason

    def _fetch_without_results(
        self, reader: Reader, low: int, high: int
    ) -> tuple[BlockWithoutResults, SignedBlock]:
        """Return a block with the validators and parameters after it, and its signed
        header."""
        _, block = reader.block(high)
        header, commit = reader.commit(high)
        top = SignedBlock(SignedHeader(header, commit), self._store.reads.validators(high))
        (_, _, following), params = state_after(reader, top, self._trust)
        item = BlockWithoutResults(
            block, commit, following, params, unchecked=self._unchecked, source=reader.name
        )
        return item, top

    def _append(self, chunk: Chunk[NewerBlocks], lease: Lease | None) -> None:
        deadline = self._upstreams.deadline()
        while True:
            self._check_not_overtaken(chunk)
            low, high = chunk.range
            blocks = [replace(each, unchecked=self._unchecked) for each in chunk.content.blocks]
            blocks, above = blocks[: high - low + 1], blocks[high - low + 1 :]
            try:
                self._check_headers(chunk)
                self._prove_results(chunk)
                for each in above:
                    self._check_next(blocks, each.block.header, chunk.reader.name)
                self._store.append_block(*blocks, lease=lease)
            except (InvalidBlock, UpstreamMismatch) as error:
                self._check_not_overtaken(chunk)
                self._upstreams.refuse(chunk.reader.name, error.text)
            except HeaderAhead:
                raise
            except UpstreamUnavailable as error:
                self._upstreams.wait(error, deadline)
            else:
                return
            chunk = fetch_one(self._upstreams, self._fetch, chunk.range)

    def _check_not_overtaken(self, chunk: Chunk[Any]) -> None:
        if self._store.reads.latest_height() + 1 != chunk.range[0]:
            raise LeaseLost("another process has added blocks to the store")

    def _check_headers(self, chunk: Chunk[NewerBlocks]) -> None:
        """Raise ``UpstreamMismatch`` unless the head's validators prove the chunk's headers."""
        headers = [each.block.header for each in chunk.content.blocks]
        self._prove(chunk.reader, headers, chunk.content.top)

    def _prove(self, reader: Reader, headers: Sequence[Header], top: SignedBlock) -> None:
        name = reader.name
        self._prove_top(reader, top)
        # The proof needs only two thirds of the signatures. Check them all, as the whole
        # commit is served while this is the latest block.
        check_signatures(self._store.reads.chain_id(), top.signed_header.commit, top.validators)
        *below, highest = headers
        above = top.signed_header.header
        if highest != above:
            raise UpstreamMismatch(
                name, f"its commit and its block at height {top.height} have different headers"
            )
        for header in reversed(below):
            if not links(header, above):
                raise UpstreamMismatch(
                    name, f"block {above.height} does not follow block {header.height}"
                )
            above = header
        for header in headers:
            if header.height == self._trust.height:
                check_trusted(name, header, self._trust)

    def _prove_top(self, reader: Reader, top: SignedBlock) -> None:
        """Raise ``UpstreamMismatch`` unless a signed header is proven: by hashes down from a
        trusted header, or by the head's validators."""
        expected = self._revival.hash_at(top.height)
        if not expected:
            head = self._head()
            prove(reader, head, top, self._trust, self._age.newest_seen_at(head.height))
            return
        check_linked(reader.name, self._store.reads.chain_id(), top, expected, self._trust)

    def _head(self) -> SignedBlock:
        height = self._store.reads.latest_height()
        header = self._store.reads.block_meta(height).header
        commit = self._store.reads.commit(height)
        return SignedBlock(SignedHeader(header, commit), self._store.reads.validators(height))

    def _prove_results(self, chunk: Chunk[NewerBlocks]) -> None:
        """Replace the head's results if the next header refutes them.

        The head's results were stored unproven, from one upstream. Raise ``UpstreamMismatch``
        if this chunk's upstream has wrong results as well.
        """
        header, reader = chunk.content.blocks[0].block.header, chunk.reader
        if not self._refuted_by(header):
            return
        height = header.height - 1
        (found,) = reader.blocks([height])
        if found.results is None or not are_proven(found.results, header):
            raise UpstreamMismatch(reader.name, f"header {header.height} refutes its results")
        log.error(
            "header %d refutes the stored results of block %d: replaced by those of %s",
            header.height,
            height,
            reader.name,
        )
        results = replace(found.results, app_hash=header.app_hash)
        commit = chunk.content.blocks[0].block.last_commit
        self._store.replace_head(
            CommittedBlock(
                found.block,
                commit,
                results,
                unchecked=self._unchecked,
                source=reader.name,
                precomputed=found.precomputed,
            )
        )
        if refuted := self._refuted_by(header):
            raise UpstreamMismatch(
                reader.name,
                f"header {header.height} refutes the updates of its results: {refuted[0]}",
            )

    def _check_next(self, blocks: list[CommittedBlock], above: Header, name: str) -> None:
        """Raise ``UpstreamMismatch`` if ``above``, the header after the blocks, contradicts
        their results."""
        state = self._store.head()
        for each in blocks:
            time, block_id = each.block.header.time, each.commit.block_id
            state = state.next_state(block_id, time, each.commit, each.results)
        if refuted := sorted(set(state.refuted_by(above)) - self._unchecked):
            raise UpstreamMismatch(
                name, f"header {above.height} refutes its results: {refuted[0]}"
            )

    def _refuted_by(self, header: Header) -> list[str]:
        return sorted(set(self._store.head().refuted_by(header)) - self._unchecked)


def are_proven(results: BlockResults, above: Header) -> bool:
    """Return true if the next header, ``above``, has the hashes of these results."""
    if results.app_hash and results.app_hash != above.app_hash:
        return False
    return hashes.results_hash(results.tx_results) == above.last_results_hash
