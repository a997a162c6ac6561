"""Agreement of nodes on one chain: the store's, or the one that all of them report."""

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
"""Age of the latest block from which on a node, or the chain, counts as halted."""


@dataclass(frozen=True, slots=True)
class AgreedChain:
    """The chain of all nodes that are not refused."""

    chain_id: str
    latest: int
    """Latest height that all nodes have which are neither catching up nor halted."""
    highest: int
    """Highest latest height of all nodes."""
    is_halted: bool
    """True if the chain looks halted at all nodes that respond."""


def agree(
    store: ChainStore, upstreams: Upstreams, chain_id: str, trust: TrustOptions
) -> AgreedChain:
    """Return the chain of the nodes, and refuse nodes of other chains than the store's.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for nodes of several chains, for a
    store of another chain or without the trusted header, and for a trusted header above the
    nodes' latest; and the errors of :meth:`Upstreams.attempt`.
    """
    stored = _identity(store)
    check_stored(stored, store.location.display_name, chain_id)
    found = upstreams.ask_all(lambda reader: reader.status())
    chains = sorted({each.node_info.network for each in found})
    if len(chains) > 1:
        raise ConfigurationError(
            f"the nodes are of different chains, {' and '.join(map(repr, chains))}: --chain-id"
            " (NODERPC_CHAIN_ID) says which is meant"
        )
    if stored is not None:
        _check_trusted(store, trust)
    heights = [each.sync_info.latest_block_height for each in found]
    if trust.height > max(heights):
        raise ConfigurationError(
            f"--trust {trust.height}: expected a height that the nodes have, whose latest block"
            f" is {max(heights)}: wait until they have it, or pass --trust HEIGHT:HASH of a"
            " lower one"
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
            f"{store.location.display_name} has block {trust.height} {stored.hex().upper()},"
            f" which is not the trusted one, {trust.hash.hex().upper()}: pass --trust"
            " HEIGHT:HASH of the stored chain, or another --database"
        )


def check_stored(stored: Identity | None, shown: str, wanted: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a store whose chain can't be
    followed, or differs from ``wanted``, if that is given."""
    if stored is None:
        return
    if stored.application:
        raise ConfigurationError(
            f"{shown} holds the chain of the application {stored.application!r}, and not one of"
            " other nodes: name another file"
        )
    if wanted and wanted != stored.chain_id:
        raise ConfigurationError(
            f"{shown} holds chain {stored.chain_id!r}, and not {wanted!r}: name another file"
        )


def check_chain(store: ChainStore, chain_id: str, reader: Reader) -> None:
    """Raise ``UpstreamMismatch`` for a node of another chain than the store's, or of a fork,
    and ``UpstreamUnavailable`` for a node whose latest block is below all stored ones.

    ``chain_id`` is used for an empty store; if it is empty, any chain is allowed.
    """
    status, stored = reader.status(), _identity(store)
    wanted, reported = stored.chain_id if stored else chain_id, status.node_info.network
    if wanted and reported != wanted:
        raise UpstreamMismatch(
            reader.name, f"it is a node of chain {reported!r}, and not of {wanted!r}"
        )
    if stored is not None and (head := store.reads.latest_height()):
        height = min(status.sync_info.latest_block_height, head)
        if height < store.reads.base_height() - 1:
            # The store has none of the node's blocks, so they can't be compared.
            raise UpstreamUnavailable(
                reader.name,
                f"its latest block {height} is below the store's lowest,"
                f" {store.reads.base_height()}:"
                " it is catching up, or was reset",
            )
        _check_block(store, reader, height)


def _identity(store: ChainStore) -> Identity | None:
    # A store is only made once a node has reported a chain.
    return store.identity() if store.is_made() else None


def _check_block(store: ChainStore, reader: Reader, height: int) -> None:
    try:
        reported = hashes.header_hash(reader.header(height))
    except UpstreamRefused:
        # The node has pruned that height.
        return
    stored = _hash_at(store, height)
    if reported != stored:
        raise UpstreamMismatch(
            reader.name,
            f"its block {height} is {reported.hex().upper()}, and the store's"
            f" {stored.hex().upper()}: it is of a fork, or was reset; a node of the stored"
            " chain or another --database is needed",
        )


def _hash_at(store: ChainStore, height: int) -> bytes:
    if height < store.reads.base_height():
        return store.reads.base_meta().header.last_block_id.hash
    return store.reads.hash_at(height)
