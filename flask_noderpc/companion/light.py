"""Rules of a light client: check whether a trusted header proves another one.

CometBFT: light/verifier.go. Errors say which rule is violated; callers add the name of the
upstream.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..domain.block import BlockIDFlag, Commit, Header, SignedHeader
from ..domain.time import SECOND
from ..domain.validator import ValidatorSet
from ..protocol.comet import hashes
from ..protocol.comet.key_types import KEY_TYPES, UnsupportedKey, are_known
from ..protocol.comet.validators import check_commit, check_trusted_third

CLOCK_DRIFT_NS = 10 * SECOND
"""Nanoseconds by which a header may be ahead of this machine's clock."""

TRUST_PERIOD_NS = 14 * 24 * 3600 * SECOND
"""Default trusting period in nanoseconds. It must be less than the unbonding period, in which
validators can still be punished for signing another chain."""


@dataclass(frozen=True, slots=True)
class SignedBlock:
    """A header with its commit and the validator set that signed it."""

    signed_header: SignedHeader
    validators: ValidatorSet

    @property
    def height(self) -> int:
        """Height of the header."""
        return self.signed_header.header.height

    @property
    def hash(self) -> bytes:
        """Hash of the header."""
        return hashes.header_hash(self.signed_header.header)


class FromTheFuture(ValueError):
    """A header's time is too far ahead of this machine's clock."""

    def __init__(self, header: Header, now: int) -> None:
        self.header = header
        super().__init__(
            f"header {header.height} is {(header.time - now) // SECOND} s ahead of this"
            f" machine's clock, expected at most {CLOCK_DRIFT_NS // SECOND} s"
        )


class NotTrusted(ValueError):
    """At most a third of the trusted voting power signed a header, so a header between the
    trusted one and this one is needed to prove it."""


def check_signed(chain_id: str, block: SignedBlock, *, takes_unknown_keys: bool = False) -> str:
    """Raise :exc:`ValueError` unless a header, its commit and its validators are consistent,
    and more than two thirds of the voting power signed.

    Return an empty string. With ``takes_unknown_keys``, validators whose signatures can't be
    verified here are accepted; then return the reason instead. CometBFT:
    SignedHeader.ValidateBasic, ValidatorSet.VerifyCommitLight.
    """
    header, commit = block.signed_header.header, block.signed_header.commit
    if header.chain_id != chain_id:
        raise ValueError(f"header {header.height} is of chain {header.chain_id!r}")
    if commit.height != header.height or commit.block_id.hash != block.hash:
        raise ValueError(f"the commit of header {header.height} is for another block")
    _check_has_single_votes(commit)
    members = block.validators
    check_set(members, header.validators_hash, header.height, takes_unknown_keys)
    try:
        check_commit(chain_id, members.validators, header.height, commit, is_light=True)
    except UnsupportedKey as error:
        if not takes_unknown_keys:
            raise
        return str(error)
    return ""


def _check_has_single_votes(commit: Commit) -> None:
    """Raise :exc:`ValueError` for a commit with aggregated signatures, which can't be
    verified."""
    flags = {sig.block_id_flag for sig in commit.signatures} - set(BlockIDFlag)
    if flags:
        raise ValueError(
            f"the commit of header {commit.height}: expected votes with block_id_flag 1 to 3,"
            f" got {min(flags)}; a chain whose validators sign with one aggregated signature,"
            " such as Berachain, can't be followed"
        )


def check_set(
    members: ValidatorSet, expected: bytes, height: int, takes_unknown_keys: bool = False
) -> None:
    """Raise :exc:`ValueError` unless a validator set has the ``expected`` hash, from a header.

    Sets with keys of an unknown type can't be hashed and their signatures can't be verified,
    so an attacker could invent them. The operator must allow them (``takes_unknown_keys``).
    """
    if not are_known(members):
        if takes_unknown_keys:
            return
        unknown = sorted({v.pub_key.type for v in members.validators} - KEY_TYPES.keys())
        raise ValueError(
            f"validators at {height} have {unknown[0][:40]!r} keys, which can't be verified; to"
            " trust them anyway, pass --unchecked validators_hash (NODERPC_UNCHECKED)"
        )
    if hashes.validators_hash(members) != expected:
        raise ValueError(f"the validators of height {height} do not match its header")


def is_ahead(header: Header, now: int) -> bool:
    """Return true if a header is too far ahead of this machine's clock."""
    return header.time >= now + CLOCK_DRIFT_NS


def is_too_old(header: Header, now: int, period: int, seen: int = 0) -> bool:
    """Return true if a header is older than the trusting ``period``, and can't prove others.

    ``seen`` is the last time at which it was known to be the newest of its chain, or 0.
    """
    return max(header.time, seen) + period <= now


def period_text(period: int) -> str:
    """Return a number of nanoseconds as text, such as ``14 days``."""
    return str(timedelta(microseconds=period // 1000)).removesuffix(", 0:00:00")


def check_age(block: SignedBlock, now: int, period: int, seen: int = 0) -> None:
    """Raise :exc:`ValueError` if a trusted header is too old to prove others."""
    if is_too_old(block.signed_header.header, now, period, seen):
        raise ValueError(
            f"the trusted header {block.height} is older than the trusting period of"
            f" {period_text(period)}; pass --trust HEIGHT:HASH of a newer header, or a longer"
            " --trust-period"
        )


def check_follows(
    trusted: SignedBlock, block: SignedBlock, now: int, *, takes_unknown_keys: bool = False
) -> None:
    """Raise :exc:`ValueError` unless a trusted header proves a later one.

    Raise :exc:`NotTrusted` if a header between the two is needed, and :exc:`FromTheFuture` if
    the later header is ahead of this machine's clock.
    """
    chain_id = trusted.signed_header.header.chain_id
    earlier, later = trusted.signed_header.header, block.signed_header.header
    if later.height <= earlier.height or later.time <= earlier.time:
        raise ValueError(f"header {later.height} is not later than header {earlier.height}")
    if later.height == earlier.height + 1:
        if later.validators_hash != earlier.next_validators_hash:
            raise ValueError(
                f"the validators of header {later.height} are not those that header"
                f" {earlier.height} announces"
            )
    else:
        try:
            check_trusted_third(chain_id, trusted.validators, block.signed_header.commit)
        except UnsupportedKey:
            if not takes_unknown_keys:
                raise
        except ValueError as error:
            raise NotTrusted(f"header {later.height}: {error}") from None
    check_signed(chain_id, block, takes_unknown_keys=takes_unknown_keys)
    if is_ahead(later, now):
        raise FromTheFuture(later, now)
