"""Import of a range of a chain: from a trusted header downwards, and from the head upwards."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..backends.base.store import ChainStore
from ..domain.genesis import ConsensusParams, Genesis
from ..domain.responses import ResultStatus
from ..domain.validator import ValidatorSet
from ..errors import (
    Busy,
    ConfigurationError,
    UpstreamError,
    UpstreamMismatch,
)
from ..protocol.comet import hashes
from ..protocol.comet.key_types import are_known
from .growth import Growth
from .history import History, Progress
from .lease import held_lease
from .light import SignedBlock, check_follows
from .pool import Upstreams
from .reader import Reader
from .trust import TrustOptions, trusted_block

log = logging.getLogger("flask_noderpc.companion")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a store needs to begin at a trusted block."""

    trusted: SignedBlock
    validators: tuple[ValidatorSet, ValidatorSet, ValidatorSet]
    params: ConsensusParams
    genesis: Genesis | int
    """The document, or the initial height alone."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a chain is imported."""

    trust: TrustOptions = TrustOptions()
    jobs: int = 4
    """Chunks of blocks that are fetched at a time."""
    unchecked: frozenset[str] = frozenset()
    """Fields that the chain computes in its own way, such as ``data_hash``."""
    chain_id: str = ""
    """The only chain to import; empty for that of the first upstream."""


class Importer:
    """Fills a store from upstreams.

    It can be interrupted at any time, and goes on with what is missing when it is called again.
    """

    def __init__(
        self, store: ChainStore, upstreams: Upstreams, options: ImportOptions | None = None
    ) -> None:
        self._store, self._upstreams = store, upstreams
        self._options = options or ImportOptions()
        self._growth = Growth(
            store, upstreams, self._options.trust, self._options.jobs, self._options.unchecked
        )
        self._history = History(store, upstreams, self._options.jobs, self._options.unchecked)

    def plan(self, first: int = 1, last: int | None = None) -> int:
        """Begin the store if it is empty; return the number of blocks that are missing.

        ``last`` is the highest block, by default the last one whose results are proven. Raise
        :exc:`~flask_noderpc.errors.ConfigurationError` for a range that the chain does not
        have.
        """
        latest = self._agreed_latest(self._known_chain_id())
        top = latest - 1 if last is None else last
        if not 1 <= first <= top <= latest:
            raise ConfigurationError(
                f"blocks {first} to {top} can't be imported: the chain's latest is {latest}"
            )
        if not self._store.has_chain():
            self._begin(min(top, latest - 1))
        if self._store.latest_height() == 0:
            height = self._store.head().height
            self._history.fill(height, height, lambda _: None)
        self._first, self._last = max(first, self._store.initial_height()), top
        above = max(0, top - self._store.latest_height())
        return above + max(0, self._store.base_height() - self._first)

    def run(self, progress: Progress) -> tuple[int, int]:
        """Import what :meth:`plan` found missing; return the lowest and the highest height.

        Raise :exc:`~flask_noderpc.errors.StoreError` if another process writes the store's
        chain, and as :meth:`Upstreams.attempt` does.
        """
        with held_lease(self._store) as lease:
            self._growth.extend(self._last, progress, lease)
            base = self._store.base_height()
            if base > self._first:
                self._history.fill(base - 1, self._first, progress)
        return self._store.base_height(), self._store.latest_height()

    def _known_chain_id(self) -> str:
        """Return the id of the chain that is imported; empty if it may be any."""
        wanted = self._options.chain_id
        # A store is made when a chain is known to be there.
        stored = self._store.identity() if self._store.location.file.exists() else None
        if stored is None:
            return wanted
        if wanted and wanted != stored.chain_id:
            raise ConfigurationError(
                f"{self._store.location.shown} holds chain {stored.chain_id!r}, and not"
                f" {wanted!r}: name another --database"
            )
        return stored.chain_id

    def _agreed_latest(self, chain_id: str) -> int:
        """Return the highest latest height; refuse the upstreams of other chains."""
        first = self._upstreams.attempt(lambda reader: _status_of(reader, chain_id))
        latest = [first.sync_info.latest_block_height]
        self._chain_id = first.node_info.network
        for reader in self._upstreams.usable():
            try:
                found = _status_of(reader, self._chain_id)
            except UpstreamMismatch as error:
                self._upstreams.refuse(reader.name, error.reason)
            except (UpstreamError, Busy) as error:
                log.warning("%s", error)
            else:
                latest.append(found.sync_info.latest_block_height)
        return max(latest)

    def _begin(self, height: int) -> None:
        """Begin the store at the trusted header of a height."""
        if height < 1:
            raise ConfigurationError(
                "the chain has one block yet: it can be imported when the second is there"
            )
        trusted = trusted_block(self._upstreams, self._chain_id, height, self._options.trust)
        found = self._upstreams.attempt(
            lambda reader: _beginning(reader, trusted, self._options.trust.clock)
        )
        genesis = found.genesis if isinstance(found.genesis, Genesis) else None
        header = trusted.signed_header.header
        self._store.init_at(
            self._chain_id,
            genesis.initial_height if genesis else int(found.genesis),  # type: ignore[arg-type]
            header,
            trusted.signed_header.commit,
            found.validators,
            found.params,
        )
        if genesis is not None and genesis.chain_id == self._chain_id:
            self._store.set_genesis(genesis)


def _status_of(reader: Reader, chain_id: str) -> ResultStatus:
    found = reader.status()
    told = found.node_info.network
    if chain_id and told != chain_id:
        raise UpstreamMismatch(
            reader.name, f"it is a node of chain {told!r}, and not of {chain_id!r}"
        )
    return found


def _beginning(reader: Reader, trusted: SignedBlock, clock: Callable[[], int]) -> Beginning:
    """Read the state after a trusted block, which the next header proves."""
    height = trusted.height
    following = reader.signed_block(height + 1)
    try:
        # However old they are: the first was chosen to be trusted just now.
        check_follows(trusted, following, clock())
    except ValueError as error:
        raise UpstreamMismatch(reader.name, str(error)) from None
    header = following.signed_header.header
    last, params = reader.validators(height + 2), reader.params(height + 1)
    if are_known(last) and hashes.validators_hash(last) != header.next_validators_hash:
        raise UpstreamMismatch(reader.name, f"header {height + 1} refutes the next validators")
    if hashes.consensus_hash(params) != header.consensus_hash:
        raise UpstreamMismatch(reader.name, f"header {height + 1} refutes the parameters")
    sets = trusted.validators, following.validators, last
    return Beginning(trusted, sets, params, reader.genesis_or_height())
