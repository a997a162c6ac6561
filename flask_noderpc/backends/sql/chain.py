"""Table ``chain``: the beginning of the chain. Also reads the chain's state after the last
block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ...domain.block import NO_BLOCK, NO_COMMIT, Block, BlockMeta, Commit, Header
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.validator import ValidatorSet
from ...errors import GenesisNotAvailable, InvalidBlock, StoreError
from ...protocol.comet import hashes
from ...protocol.comet.chain_state import ChainState, check_signatures
from ...protocol.comet.key_types import are_known
from ..base.application import InitChain
from ..base.location import Identity
from . import block_writes, blocks, state
from .connection import Connection
from .packed import blocks as packed_blocks
from .packed import state as packed
from .values import write_changes

T = TypeVar("T")


_RESULT_FIELDS = frozenset({"app_hash", "last_results_hash"})


class ChainStart(NamedTuple):
    """Chain ID, initial height, and the trusted block at which the store began, if any."""

    chain_id: str
    initial_height: int
    trusted: BlockMeta | None

    def is_trusted(self, height: int) -> bool:
        """Return true if the trusted block has this height."""
        return self.trusted is not None and self.trusted.header.height == height


def chain_start(at: Connection) -> ChainStart | None:
    """Return the beginning of the chain; ``None`` if the store has no chain yet."""
    row = at.execute(
        "SELECT trusted, beginning, chain_id, initial_height, trusted_height, app_hash"
        " FROM chain"
    ).fetchone()
    if row is None:
        return None
    trusted, copy, *fields = row
    packed.check_beginning(copy, tuple(fields))
    chain_id, initial_height, height, _ = fields
    meta = None if trusted is None else packed_blocks.unpack_meta(trusted, height, chain_id)
    return ChainStart(chain_id, initial_height, meta)


def require_start(at: Connection) -> ChainStart:
    """Return the beginning of the chain; raise ``StoreError`` if the store has no chain yet."""
    found = chain_start(at)
    if found is None:
        raise StoreError("the store has no chain yet; call init_chain or init_at first")
    return found


def identity(at: Connection) -> Identity | None:
    """Return the chain ID, the application and the dialect of the store."""
    row = at.execute("SELECT chain_id, application, dialect FROM chain").fetchone()
    return None if row is None else Identity(*row)


# Chains that begin at a genesis document.


def init_chain(
    at: Connection, genesis: Genesis, state_: InitChain, application: str = ""
) -> None:
    """Store the genesis; storing an equal one again changes nothing."""
    begins = chain_start(at)
    if begins is not None:
        if begins.trusted is not None or stored_genesis(at) != genesis:
            raise _other_chain_error(begins)
        return
    params = genesis.consensus_params
    if state_.consensus_params:
        params = params.updated(state_.consensus_params)
    head = ChainState.at_genesis(genesis, state_.app_hash, state_.validators, params)
    write(at, genesis, head.app_hash, application)
    state.write_set(at, genesis.initial_height, head.validators)
    state.write_params(at, genesis.initial_height, head.params)
    write_changes(at, state_.changes)


def _other_chain_error(known: ChainStart) -> StoreError:
    start = "with another genesis" if known.trusted is None else "begun at another block"
    return StoreError(
        f"the store already has chain {known.chain_id!r}, {start}; set another NODERPC_DATABASE"
        " for this chain"
    )


def write(at: Connection, genesis: Genesis, app_hash: bytes, application: str) -> None:
    """Store the genesis, the app hash before the first block and the application's name."""
    at.execute(
        "INSERT INTO chain (id, chain_id, initial_height, application, app_hash, beginning,"
        " genesis, app_state) VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
        (
            genesis.chain_id,
            genesis.initial_height,
            application,
            app_hash,
            packed.pack_beginning((genesis.chain_id, genesis.initial_height, None, app_hash)),
            packed.pack_genesis(genesis),
            packed.pack_app_state(genesis.app_state),
        ),
    )


def stored_genesis(at: Connection) -> Genesis:
    """Return the genesis document; raise :exc:`GenesisNotAvailable` or ``StoreError``."""
    require_start(at)
    row = at.execute("SELECT genesis, app_state FROM chain").fetchone()
    if row[0] is None:
        raise GenesisNotAvailable
    return replace(packed.unpack_genesis(row[0]), app_state=packed.unpack_app_state(row[1]))


def set_genesis(at: Connection, genesis: Genesis) -> None:
    """Store the genesis document of a chain that began at a trusted block."""
    found = require_start(at)
    if (found.chain_id, found.initial_height) != (genesis.chain_id, genesis.initial_height):
        raise _other_chain_error(found)
    (stored,) = at.execute("SELECT genesis FROM chain").fetchone()
    if stored is not None:
        if stored_genesis(at) != genesis:
            raise _other_chain_error(found)
        return
    at.execute(
        "UPDATE chain SET genesis = ?, app_state = ?, revision = revision + 1",
        (packed.pack_genesis(genesis), packed.pack_app_state(genesis.app_state)),
    )


# Chains that begin at a trusted block.


def init_at(
    at: Connection,
    chain_id: str,
    initial_height: int,
    header: Header,
    commit: Commit,
    validators: Sequence[ValidatorSet],
    params: ConsensusParams,
) -> None:
    """Begin a chain above a trusted block; calling it again with equal values changes
    nothing."""
    meta = BlockMeta(commit.block_id, 0, header, 0)
    begins = chain_start(at)
    if begins is not None:
        same = begins == ChainStart(chain_id, initial_height, meta)
        if not same or not _are_stored(at, header.height, validators, params):
            raise _other_chain_error(begins)
        return
    _check_trusted(chain_id, initial_height, header, commit, validators)
    at.execute(
        "INSERT INTO chain (id, chain_id, initial_height, application, trusted_height, trusted,"
        " beginning) VALUES (1, ?, ?, '', ?, ?, ?)",
        (
            chain_id,
            initial_height,
            header.height,
            packed_blocks.pack_meta(meta),
            packed.pack_beginning((chain_id, initial_height, header.height, None)),
        ),
    )
    for height, members in enumerate(validators, header.height):
        state.write_set(at, height, members)
    state.write_params(at, header.height + 1, params)
    at.engine.prepare_range(at, header.height, header.height)
    block_writes.write_commits(at, [commit])


def _are_stored(
    at: Connection, height: int, validators: Sequence[ValidatorSet], params: ConsensusParams
) -> bool:
    """Return true unless different validator sets or parameters are stored; heights whose sets
    were pruned are not compared."""
    stored = [state.validators(at, height + n) for n in range(len(validators))]
    pairs = zip((*stored, state.params(at, height + 1)), (*validators, params), strict=True)
    return all(known is None or known == given for known, given in pairs)


def _check_trusted(
    chain_id: str,
    initial_height: int,
    header: Header,
    commit: Commit,
    validators: Sequence[ValidatorSet],
) -> None:
    if len(validators) != 3:
        raise InvalidBlock(
            f"trusted block {header.height}: expected the validator sets of three heights, got"
            f" {len(validators)} sets"
        )
    own, following, _ = validators
    rules = {
        "header.chain_id": header.chain_id == chain_id,
        "header.height": header.height >= initial_height > 0,
        "commit.height": commit.height == header.height,
        "commit.block_id": commit.block_id.hash == hashes.header_hash(header),
        "validators_hash": _has_hash(own, header.validators_hash),
        "next_validators_hash": _has_hash(following, header.next_validators_hash),
        "commit.signatures": len(commit.signatures) == len(own.validators),
    }
    for rule, holds in rules.items():
        if not holds:
            raise InvalidBlock(
                f"trusted block {header.height}: {rule} contradicts the header or commit"
            )
    check_signatures(chain_id, commit, own)


def _has_hash(members: ValidatorSet, expected: bytes) -> bool:
    # A set with keys of unknown encoding can't be hashed: trust it with the block.
    return not are_known(members) or hashes.validators_hash(members) == expected


# State.


def load_head(at: Connection) -> ChainState:
    """Return the state of the stored chain after its last block."""
    found = require_start(at)
    (height,) = at.execute(f"SELECT max(height) FROM {at.engine.heights}").fetchone()
    if height is not None:
        meta = _require(blocks.meta(at, height, found.chain_id))
        head = replace(_state(at, found, height), block_id=meta.block_id, time=meta.header.time)
        results = blocks.results(at, height)
        if results is None or (found.is_trusted(height) and not results.app_hash):
            # The results or their app hash are unknown, so the next header can't be checked
            # against them.
            return replace(head, unchecked=_RESULT_FIELDS)
        return replace(
            head,
            app_hash=results.app_hash,
            results_hash=hashes.results_hash(results.tx_results),
        )
    if found.trusted is not None:
        header = found.trusted.header
        return replace(
            _state(at, found, header.height),
            block_id=found.trusted.block_id,
            time=header.time,
            unchecked=_RESULT_FIELDS,
        )
    (app_hash,) = at.execute("SELECT app_hash FROM chain").fetchone()
    head = _state(at, found, found.initial_height - 1)
    return replace(head, time=stored_genesis(at).genesis_time, app_hash=app_hash)


def state_before(at: Connection, block: Block) -> ChainState:
    """Return the chain state before a stored block, built from the block's own header."""
    header = block.header
    height = header.height
    signers = state.validators(at, height - 1)
    return ChainState(
        chain_id=header.chain_id,
        initial_height=require_start(at).initial_height,
        height=height - 1,
        block_id=header.last_block_id,
        time=header.time,
        app_hash=header.app_hash,
        results_hash=header.last_results_hash,
        commit=block.last_commit,
        last_validators=signers or ValidatorSet(),
        validators=_require(state.validators(at, height)),
        next_validators=_require(state.validators(at, height + 1)),
        params=_require(state.params(at, height)),
        unchecked=frozenset(() if signers else ("time", "last_commit.signatures")),
    )


def _state(at: Connection, found: ChainStart, height: int) -> ChainState:
    return ChainState(
        chain_id=found.chain_id,
        initial_height=found.initial_height,
        height=height,
        block_id=NO_BLOCK,
        time=0,
        app_hash=b"",
        results_hash=hashes.results_hash(()),
        commit=blocks.commit(at, height) or NO_COMMIT,
        last_validators=state.validators(at, height) or ValidatorSet(),
        validators=_require(state.validators(at, height + 1)),
        next_validators=_require(state.validators(at, height + 2)),
        params=_require(state.params(at, height + 1)),
    )


def _require(value: T | None) -> T:
    if value is None:
        raise StoreError(
            "the store is damaged: its latest block has no results, validators or parameters;"
            " restore a backup"
        )
    return value
