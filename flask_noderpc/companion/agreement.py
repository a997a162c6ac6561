"""Check that all upstream nodes are of one chain: the store's, or any one if the store is
empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..backends.base.location import Identity
from ..backends.sql.store import ChainStore
from ..domain.responses import SyncInfo
from ..domain.time import SECOND
from ..errors import (
    ConfigurationError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from ..protocol.comet import hashes
from .pool import Upstreams
from .reader import Reader
from .trust import TrustOptions

CURRENT_NS = 600 * SECOND
"""Age in nanoseconds of the latest block at which a node, or the whole chain, counts as
halted."""


@dataclass(frozen=True, slots=True)
class AgreedChain:
    """The chain that all nodes report, apart from refused nodes."""

    chain_id: str
    latest: int
    """Latest height that every node has, ignoring nodes that are catching up or halted."""
    highest: int
    """Latest height of the node that is furthest ahead."""
    is_halted: bool
    """True if the chain looks halted at all nodes that respond."""


def agree(
    store: ChainStore, upstreams: Upstreams, chain_id: str, trust: TrustOptions
) -> AgreedChain:
    """Return the chain of the nodes; refuse nodes whose chain is not the store's.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the nodes are of several chains,
    if the store holds another chain or another block at the trusted height, and if the trusted
    header is above the nodes' latest block; raise the errors of :meth:`Upstreams.attempt`,
    too.
    """
    stored = _identity(store)
    check_stored(stored, store.location.display_name, chain_id)
    found = upstreams.ask_all(lambda reader: reader.status())
    chains = sorted({each.node_info.network for each in found})
    if len(chains) > 1:
        raise ConfigurationError(
            f"upstream nodes: expected one chain, got {' and '.join(map(repr, chains))}; pass"
            " --chain-id (NODERPC_CHAIN_ID) to use only the nodes of one of them"
        )
    if stored is not None:
        _check_trusted(store, trust)
    heights = [each.sync_info.latest_block_height for each in found]
    if trust.height > max(heights):
        raise ConfigurationError(
            f"--trust {trust.height}: expected a height up to the nodes' latest block"
            f" {max(heights)}; pass --trust HEIGHT:HASH of a lower header, or wait until the"
            " nodes have that block"
        )
    synced = [each.sync_info for each in found if not each.sync_info.catching_up]
    now = trust.clock()
    current = [each for each in synced if now - each.latest_block_time < CURRENT_NS]
    reached = [each.latest_block_height for each in current or synced]
    is_halted = are_halted([each.sync_info for each in found], now)
    return AgreedChain(chains[0], min(reached or heights), max(heights), is_halted)


def are_halted(found: Iterable[SyncInfo], now: int) -> bool:
    """Return true if all latest blocks are old, and no node is catching up."""
    return not any(
        each.catching_up or now - each.latest_block_time < CURRENT_NS for each in found
    )


def _check_trusted(store: ChainStore, trust: TrustOptions) -> None:
    if not max(1, store.reads.base_height()) <= trust.height <= store.reads.latest_height():
        return
    stored = store.reads.hash_at(trust.height)
    if stored != trust.hash:
        raise ConfigurationError(
            f"--trust {trust.height}: expected the hash of this block in"
            f" {store.location.display_name}, {stored.hex().upper()}, got"
            f" {trust.hash.hex().upper()}; pass --trust HEIGHT:HASH of the stored chain, or"
            " another --database"
        )


def check_stored(stored: Identity | None, shown: str, wanted: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a store with an embedded
    chain, or with another chain than ``wanted`` (if not empty)."""
    if stored is None:
        return
    if stored.application:
        raise ConfigurationError(
            f"{shown}: expected a store of a followed chain, got the embedded chain of the"
            f" application {stored.application!r}; pass another --database (NODERPC_DATABASE)"
        )
    if wanted and wanted != stored.chain_id:
        raise ConfigurationError(
            f"{shown}: expected a store of chain {wanted!r}, got one of {stored.chain_id!r};"
            " pass another --database (NODERPC_DATABASE) or --chain-id (NODERPC_CHAIN_ID)"
        )


def check_chain(store: ChainStore, chain_id: str, reader: Reader) -> None:
    """Raise ``UpstreamMismatch`` for a node of another chain than the store's, or of a fork,
    and ``UpstreamUnavailable`` for a node whose latest block is below all stored blocks.

    ``chain_id`` is the expected chain if the store is empty; an empty string allows any chain.
    """
    status, stored = reader.status(), _identity(store)
    wanted, reported = stored.chain_id if stored else chain_id, status.node_info.network
    if wanted and reported != wanted:
        raise UpstreamMismatch(
            reader.name, f"expected a node of chain {wanted!r}, got one of {reported!r}"
        )
    if stored is not None and (head := store.reads.latest_height()):
        height = min(status.sync_info.latest_block_height, head)
        if height < store.reads.base_height() - 1:
            # The store has none of the node's blocks, so they can't be compared.
            raise UpstreamUnavailable(
                reader.name,
                f"its latest block {height} is below the store's lowest block"
                f" {store.reads.base_height()}; wait until the node has caught up, or check"
                " whether it was reset",
            )
        _check_block(store, reader, height)


def _identity(store: ChainStore) -> Identity | None:
    # The store is created when a node first reports its chain; before, it has no identity.
    return store.identity() if store.is_made() else None


def _check_block(store: ChainStore, reader: Reader, height: int) -> None:
    try:
        reported = hashes.header_hash(reader.header(height))
    except UpstreamRefused:
        # The node has pruned that height, so there is nothing to compare.
        return
    stored = _hash_at(store, height)
    if reported != stored:
        raise UpstreamMismatch(
            reader.name,
            f"its block {height} is {reported.hex().upper()}, and the store's"
            f" {stored.hex().upper()}: the node is on a fork, or was reset; name a node of the"
            " stored chain, or another --database",
        )


def _hash_at(store: ChainStore, height: int) -> bytes:
    if height < store.reads.base_height():
        return store.reads.base_meta().header.last_block_id.hash
    return store.reads.hash_at(height)
