"""Consensus, as the modules see it: votes, evidence, and the validators of each height.

Changes of the validators take effect two heights later, as in CometBFT. The sets are kept in
the application's state, because a request to execute a block does not contain the powers of the
validators that signed the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ... import jsoncodec
from ...backends.base.application import BlockRequest
from ...domain.block import BlockIDFlag, DuplicateVoteEvidence
from ...domain.validator import PublicKey, ValidatorUpdate
from ...protocol.comet import hashes, key_types
from ...protocol.comet.validators import MAX_TOTAL_POWER
from .state import Branch

_SETS, _SIGNING, _HELD = b"consensus/sets", b"consensus/signing", b"consensus/held"

Powers = Mapping[PublicKey, int]
"""Voting powers, by key."""
Held = frozenset[bytes] | None
"""Addresses of the validators that can take part in consensus, as a node has their keys;
``None`` if all do."""


@dataclass(frozen=True, slots=True)
class VoteInfo:
    """A validator of the last block, and whether it signed that block."""

    address: bytes
    power: int
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Misbehavior:
    """Evidence that a validator signed two blocks at one height."""

    address: bytes
    power: int
    height: int
    time: int


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """Facts about a block that modules use at its beginning."""

    proposer: bytes = b""
    votes: tuple[VoteInfo, ...] = ()
    misbehaviors: tuple[Misbehavior, ...] = ()
    next_validators_hash: bytes = b""


NO_BLOCK = BlockInfo()


def begin(branch: Branch, powers: Powers, signing: Powers, held: Held) -> None:
    """Store the validators of the first two heights; ``signing`` are those that take part in
    consensus."""
    _write(branch, {}, powers, powers)
    branch.writes[_SIGNING] = jsoncodec.pack(_listed(signing))
    branch.writes[_HELD] = jsoncodec.pack(None if held is None else sorted(held))


def _held(branch: Branch) -> Held:
    stored: list[bytes] | None = jsoncodec.unpack(branch.get(_HELD) or jsoncodec.pack(None))
    return None if stored is None else frozenset(stored)


def _sets(branch: Branch) -> tuple[Powers, Powers, Powers]:
    stored = branch.get(_SETS)
    if stored is None:
        return {}, {}, {}
    last, current, following = map(_powers, jsoncodec.unpack(stored))
    return last, current, following


def _write(branch: Branch, *sets: Powers) -> None:
    branch.writes[_SETS] = jsoncodec.pack([_listed(each) for each in sets])


def _listed(powers: Powers) -> list[list[object]]:
    return [[key.type, key.value, power] for key, power in powers.items()]


def _powers(listed: list[tuple[str, bytes, int]]) -> Powers:
    return {PublicKey(kind, value): power for kind, value, power in listed}


def voters(branch: Branch) -> dict[bytes, int]:
    """Return the powers of the validators whose votes the next block has, by address."""
    last, *_ = _sets(branch)
    return {key_types.address(key): power for key, power in last.items()}


def block_info(branch: Branch, block: BlockRequest) -> BlockInfo:
    """Return the votes and the evidence of a block.

    Votes of validators that do not take part in consensus count as signed.
    """
    held = _held(branch)
    signed = {
        each.validator_address
        for each in block.last_commit.signatures
        if each.block_id_flag != BlockIDFlag.ABSENT
    }
    votes = []
    for address, power in sorted(voters(branch).items(), key=lambda each: (-each[1], each[0])):
        takes_part = held is None or address in held
        votes.append(VoteInfo(address, power, takes_part and address not in signed))
    return BlockInfo(
        block.proposer_address,
        tuple(votes),
        tuple(_misbehaviors(block)),
        hashes.validators_hash(block.next_validators),
    )


def _misbehaviors(block: BlockRequest) -> Iterable[Misbehavior]:
    for each in block.evidence:
        if isinstance(each, DuplicateVoteEvidence):
            address = each.vote_a.validator_address
            yield Misbehavior(address, each.validator_power, each.height, each.timestamp)
            continue
        for one in each.byzantine_validators:
            yield Misbehavior(one.address, one.voting_power, each.height, each.timestamp)


def end(branch: Branch, updates: Iterable[ValidatorUpdate]) -> tuple[ValidatorUpdate, ...]:
    """Store the validators after a block, and return the changes of those that take part in
    consensus.

    Changes are withheld as long as they would leave no validators, or more power than
    CometBFT allows, as no block could follow.
    """
    (_, current, following), held = _sets(branch), _held(branch)
    after = _changed(following, updates)
    _write(branch, current, following, after)
    before = _powers(jsoncodec.unpack(branch.get(_SIGNING) or jsoncodec.pack([])))
    signing = taking_part(after, held)
    if not 0 < sum(signing.values()) <= MAX_TOTAL_POWER:
        signing = before
    branch.writes[_SIGNING] = jsoncodec.pack(_listed(signing))
    return _difference(before, signing)


def taking_part(powers: Powers, held: Held) -> Powers:
    """Return the validators that take part in consensus."""
    return {
        key: power
        for key, power in powers.items()
        if held is None or key_types.address(key) in held
    }


def _changed(powers: Powers, updates: Iterable[ValidatorUpdate]) -> dict[PublicKey, int]:
    changed = dict(powers) | {each.pub_key: each.power for each in updates}
    return {key: power for key, power in changed.items() if power}


def _difference(before: Powers, after: Powers) -> tuple[ValidatorUpdate, ...]:
    removed = [ValidatorUpdate(key, 0) for key in before if key not in after]
    changed = [
        ValidatorUpdate(key, power) for key, power in after.items() if before.get(key) != power
    ]
    return (*changed, *removed)
