"""Beginning of a store: a trusted header, and the state after its block."""

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
    """Number of chunks of blocks that are fetched at a time."""
    unchecked: frozenset[str] = frozenset()
    """Fields that the chain computes differently, such as ``data_hash``."""
    chain_id: str = ""
    """ID of the only chain to fetch; if it is empty, the store's or the nodes'."""

    def __post_init__(self) -> None:
        if others := sorted(self.unchecked - MAY_BE_UNCHECKED):
            raise InvalidSetting(
                f"--unchecked (NODERPC_UNCHECKED) {others[0]!r}: it may be"
                f" {', '.join(sorted(MAY_BE_UNCHECKED))}"
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
    """Begin a store with the block of a trusted header, unless it has blocks.

    The block has at most the given height, and is below the latest block and not ahead of this
    machine's clock. Raise :exc:`HeaderAhead` if all blocks are ahead,
    :exc:`~flask_noderpc.errors.ConfigurationError`, and as :meth:`Upstreams.attempt` does.
    """
    if not store.has_chain():
        height = min(height, agreed.latest - 1)
        if height < 1:
            raise ConfigurationError(
                f"chain {agreed.chain_id!r} has {agreed.latest} blocks: it can be fetched when"
                " it has two"
            )
        try:
            _init(store, upstreams, agreed.chain_id, height, options.trust)
        except HeaderAhead:
            ahead = lowest_ahead(upstreams, 1, height + 1, options.trust)
            if ahead is None or ahead < 3:
                raise
            _init(store, upstreams, agreed.chain_id, ahead - 2, options.trust)
        if agreed.is_halted and not options.trust.height:
            # The first header is trusted as it was read, and proves the latest block.
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

    Return the validator sets of its height and the two following ones, and the parameters that
    apply at the next height.
    """
    height, takes = trusted.height, trust.takes_unknown_keys
    # Read both from one node, as another one may report other priorities, which nothing proves.
    own, last = reader.validators(height), reader.validators(height + 2)
    following = reader.signed_block(height + 1)
    header = following.signed_header.header
    try:
        # The age does not matter, as the first header has just been chosen as trusted.
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
        raise UpstreamMismatch(reader.name, f"header {height + 1} refutes the parameters")
    return (own, following.validators, last), params


def check_rotation(before: ValidatorSet, after: ValidatorSet, height: int) -> None:
    """Raise :exc:`ValueError` if a set's proposer priorities contradict the same members'
    priorities one height before."""
    keys = [[(v.pub_key, v.voting_power) for v in each.validators] for each in (before, after)]
    if keys[0] != keys[1] or is_rescaled_next(before):
        # CometBFT rotates from the last change in one step, and rescales only once for that.
        return
    if rotated(before).validators != after.validators:
        raise ValueError(f"the priorities at {height} do not follow from the height before")
