"""Records in the store of x/staking; SDK: x/staking/types.

Times and durations are nanoseconds; shares and rates are in units of 10^-18.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...domain.validator import ED25519, PublicKey, ValidatorUpdate
from ...protocol.comet import key_types
from ...protocol.protobuf import Message
from ..bank.errors import TxError
from ..bank.params import check_denom, check_positive, check_rate
from ..protocol import decimals
from ..protocol.fields import AnyValue
from ..protocol.records import record
from .errors import INSUFFICIENT_SHARES

UNBONDED, UNBONDING, BONDED = 1, 2, 3
"""States of a validator: numbers of ``BondStatus``."""

POWER_REDUCTION = 1_000_000
"""Tokens of one unit of voting power."""


@record("Description")
@dataclass(slots=True)
class Description:
    """Description of a validator, for people."""

    moniker: str = ""
    identity: str = ""
    website: str = ""
    security_contact: str = ""
    details: str = ""


@record("CommissionRates")
@dataclass(slots=True)
class CommissionRates:
    """Commission of a validator, its maximum, and the maximum change in a day."""

    rate: int = 0
    max_rate: int = 0
    max_change_rate: int = 0


@record("Commission")
@dataclass(slots=True)
class Commission:
    """Commission of a validator, and the time of its last change."""

    commission_rates: CommissionRates = field(default_factory=CommissionRates)
    update_time: int = 0


@record("StakingValidator")
@dataclass(slots=True)
class Validator:
    """A validator; SDK: x/staking/types/validator.go."""

    operator_address: str = ""
    consensus_pubkey: AnyValue = AnyValue("", b"")
    jailed: bool = False
    status: int = UNBONDED
    tokens: int = 0
    delegator_shares: int = 0
    description: Description = field(default_factory=Description)
    unbonding_height: int = 0
    unbonding_time: int = 0
    commission: Commission = field(default_factory=Commission)
    min_self_delegation: int = 0
    unbonding_on_hold_ref_count: int = 0
    unbonding_ids: list[int] = field(default_factory=list)

    @property
    def key(self) -> PublicKey:
        """Public key of the validator."""
        kind = self.consensus_pubkey.type_url.split(".")[-2]
        return PublicKey(kind, Message(self.consensus_pubkey.value).blob(1))

    @property
    def consensus_address(self) -> bytes:
        """Address of the validator's key."""
        return key_types.address(self.key)

    @property
    def is_bonded(self) -> bool:
        """True if the validator is one of the chain's validators."""
        return self.status == BONDED

    @property
    def potential_power(self) -> int:
        """Voting power that the validator has if it is bonded."""
        return self.tokens // POWER_REDUCTION

    @property
    def power(self) -> int:
        """Voting power, 0 if the validator is not bonded."""
        return self.potential_power if self.is_bonded else 0

    @property
    def has_invalid_rate(self) -> bool:
        """True if the validator has shares, but has lost all tokens."""
        return not self.tokens and self.delegator_shares > 0

    def update(self, power: int) -> ValidatorUpdate:
        """Return the change of the chain's validators to a voting power."""
        return ValidatorUpdate(self.key, power)

    def tokens_of(self, shares: int) -> int:
        """Return the tokens that shares are worth, as a decimal number."""
        return decimals.quo(decimals.mul_int(shares, self.tokens), self.delegator_shares)

    def tokens_of_truncated(self, shares: int) -> int:
        """Return the tokens that shares are worth, rounded towards zero."""
        worth = decimals.mul_int(shares, self.tokens)
        return decimals.quo_truncate(worth, self.delegator_shares)

    def shares_of(self, tokens: int) -> int:
        """Return the shares of tokens; raise :exc:`TxError` if the validator has no tokens."""
        if not self.tokens:
            raise TxError(INSUFFICIENT_SHARES)
        return decimals.quo_int(decimals.mul_int(self.delegator_shares, tokens), self.tokens)

    def shares_of_truncated(self, tokens: int) -> int:
        """Return the shares of tokens, rounded towards zero; raise :exc:`TxError` if the
        validator has no tokens."""
        if not self.tokens:
            raise TxError(INSUFFICIENT_SHARES)
        worth = decimals.mul_int(self.delegator_shares, tokens)
        return decimals.quo_truncate(worth, decimals.of(self.tokens))

    def add_tokens(self, tokens: int) -> int:
        """Add delegated tokens; return the new shares."""
        # The first delegation sets the exchange rate to one.
        first = not self.delegator_shares
        shares = decimals.of(tokens) if first else self.shares_of(tokens)
        self.tokens += tokens
        self.delegator_shares = decimals.checked(self.delegator_shares + shares)
        return shares

    def remove_shares(self, shares: int) -> int:
        """Remove shares of delegators; return the tokens that they were worth."""
        remaining = self.delegator_shares - shares
        # The last delegation gets what rounding has left.
        tokens = decimals.truncate(self.tokens_of(shares)) if remaining else self.tokens
        if tokens > self.tokens:
            raise OverflowError("attempting to remove more tokens than available in validator")
        self.tokens -= tokens
        self.delegator_shares = remaining
        return tokens


def consensus_key(key: PublicKey) -> AnyValue:
    """Return a validator's key as an ``Any``."""
    message = b"\x0a" + bytes((len(key.value),)) + key.value
    return AnyValue(f"/cosmos.crypto.{key.type or ED25519}.PubKey", message)


@record("Delegation")
@dataclass(slots=True)
class Delegation:
    """Shares of a delegator in a validator's tokens."""

    delegator_address: str = ""
    validator_address: str = ""
    shares: int = 0


@record("UnbondingDelegationEntry")
@dataclass(slots=True)
class UnbondingEntry:
    """Tokens that are returned to a delegator at a time."""

    creation_height: int = 0
    completion_time: int = 0
    initial_balance: int = 0
    balance: int = 0
    unbonding_id: int = 0
    unbonding_on_hold_ref_count: int = 0


@record("UnbondingDelegation")
@dataclass(slots=True)
class UnbondingDelegation:
    """Tokens of a delegator that are no longer delegated to a validator, but may be slashed."""

    delegator_address: str = ""
    validator_address: str = ""
    entries: list[UnbondingEntry] = field(default_factory=list)


@record("RedelegationEntry")
@dataclass(slots=True)
class RedelegationEntry:
    """Tokens that were moved to another validator, and can be slashed for the first one until
    a time."""

    creation_height: int = 0
    completion_time: int = 0
    initial_balance: int = 0
    shares_dst: int = 0
    unbonding_id: int = 0
    unbonding_on_hold_ref_count: int = 0


@record("Redelegation")
@dataclass(slots=True)
class Redelegation:
    """Tokens of a delegator that were moved from one validator to another."""

    delegator_address: str = ""
    validator_src_address: str = ""
    validator_dst_address: str = ""
    entries: list[RedelegationEntry] = field(default_factory=list)


@record("DelegatedPair")
@dataclass(frozen=True, slots=True)
class Pair:
    """Addresses of an unbonding delegation."""

    delegator_address: str = ""
    validator_address: str = ""


@record("DelegatedPairs")
@dataclass(slots=True)
class Pairs:
    """Unbonding delegations that complete at the same time."""

    pairs: list[Pair] = field(default_factory=list)


@record("RedelegatedTriplet")
@dataclass(frozen=True, slots=True)
class Triplet:
    """Addresses of a redelegation."""

    delegator_address: str = ""
    validator_src_address: str = ""
    validator_dst_address: str = ""


@record("RedelegatedTriplets")
@dataclass(slots=True)
class Triplets:
    """Redelegations that complete at the same time."""

    triplets: list[Triplet] = field(default_factory=list)


@record("ValidatorAddresses")
@dataclass(slots=True)
class Addresses:
    """Operators of validators that are unbonded at the same time."""

    addresses: list[str] = field(default_factory=list)


@record("StakingParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/staking."""

    unbonding_time: int = 0
    max_validators: int = 0
    max_entries: int = 0
    historical_entries: int = 0
    bond_denom: str = ""
    min_commission_rate: int = 0

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""
        check_positive("unbonding time", self.unbonding_time)
        check_positive("max validators", self.max_validators)
        check_positive("max entries", self.max_entries)
        check_denom("bond", self.bond_denom)
        large = "cannot be greater than 100%"
        check_rate("minimum commission rate", self.min_commission_rate, large=large)
