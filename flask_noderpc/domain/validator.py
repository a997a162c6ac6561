"""Validators, validator sets and their updates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

ED25519 = "ed25519"
SECP256K1 = "secp256k1"
BLS12_381 = "bls12_381"
ML_DSA_65 = "ml_dsa_65"
SECP256K1ETH = "secp256k1eth"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A validator's key: its ABCI type name and its raw bytes."""

    type: str
    value: bytes


NO_KEY = PublicKey("", b"")
"""Placeholder for a missing key."""


@dataclass(frozen=True, slots=True)
class Validator:
    """A member of a validator set."""

    address: bytes
    pub_key: PublicKey
    voting_power: int
    proposer_priority: int = 0


@dataclass(frozen=True)
class ValidatorSet:
    """Validators ordered by voting power (highest first), then by address."""

    validators: tuple[Validator, ...] = ()
    proposer: bytes = b""
    """Address of the proposer of round 0, which can't be derived from the priorities."""

    @cached_property
    def total_power(self) -> int:
        """Sum of the voting powers."""
        return sum(validator.voting_power for validator in self.validators)

    @cached_property
    def by_address(self) -> dict[bytes, tuple[int, Validator]]:
        """Index in the set and validator, by address."""
        return {v.address: (i, v) for i, v in enumerate(self.validators)}

    @property
    def proposer_validator(self) -> Validator | None:
        """Proposer of round 0; ``None`` if it is not set."""
        entry = self.by_address.get(self.proposer)
        return entry[1] if entry else None


@dataclass(frozen=True, slots=True)
class ValidatorUpdate:
    """New voting power of a validator; 0 removes it from the set."""

    pub_key: PublicKey
    power: int
