"""Create chains of any length without a store, with real blocks, hashes and signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..backends.base.application import Application, AppState, InitChain, Waiting
from ..backends.base.new_blocks import CommittedBlock
from ..chain import proposal
from ..chain.applications.kvstore import KVStore
from ..domain.block import (
    BlockID,
    DuplicateVoteEvidence,
    Evidence,
    PartSetHeader,
    Vote,
    VoteType,
)
from ..domain.genesis import ConsensusParams, Genesis, GenesisValidator, ValidatorParams
from ..domain.time import SECOND
from ..protocol.comet import hashes
from ..protocol.comet.chain_state import ChainState
from ..protocol.comet.keys import PrivateKey

GENESIS_TIME = 1_700_000_000 * SECOND


class DictState(dict[bytes, bytes]):
    """An application's committed state in a dictionary; its mempool is empty."""

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Return up to ``limit`` pairs whose keys begin with the prefix and sort after
        ``after``."""
        keys = sorted(
            key for key in self if key.startswith(prefix) and (after is None or key > after)
        )
        return tuple((key, self[key]) for key in keys[:limit])

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return no transactions."""
        return Waiting()

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply the writes of a block."""
        for key, value in changes.items():
            if value is None:
                self.pop(key, None)
            else:
                self[key] = value


@dataclass(frozen=True, slots=True)
class SampleChain:
    """A chain to test backends with: genesis, initial state, and blocks."""

    genesis: Genesis
    state: InitChain
    blocks: tuple[CommittedBlock, ...]


class ChainMaker:
    """Creates consecutive blocks, one second of chain time apart.

    ``powers`` are the validators' voting powers, and ``keys`` their keys, by default ed25519
    keys.
    """

    def __init__(
        self,
        powers: Sequence[int] = (10,),
        *,
        keys: Sequence[PrivateKey] = (),
        chain_id: str = "sample-chain",
        initial_height: int = 1,
        app_state: bytes = b"",
        application: Callable[[AppState], Application] = KVStore,
    ) -> None:
        own = [PrivateKey(bytes([index + 1]) * 32) for index in range(len(powers))]
        self.keys = list(keys) or own
        self.genesis = Genesis(
            chain_id=chain_id,
            genesis_time=GENESIS_TIME,
            initial_height=initial_height,
            consensus_params=ConsensusParams(
                validator=ValidatorParams(tuple({key.public.type: None for key in self.keys}))
            ),
            validators=tuple(
                GenesisValidator(key.address, key.public, power, f"validator-{index}")
                for index, (key, power) in enumerate(zip(self.keys, powers, strict=True))
            ),
            app_state=app_state,
        )
        self._state = DictState()
        self._app = application(self._state)
        self.state = self._app.init_chain(self.genesis)
        self._state.apply(self.state.changes)
        self.head = ChainState.at_genesis(self.genesis, self.state.app_hash)
        self._now = GENESIS_TIME

    def add_key(self, key: PrivateKey) -> None:
        """Also sign with this key, once its validator is in the set."""
        self.keys.append(key)

    def block(self, *txs: bytes, evidence: Sequence[Evidence] = ()) -> CommittedBlock:
        """Return the next block, with these transactions unchanged."""
        head, by_address = self.head, {key.address: key for key in self.keys}
        round_number, proposer = proposal.first_signable_round(head.validators, by_address)
        block = proposal.next_block(head, txs, proposer, 1, evidence)
        block_id, _ = hashes.block_id(block)
        execution = self._app.finalize_block(
            proposal.request(block, block_id.hash, head.validators, head.next_validators)
        )
        self._now += SECOND
        commit = proposal.precommits(head, block, block_id, round_number, by_address, self._now)
        results = proposal.results(block.header.height, execution)
        self._state.apply(execution.changes)
        self.head = head.next_state(block_id, block.header.time, commit, results)
        return CommittedBlock(block, commit, results, execution.changes)

    def double_vote(self, index: int, height: int, time: int) -> DuplicateVoteEvidence:
        """Return evidence: two signed votes of the validator ``index`` for different blocks at
        a height."""
        key = self.keys[index]
        position, member = self.head.validators.by_address[key.address]
        votes = []
        for mark in (b"\x11", b"\x22"):
            vote = Vote(
                VoteType.PREVOTE,
                height,
                0,
                BlockID(mark * 32, PartSetHeader(1, mark * 32)),
                time,
                key.address,
                position,
            )
            signed = key.sign_vote(vote, self.genesis.chain_id)
            votes.append(replace(vote, signature=signed.signature))
        return DuplicateVoteEvidence(
            votes[0], votes[1], self.head.validators.total_power, member.voting_power, time
        )


def make_blocks(maker: ChainMaker, count: int, txs_per_block: int) -> Iterator[CommittedBlock]:
    """Yield blocks of distinct ``key=value`` transactions."""
    for _ in range(count):
        height = maker.head.height + 1
        yield maker.block(*(b"k%d.%d=v%d" % (height, i, i) for i in range(txs_per_block)))


def make_chain(
    heights: int = 10, txs_per_block: int = 2, powers: Sequence[int] = (10, 7, 3)
) -> SampleChain:
    """Return a chain with all that a backend must store: several validators, a change of the
    set, a block without transactions, a failing transaction, and evidence."""
    maker = ChainMaker(powers)
    blocks = [maker.block(), *make_blocks(maker, max(1, heights - 4), txs_per_block)]
    newcomer = PrivateKey(b"\x77" * 32)
    maker.add_key(newcomer)
    blocks.append(maker.block(_validator_tx(newcomer, 5), b"val=no validator"))
    second = blocks[1].block.header
    blocks.append(maker.block(evidence=[maker.double_vote(0, second.height, second.time)]))
    blocks.append(maker.block(b"last=one"))
    return SampleChain(maker.genesis, maker.state, tuple(blocks))


def _validator_tx(key: PrivateKey, power: int) -> bytes:
    from base64 import b64encode

    return b"val=ed25519!" + b64encode(key.public.value) + b"!%d" % power
