"""Evidence pool of a backend, and the check that evidence proves an offence on this chain.

CometBFT: evidence/verify.go and types/evidence.go; the error messages are CometBFT's.
"""

from __future__ import annotations

from ...domain.block import (
    BlockIDFlag,
    Commit,
    DuplicateVoteEvidence,
    Evidence,
    Header,
    LightClientAttackEvidence,
    SignedHeader,
    Vote,
    VoteType,
)
from ...domain.time import to_go_text
from ...domain.validator import NO_KEY, Validator, ValidatorSet
from ...errors import InvalidEvidence, NotFound, NotSupported
from ...protocol.comet import hashes, validators
from ...protocol.comet.chain_state import evidence_bytes
from ...protocol.comet.key_types import address
from ...protocol.comet.keys import verify_vote
from ...protocol.comet.validate_basic import check_evidence_basics, error_prefix
from ...protocol.comet.validators import check_commit, check_trusted_third
from .reads import ChainReads


class EvidencePool:
    """Pending evidence. The default refuses all evidence."""

    def submit(self, piece: Evidence) -> bytes:
        """Add a piece of evidence to the pool, unless it is pending or in a block; return its
        hash.

        Raise :exc:`~flask_noderpc.errors.InvalidEvidence` or
        :exc:`~flask_noderpc.errors.EvidencePoolFull`.
        """
        raise NotSupported("this backend does not take evidence")


def check_evidence(backend: ChainReads, piece: Evidence) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidEvidence` unless the evidence may be included in
    a block.

    The caller checks whether a block already contains it.
    """
    try:
        check_evidence_basics(piece)
        _check_age(backend, piece)
        if isinstance(piece, LightClientAttackEvidence):
            _check_attack(backend, piece)
        else:
            members = backend.validators(piece.height)
            check_duplicate_vote(piece, backend.chain_id(), members)
    except (ValueError, NotFound) as error:
        raise InvalidEvidence(str(error)) from None


def _check_age(backend: ChainReads, piece: Evidence) -> None:
    time = _header(backend, piece.height, "don't have header #{}").header.time
    if piece.timestamp != time:
        raise ValueError(
            "evidence has a different time to the block it is associated with"
            f" ({to_go_text(piece.timestamp)} != {to_go_text(time)})"
        )
    latest = backend.latest_height()
    now = backend.block_meta(latest).header.time
    params = backend.consensus_params(latest + 1).evidence
    is_old = now - time > params.max_age_duration
    if is_old and latest - piece.height > params.max_age_num_blocks:
        raise ValueError(
            f"evidence from height {piece.height} (created at: {to_go_text(time)}) is too old;"
            f" min height is {latest - params.max_age_num_blocks} and evidence can not be older"
            f" than {to_go_text(now + params.max_age_duration)}"
        )
    # Refuse evidence that fits no block; CometBFT would leave it pending forever.
    if evidence_bytes(piece) > params.max_bytes:
        raise ValueError(
            f"expected at most {params.max_bytes} bytes of evidence, as fit a block, got"
            f" {evidence_bytes(piece)}"
        )


def _check_attack(backend: ChainReads, piece: LightClientAttackEvidence) -> None:
    common = _header(backend, piece.common_height)
    trusted, shown = common, piece.conflicting_block.signed_header.header
    if shown.height > backend.latest_height():
        # The chain has not reached that height: compare with the latest block, whose time must
        # not be before the conflicting block's time.
        trusted = _header(backend, backend.latest_height())
        if trusted.header.time < shown.time:
            raise ValueError(
                f"latest block time ({to_go_text(trusted.header.time)}) is before"
                f" conflicting block time ({to_go_text(shown.time)})"
            )
    elif shown.height != piece.common_height:
        trusted = _header(backend, shown.height)
    check_light_client_attack(piece, common, trusted, backend.validators(piece.common_height))


def _header(
    backend: ChainReads, height: int, text: str = "don't have header at height #{}"
) -> SignedHeader:
    # For the latest height, use the commit that this node has seen; CometBFT has none yet.
    try:
        return backend.signed_header(height)[0]
    except NotFound:
        raise ValueError(text.format(height)) from None


def check_duplicate_vote(
    piece: DuplicateVoteEvidence, chain_id: str, members: ValidatorSet
) -> None:
    """Raise :exc:`ValueError` unless a validator of the evidence's height signed both
    votes."""
    first, second = piece.vote_a, piece.vote_b
    entry = members.by_address.get(first.validator_address)
    if entry is None:
        raise ValueError(
            f"address {first.validator_address.hex().upper()} was not a validator at height"
            f" {piece.height}"
        )
    if _height_round_step(first) != _height_round_step(second):
        raise ValueError(
            f"h/r/s does not match: {_height_round_step(first)} vs {_height_round_step(second)}"
        )
    if first.validator_address != second.validator_address:
        raise ValueError(
            "validator addresses do not match:"
            f" {first.validator_address.hex().upper()}"
            f" vs {second.validator_address.hex().upper()}"
        )
    member = entry[1]
    if member.voting_power != piece.validator_power:
        raise ValueError(
            "validator power from evidence and our validator set does not match"
            f" ({piece.validator_power} != {member.voting_power})"
        )
    _check_total(piece.total_voting_power, members)
    for name, vote in (("VoteA", first), ("VoteB", second)):
        if not verify_vote(vote, chain_id, member.pub_key):
            raise ValueError(f"verifying {name}: invalid signature")


def _height_round_step(vote: Vote) -> str:
    return f"{vote.height}/{vote.round}/SIGNED_MSG_TYPE_{VoteType(vote.type).name}"


def _check_total(listed: int, members: ValidatorSet) -> None:
    if listed != members.total_power:
        raise ValueError(
            "total voting power from the evidence and our validator set does not match"
            f" ({listed} != {members.total_power})"
        )


def check_light_client_attack(
    piece: LightClientAttackEvidence,
    common: SignedHeader,
    trusted: SignedHeader,
    members: ValidatorSet,
) -> None:
    """Raise :exc:`ValueError` unless the evidence's block conflicts with the trusted header,
    and enough voting power signed it.

    ``members`` is the validator set at the common height.
    """
    shown = piece.conflicting_block
    header, commit = shown.signed_header.header, shown.signed_header.commit
    chain_id = trusted.header.chain_id
    if common.header.height != header.height:
        with error_prefix("skipping verification of conflicting block failed"):
            check_trusted_third(chain_id, members, commit)
    elif _is_lunatic(header, trusted.header):
        raise ValueError(
            "common height is the same as conflicting block height so expected the"
            " conflicting block to be correctly derived yet it wasn't"
        )
    with error_prefix("invalid commit from conflicting block"):
        check_commit(chain_id, shown.validators, header.height, commit)
    _check_total(piece.total_voting_power, members)
    _check_conflict(header, trusted.header)
    _check_byzantine(piece.byzantine_validators, byzantine_validators(piece, members, trusted))


def _check_conflict(header: Header, trusted: Header) -> None:
    if header.height > trusted.height and header.time > trusted.time:
        raise ValueError(
            "conflicting block doesn't violate monotonically increasing time"
            f" ({to_go_text(header.time)} is after {to_go_text(trusted.time)})"
        )
    trusted_hash = hashes.header_hash(trusted)
    if trusted_hash == hashes.header_hash(header):
        raise ValueError(
            "trusted header hash matches the evidence's conflicting header hash:"
            f" {trusted_hash.hex().upper()}"
        )


def _is_lunatic(header: Header, trusted: Header) -> bool:
    """Return true if a header has other validators, parameters, app hash or results than the
    trusted header."""
    return any(
        getattr(header, name) != getattr(trusted, name)
        for name in (
            "validators_hash",
            "next_validators_hash",
            "consensus_hash",
            "app_hash",
            "last_results_hash",
        )
    )


def byzantine_validators(
    piece: LightClientAttackEvidence, members: ValidatorSet, trusted: SignedHeader
) -> tuple[Validator, ...]:
    """Return the validators that are responsible for a conflicting block."""
    block = piece.conflicting_block
    commit = block.signed_header.commit
    if _is_lunatic(block.signed_header.header, trusted.header):
        # Lunatic: the validators of the common height that signed an invalid header.
        by_address = members.by_address
        signers = (by_address.get(signer) for signer in _signers(commit))
        return validators.in_order(entry[1] for entry in signers if entry)
    if commit.round == trusted.commit.round:
        # Equivocation: the validators that signed both commits of the same round.
        twice = _signers(commit) & _signers(trusted.commit)
        return validators.in_order(v for v in block.validators if v.address in twice)
    # Amnesia: the two commits alone do not identify the faulty validators.
    return ()


def _signers(commit: Commit) -> frozenset[bytes]:
    return frozenset(
        sig.validator_address
        for sig in commit.signatures
        if sig.block_id_flag == BlockIDFlag.COMMIT
    )


def _check_byzantine(listed: tuple[Validator, ...], expected: tuple[Validator, ...]) -> None:
    if listed and not expected:
        raise ValueError(
            f"expected nil validators from an amnesia light client attack but got {len(listed)}"
        )
    if len(listed) != len(expected):
        raise ValueError(
            f"expected {len(expected)} byzantine validators from evidence but got {len(listed)}"
        )
    for index, (theirs, ours) in enumerate(zip(listed, expected, strict=True)):
        if theirs.address != ours.address:
            raise ValueError(
                "evidence contained an unexpected byzantine validator address; expected:"
                f" {ours.address.hex().upper()}, got: {theirs.address.hex().upper()}"
            )
        if theirs.voting_power != ours.voting_power:
            raise ValueError(
                "evidence contained unexpected byzantine validator power;"
                f" expected {ours.voting_power}, got {theirs.voting_power}"
            )
        if theirs.pub_key == NO_KEY:
            raise ValueError(f"byzantine validator at index {index} has nil pubkey")
        key_address = address(theirs.pub_key)
        if key_address != theirs.address:
            raise ValueError(
                f"byzantine validator at index {index} has address"
                f" {theirs.address.hex().upper()} that does not match pubkey address"
                f" {key_address.hex().upper()}"
            )
