"""Begin a store with a trusted header and the state after its block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..backends.base.new_blocks import MAY_BE_UNCHECKED
from ..backends.sql.store import ChainStore
from ..domain.genesis import ConsensusParams
from ..domain.validator import ValidatorSet
from ..errors import (
    ConfigurationError,
    InvalidSetting,
    UpstreamMismatch,
)
from ..protocol.comet import hashes
from ..protocol.comet.validators import is_rescaled_next, rotated
from . import shared_state
from .agreement import AgreedChain
from .history import History
from .light import FromTheFuture, SignedBlock, check_follows, check_set
from .pool import Upstreams
from .reader import Reader
from .trust import HeaderAhead, TrustOptions, lowest_ahead, trusted_block


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options for fetching a chain from its nodes."""

    trust: TrustOptions = field(default_factory=TrustOptions)
    jobs: int = 4
    """Number of chunks of blocks that are fetched in parallel."""
    unchecked: frozenset[str] = frozenset()
    """Fields that the chain computes in its own way, such as ``data_hash``."""
    chain_id: str = ""
    """ID of the chain to fetch; empty for the store's or, in an empty store, the nodes'
    chain."""

    def __post_init__(self) -> None:
        if others := sorted(self.unchecked - MAY_BE_UNCHECKED):
            raise InvalidSetting(
                f"--unchecked (NODERPC_UNCHECKED): expected some of"
                f" {', '.join(sorted(MAY_BE_UNCHECKED))}; got {others[0]!r}"
            )
        if "validators_hash" in self.unchecked:
            trust = replace(self.trust, takes_unknown_keys=True)
            object.__setattr__(self, "trust", trust)


def begin(
    store: ChainStore,
    upstreams: Upstreams,
    agreed: AgreedChain,
    height: int,
    options: FetchOptions,
) -> None:
    """Begin a store with the block of a trusted header, unless the store has blocks.

    The first block is the highest that is not above ``height``, is below the nodes' latest
    block, and is not ahead of this machine's clock. Raise :exc:`HeaderAhead` if all blocks are
    ahead, :exc:`~flask_noderpc.errors.ConfigurationError` for a chain with one block, and the
    errors of :meth:`Upstreams.attempt`.
    """
    if not store.has_chain():
        height = min(height, agreed.latest - 1)
        if height < 1:
            raise ConfigurationError(
                f"chain {agreed.chain_id!r}: expected at least two blocks, got {agreed.latest};"
                " run this again when the chain has more"
            )
        try:
            _init(store, upstreams, agreed.chain_id, height, options.trust)
        except HeaderAhead:
            ahead = lowest_ahead(upstreams, 1, height + 1, options.trust)
            if ahead is None or ahead < 3:
                raise
            _init(store, upstreams, agreed.chain_id, ahead - 2, options.trust)
        if agreed.is_halted and not options.trust.height:
            # Store that the first header was the newest, so that its age does not prevent it
            # from proving the next blocks: without --trust, it is trusted as it was read.
            newest = agreed.highest - 1
            shared_state.set_newest_seen(store, newest, options.trust.clock())
    if store.reads.latest_height() == 0:
        height = store.head().height
        history = History(store, upstreams, options.jobs, options.unchecked)
        history.fill(height, height, lambda _: None)


def _init(
    store: ChainStore, upstreams: Upstreams, chain_id: str, height: int, trust: TrustOptions
) -> None:
    trusted = trusted_block(upstreams, chain_id, height, trust)
    sets, params, initial_height = upstreams.attempt(
        lambda reader: (*state_after(reader, trusted, trust), reader.initial_height()),
        final=(HeaderAhead,),
    )
    signed = trusted.signed_header
    store.init_at(chain_id, initial_height, signed.header, signed.commit, sets, params)


def state_after(
    reader: Reader, trusted: SignedBlock, trust: TrustOptions
) -> tuple[tuple[ValidatorSet, ValidatorSet, ValidatorSet], ConsensusParams]:
    """Read the state after a trusted block, which the next header proves.

    Return the validator sets of its height and of the two following heights, and the consensus
    parameters of the next height.
    """
    height, takes = trusted.height, trust.takes_unknown_keys
    # Read all sets from one node: nothing proves the priorities, which must fit together.
    own, last = reader.validators(height), reader.validators(height + 2)
    following = reader.signed_block(height + 1)
    header = following.signed_header.header
    try:
        # Skip the check of the header's age: the header was only now chosen as trusted.
        check_follows(trusted, following, trust.clock(), takes_unknown_keys=takes)
        check_set(own, trusted.signed_header.header.validators_hash, height, takes)
        check_set(last, header.next_validators_hash, height + 2, takes)
        check_rotation(own, following.validators, height + 1)
        check_rotation(following.validators, last, height + 2)
    except FromTheFuture as error:
        raise HeaderAhead(reader.name, error) from None
    except ValueError as error:
        raise UpstreamMismatch(reader.name, str(error)) from None
    params = reader.params(height + 1)
    if hashes.consensus_hash(params) != header.consensus_hash:
        raise UpstreamMismatch(
            reader.name,
            f"the consensus parameters of height {height + 1} do not match its header",
        )
    return (own, following.validators, last), params


def check_rotation(before: ValidatorSet, after: ValidatorSet, height: int) -> None:
    """Raise :exc:`ValueError` if a set's proposer priorities do not follow from those one
    height before; sets with different members or power are not compared."""
    keys = [[(v.pub_key, v.voting_power) for v in each.validators] for each in (before, after)]
    if keys[0] != keys[1] or is_rescaled_next(before):
        # A changed set can't be compared. A set that would be rescaled next can't, either:
        # CometBFT rescales once for all heights since the set's last change, and ``rotated``
        # would rescale at each height.
        return
    if rotated(before).validators != after.validators:
        raise ValueError(
            f"the proposer priorities of height {height} do not follow from the priorities of"
            f" height {height - 1}"
        )
