"""Maker of a chain's blocks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from struct import unpack

from flask_noderpc.backends.base.new_blocks import CommittedBlock
from flask_noderpc.chain.proposal import next_block
from flask_noderpc.domain.block import ABSENT, Block, BlockID, BlockIDFlag, Commit, CommitSig
from flask_noderpc.domain.genesis import Genesis, GenesisValidator
from flask_noderpc.domain.time import MILLISECOND, SECOND
from flask_noderpc.protocol.comet import hashes, messages
from flask_noderpc.protocol.comet.chain_state import ChainState
from flask_noderpc.testing.chains import GENESIS_TIME

from .content import Content, Shape, content, powers
from .signers import Signers, Unsigned, signers

_BLOCK_NS = 6 * SECOND
# Absent votes, and votes for nil, among 65,536 votes.
_ABSENT, _NIL = 650, 130


def genesis_of(shape: Shape) -> Genesis:
    """Return the genesis of a chain of this shape."""
    keys = [shape.key(index) for index in range(shape.validators)]
    return Genesis(
        chain_id=f"realistic-{shape.name}",
        genesis_time=GENESIS_TIME,
        validators=tuple(
            GenesisValidator(key.address, key.public, power, f"validator-{index}")
            for index, (key, power) in enumerate(zip(keys, powers(shape), strict=True))
        ),
    )


class Maker:
    """Adds blocks to a chain; without signers, signatures are random bytes."""

    def __init__(self, shape: Shape, head: ChainState, signers: Signers | None = None) -> None:
        self._numbers = {shape.key(n).address: n for n in range(shape.validators)}
        self._shape, self._signers = shape, signers
        self.head = head

    def block(self, made: Content) -> CommittedBlock:
        """Return the next block, with this content."""
        head = self.head
        block = next_block(head, made.txs, head.validators.proposer, 1)
        block_id, _ = hashes.block_id(block)
        commit = self._commit(block, block_id)
        self.head = head.next_state(block_id, block.header.time, commit, made.results)
        return CommittedBlock(block, commit, made.results)

    def _commit(self, block: Block, block_id: BlockID) -> Commit:
        height = block.header.height
        random = Random(f"{self._shape.name} votes {height}")
        votes = self._votes(random, block.header.time + _BLOCK_NS)
        unsigned = Commit(height, 0, block_id, votes)
        signatures = iter(self._signatures(unsigned, block.header.chain_id, random))
        return Commit(
            height,
            0,
            block_id,
            tuple(
                vote
                if vote is ABSENT
                else CommitSig(
                    vote.block_id_flag,
                    vote.validator_address,
                    vote.timestamp,
                    next(signatures),
                )
                for vote in votes
            ),
        )

    def _votes(self, random: Random, time: int) -> tuple[CommitSig, ...]:
        members = self.head.validators.validators
        rolls = unpack(f"<{2 * len(members)}H", random.randbytes(4 * len(members)))
        return tuple(
            ABSENT
            if roll < _ABSENT
            else CommitSig(
                BlockIDFlag.NIL if roll < _ABSENT + _NIL else BlockIDFlag.COMMIT,
                member.address,
                time + delay * MILLISECOND // 70 + roll,
            )
            for member, roll, delay in zip(members, rolls[::2], rolls[1::2], strict=True)
        )

    def _signatures(self, unsigned: Commit, chain_id: str, random: Random) -> list[bytes]:
        """Return the signatures of the votes that are not absent."""
        if self._signers is None:
            return [random.randbytes(64) for _ in unsigned.signatures]
        messages_of = messages.canonical_precommits(unsigned, chain_id)
        return self._signers.sign(
            [
                Unsigned(self._numbers[vote.validator_address], message)
                for vote, message in zip(unsigned.signatures, messages_of, strict=True)
                if vote is not ABSENT
            ]
        )


def blocks(
    shape: Shape, head: ChainState, count: int, *, signed: bool = True, processes: int = 0
) -> Iterator[CommittedBlock]:
    """Make the blocks that follow ``head``; ``processes`` more processes sign beside this
    one."""
    with signers(shape, processes if signed else 0) as pool:
        maker = Maker(shape, head, pool if signed else None)
        for height in range(head.height + 1, head.height + 1 + count):
            yield maker.block(content(shape, height))
