"""Errors of x/staking; SDK: x/staking/types/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="staking")

NO_VALIDATOR = _code(3, "validator does not exist")
OWNER_EXISTS = _code(
    4,
    "validator already exist for this operator address; must use new validator operator"
    " address",
)
PUB_KEY_EXISTS = _code(
    5, "validator already exist for this pubkey; must use new validator pubkey"
)
PUB_KEY_TYPE_NOT_SUPPORTED = _code(6, "validator pubkey type is not supported")
VALIDATOR_JAILED = _code(7, "validator for this address is currently jailed")
COMMISSION_NEGATIVE = _code(9, "commission must be positive")
COMMISSION_HUGE = _code(10, "commission cannot be more than 100%")
COMMISSION_ABOVE_MAX = _code(11, "commission cannot be more than the max rate")
COMMISSION_UPDATE_TIME = _code(12, "commission cannot be changed more than once in 24h")
CHANGE_RATE_NEGATIVE = _code(13, "commission change rate must be positive")
CHANGE_RATE_ABOVE_MAX = _code(14, "commission change rate cannot be more than the max rate")
COMMISSION_ABOVE_MAX_CHANGE = _code(
    15, "commission cannot be changed more than max change rate"
)
SELF_DELEGATION_BELOW_MINIMUM = _code(
    16, "validator's self delegation must be greater than their minimum self delegation"
)
MIN_SELF_DELEGATION_DECREASED = _code(17, "minimum self delegation cannot be decrease")
NO_DELEGATION = _code(19, "no delegation for (address, validator) tuple")
NO_DELEGATOR = _code(21, "delegator does not contain delegation")
INSUFFICIENT_SHARES = _code(22, "insufficient delegation shares")
NOT_ENOUGH_SHARES = _code(24, "not enough delegation shares")
NO_UNBONDING_DELEGATION = _code(26, "no unbonding delegation found")
MAX_UNBONDING_ENTRIES = _code(
    27, "too many unbonding delegation entries for (delegator, validator) tuple"
)
NO_REDELEGATION = _code(28, "no redelegation found")
SELF_REDELEGATION = _code(29, "cannot redelegate to the same validator")
TINY_REDELEGATION = _code(30, "too few tokens to redelegate (truncates to zero tokens)")
BAD_REDELEGATION_DESTINATION = _code(31, "redelegation destination validator not found")
TRANSITIVE_REDELEGATION = _code(
    32,
    "redelegation to this validator already in progress; first redelegation to this validator"
    " must complete before next redelegation",
)
MAX_REDELEGATION_ENTRIES = _code(
    33,
    "too many redelegation entries for (delegator, src-validator, dst-validator) tuple",
)
INVALID_EXCHANGE_RATE = _code(34, "cannot delegate to validators with invalid (zero) ex-rate")
EMPTY_PUB_KEY = _code(39, "empty validator public key")
COMMISSION_BELOW_MIN = _code(40, "commission cannot be less than min rate")
BAD_REDELEGATION_SOURCE = _code(44, "redelegation source validator not found")
