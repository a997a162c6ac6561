"""Store of x/staking: validators, delegations, queues and pools, in the SDK's layout; SDK:
x/staking/keeper and x/staking/types/keys.go.

Reads and writes have the SDK's order, as they cost gas.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ...domain.time import to_text
from ...protocol.comet.validators import MAX_TOTAL_POWER
from ...protocol.protobuf import Message, int64, integer, string
from ..bank.context import Context
from ..bank.errors import INVALID_REQUEST, Panic, TxError
from ..protocol.coins import Coin, Coins
from ..protocol.records import decode, encode
from .errors import NO_DELEGATION, NO_REDELEGATION, NO_UNBONDING_DELEGATION, NO_VALIDATOR
from .hooks import StakingHooks
from .records import (
    BONDED,
    UNBONDED,
    UNBONDING,
    Addresses,
    Delegation,
    Pair,
    Pairs,
    Params,
    Redelegation,
    Triplet,
    Triplets,
    UnbondingDelegation,
    Validator,
)

STORE = b"staking/"
"""Prefix of the module's keys."""

BONDED_POOL, NOT_BONDED_POOL = "bonded_tokens_pool", "not_bonded_tokens_pool"
"""Names of the accounts that hold the delegated tokens of validators that are bonded, and of
all others."""

LAST_POWER, _LAST_TOTAL_POWER = b"\x11", b"\x12"
VALIDATORS, BY_CONSENSUS_ADDRESS, BY_POWER = b"\x21", b"\x22", b"\x23"
DELEGATIONS, DELEGATIONS_BY_VALIDATOR = b"\x31", b"\x71"
UNBONDING_DELEGATIONS, UNBONDING_BY_VALIDATOR = b"\x32", b"\x33"
REDELEGATIONS, REDELEGATIONS_BY_SOURCE, REDELEGATIONS_BY_DESTINATION = (
    b"\x34",
    b"\x35",
    b"\x36",
)
_UNBONDING_ID, _UNBONDING_INDEX, _UNBONDING_TYPE = b"\x37", b"\x38", b"\x39"
_UNBONDING_QUEUE, _REDELEGATION_QUEUE, _VALIDATOR_QUEUE = b"\x41", b"\x42", b"\x43"
HISTORICAL_INFO, PARAMS = b"\x50", b"\x51"

OF_UNBONDING, OF_REDELEGATION, OF_VALIDATOR = 1, 2, 3
"""Types of operations that have an unbonding ID."""


def sized(address: bytes) -> bytes:
    """Return an address with its length before it."""
    return bytes((len(address),)) + address


def time_key(time: int) -> bytes:
    """Return the key of a time in the SDK's queues, in which byte order is that of time."""
    whole, _, fraction = to_text(time).removesuffix("Z").partition(".")
    return f"{whole}.{fraction.ljust(9, '0')}".encode()


def power_key(power: int, operator: bytes) -> bytes:
    """Return the key of a validator in the index by power."""
    inverted = bytes(byte ^ 0xFF for byte in operator)
    return BY_POWER + power.to_bytes(8) + sized(inverted)


class Staking:
    """Validators and delegations in the state of a context.

    ``is_strict`` says that rewards which can't go to their withdraw address are an error, as in
    messages of delegators; otherwise they go elsewhere.
    """

    def __init__(self, context: Context, *, is_strict: bool = False) -> None:
        self.context, self.is_strict = context, is_strict
        self.store = context.store(STORE)
        self.show, self.parse = context.codec.show, context.codec.parse
        operators = context.environment.operators
        self.show_operator, self.parse_operator = operators.show, operators.parse

    @property
    def now(self) -> int:
        """Time of the block."""
        return self.context.environment.time

    @property
    def height(self) -> int:
        """Height of the block."""
        return self.context.environment.height

    @cached_property
    def hooks(self) -> tuple[StakingHooks, ...]:
        """Modules that are told of changes."""
        modules = self.context.environment.modules
        return tuple(each for each in modules if isinstance(each, StakingHooks))

    def params(self) -> Params:
        """Return the parameters; each call reads the store and costs gas, as in the SDK."""
        return decode(Params, self.store.get(PARAMS) or b"")

    def bond_denom(self) -> str:
        """Return the denomination of delegated tokens."""
        return self.params().bond_denom

    # Validators

    def find_validator(self, operator: bytes) -> Validator | None:
        """Return a validator, or ``None``."""
        stored = self.store.get(VALIDATORS + sized(operator))
        return None if stored is None else decode(Validator, stored)

    def validator(self, operator: bytes) -> Validator:
        """Return a validator; raise :exc:`TxError` if it does not exist."""
        found = self.find_validator(operator)
        if found is None:
            raise TxError(NO_VALIDATOR)
        return found

    def find_by_consensus_address(self, address: bytes) -> Validator | None:
        """Return the validator with a key's address, or ``None``."""
        operator = self.store.get(BY_CONSENSUS_ADDRESS + sized(address))
        return None if operator is None else self.find_validator(operator)

    def by_consensus_address(self, address: bytes) -> Validator:
        """Return the validator with a key's address; raise :exc:`TxError` if it does not
        exist."""
        found = self.find_by_consensus_address(address)
        if found is None:
            raise TxError(NO_VALIDATOR)
        return found

    def operator(self, validator: Validator) -> bytes:
        """Return the address of a validator's operator."""
        return self.parse_operator(validator.operator_address)

    def set_validator(self, validator: Validator) -> None:
        """Store a validator."""
        self.store.set(VALIDATORS + sized(self.operator(validator)), encode(validator))

    def set_consensus_address(self, validator: Validator) -> None:
        """Store a validator's operator by the address of its key."""
        key = BY_CONSENSUS_ADDRESS + sized(validator.consensus_address)
        self.store.set(key, self.operator(validator))

    def _power_key(self, validator: Validator) -> bytes:
        return power_key(validator.potential_power, self.operator(validator))

    def add_to_powers(self, validator: Validator) -> None:
        """Add a validator to the index by power, unless it is jailed; raise :exc:`TxError` for
        a power that CometBFT does not allow."""
        if validator.potential_power > MAX_TOTAL_POWER:
            raise TxError(
                INVALID_REQUEST,
                f"expected a voting power of at most {MAX_TOTAL_POWER}, got"
                f" {validator.potential_power}",
            )
        if not validator.jailed:
            self.store.set(self._power_key(validator), self.operator(validator))

    def remove_from_powers(self, validator: Validator) -> None:
        """Remove a validator from the index by power."""
        self.store.delete(self._power_key(validator))

    def all_validators(self) -> Iterator[Validator]:
        """Yield all validators, by operator."""
        for _, stored in self.store.iterate(VALIDATORS):
            yield decode(Validator, stored)

    def last_powers(self) -> dict[bytes, int]:
        """Return the voting powers of the bonded validators, by operator."""
        return {
            key[2:]: int64(Message(stored).integer(1))
            for key, stored in self.store.iterate(LAST_POWER)
        }

    def set_last_power(self, operator: bytes, power: int) -> None:
        """Store the voting power of a bonded validator."""
        self.store.set(LAST_POWER + sized(operator), integer(1, power))

    def delete_last_power(self, operator: bytes) -> None:
        """Remove a validator from the bonded ones."""
        self.store.delete(LAST_POWER + sized(operator))

    def set_last_total_power(self, power: int) -> None:
        """Store the voting power of all bonded validators."""
        self.store.set(_LAST_TOTAL_POWER, string(1, str(power)))

    # Delegations

    def find_delegation(self, delegator: bytes, operator: bytes) -> Delegation | None:
        """Return a delegation, or ``None``."""
        stored = self.store.get(DELEGATIONS + sized(delegator) + sized(operator))
        return None if stored is None else decode(Delegation, stored)

    def delegation(self, delegator: bytes, operator: bytes) -> Delegation:
        """Return a delegation; raise :exc:`TxError` if it does not exist."""
        found = self.find_delegation(delegator, operator)
        if found is None:
            raise TxError(NO_DELEGATION)
        return found

    def set_delegation(self, delegation: Delegation) -> None:
        """Store a delegation."""
        delegator = self.parse(delegation.delegator_address)
        operator = self.parse_operator(delegation.validator_address)
        self.store.set(DELEGATIONS + sized(delegator) + sized(operator), encode(delegation))
        self.store.set(DELEGATIONS_BY_VALIDATOR + sized(operator) + delegator, b"")

    def remove_delegation(self, delegation: Delegation) -> None:
        """Remove a delegation."""
        delegator = self.parse(delegation.delegator_address)
        operator = self.parse_operator(delegation.validator_address)
        self.store.delete(DELEGATIONS + sized(delegator) + sized(operator))
        self.store.delete(DELEGATIONS_BY_VALIDATOR + sized(operator) + delegator)

    def delegations_of(self, delegator: bytes) -> Iterator[Delegation]:
        """Yield the delegations of a delegator, by operator."""
        for _, stored in self.store.iterate(DELEGATIONS + sized(delegator)):
            yield decode(Delegation, stored)

    # Unbonding delegations

    def find_unbonding(self, delegator: bytes, operator: bytes) -> UnbondingDelegation | None:
        """Return an unbonding delegation, or ``None``."""
        stored = self.store.get(UNBONDING_DELEGATIONS + sized(delegator) + sized(operator))
        return None if stored is None else decode(UnbondingDelegation, stored)

    def unbonding(self, delegator: bytes, operator: bytes) -> UnbondingDelegation:
        """Return an unbonding delegation; raise :exc:`TxError` if it does not exist."""
        found = self.find_unbonding(delegator, operator)
        if found is None:
            raise TxError(NO_UNBONDING_DELEGATION)
        return found

    def unbonding_of_validator(self, operator: bytes) -> list[UnbondingDelegation]:
        """Return the unbonding delegations from a validator."""
        prefix, found = UNBONDING_BY_VALIDATOR + sized(operator), []
        for key, _ in self.store.iterate(prefix):
            delegator = key[len(prefix) + 1 :]
            found.append(self.unbonding(delegator, operator))
        return found

    def set_unbonding(self, unbonding: UnbondingDelegation) -> None:
        """Store an unbonding delegation, or remove it if it has no entries."""
        delegator = self.parse(unbonding.delegator_address)
        operator = self.parse_operator(unbonding.validator_address)
        key = UNBONDING_DELEGATIONS + sized(delegator) + sized(operator)
        by_validator = UNBONDING_BY_VALIDATOR + sized(operator) + sized(delegator)
        if unbonding.entries:
            self.store.set(key, encode(unbonding))
            self.store.set(by_validator, b"")
        else:
            self.store.delete(key)
            self.store.delete(by_validator)

    # Redelegations

    def find_redelegation(
        self, delegator: bytes, source: bytes, destination: bytes
    ) -> Redelegation | None:
        """Return a redelegation, or ``None``."""
        key = REDELEGATIONS + sized(delegator) + sized(source) + sized(destination)
        stored = self.store.get(key)
        return None if stored is None else decode(Redelegation, stored)

    def redelegation(self, delegator: bytes, source: bytes, destination: bytes) -> Redelegation:
        """Return a redelegation; raise :exc:`TxError` if it does not exist."""
        found = self.find_redelegation(delegator, source, destination)
        if found is None:
            raise TxError(NO_REDELEGATION)
        return found

    def redelegations_from(self, source: bytes) -> list[Redelegation]:
        """Return the redelegations from a validator."""
        prefix, found = REDELEGATIONS_BY_SOURCE + sized(source), []
        for key, _ in self.store.iterate(prefix):
            size = key[len(prefix)]
            delegator = key[len(prefix) + 1 :][:size]
            found.append(self.redelegation(delegator, source, key[len(prefix) + size + 2 :]))
        return found

    def receives_redelegation(self, delegator: bytes, destination: bytes) -> bool:
        """Return true if tokens of a delegator were moved to a validator, and can still be
        slashed for another one."""
        prefix = REDELEGATIONS_BY_DESTINATION + sized(destination) + sized(delegator)
        return next(self.store.iterate(prefix), None) is not None

    def set_redelegation(self, redelegation: Redelegation) -> None:
        """Store a redelegation, or remove it if it has no entries."""
        delegator = self.parse(redelegation.delegator_address)
        source = self.parse_operator(redelegation.validator_src_address)
        destination = self.parse_operator(redelegation.validator_dst_address)
        key = REDELEGATIONS + sized(delegator) + sized(source) + sized(destination)
        indexes = (
            REDELEGATIONS_BY_SOURCE + sized(source) + sized(delegator) + sized(destination),
            REDELEGATIONS_BY_DESTINATION
            + sized(destination)
            + sized(delegator)
            + sized(source),
        )
        if redelegation.entries:
            self.store.set(key, encode(redelegation))
        else:
            self.store.delete(key)
        for index in indexes:
            if redelegation.entries:
                self.store.set(index, b"")
            else:
                self.store.delete(index)

    # Unbonding IDs

    def next_unbonding_id(self) -> int:
        """Return a new ID of an operation."""
        number = int.from_bytes(self.store.get(_UNBONDING_ID) or b"") + 1
        self.store.set(_UNBONDING_ID, number.to_bytes(8))
        return number

    def set_unbonding_id(self, number: int, key: bytes, kind: int) -> None:
        """Store the key and the type of the operation that has an ID."""
        self.store.set(_UNBONDING_INDEX + number.to_bytes(8), key)
        self.store.set(_UNBONDING_TYPE + number.to_bytes(8), kind.to_bytes(8))

    def delete_unbonding_id(self, number: int) -> None:
        """Remove the ID of a completed operation."""
        self.store.delete(_UNBONDING_INDEX + number.to_bytes(8))

    # Queues

    def queue_unbonding(self, time: int, unbonding: UnbondingDelegation) -> None:
        """Complete an unbonding delegation at a time."""
        key = _UNBONDING_QUEUE + time_key(time)
        queued = decode(Pairs, self.store.get(key) or b"")
        queued.pairs.append(Pair(unbonding.delegator_address, unbonding.validator_address))
        self.store.set(key, encode(queued))

    def mature_unbondings(self) -> list[Pair]:
        """Remove the unbonding delegations that complete by now from the queue, and return
        them."""
        found = []
        for stored in self._dequeue(_UNBONDING_QUEUE):
            found += decode(Pairs, stored).pairs
        return found

    def queue_redelegation(self, time: int, redelegation: Redelegation) -> None:
        """Complete a redelegation at a time."""
        key = _REDELEGATION_QUEUE + time_key(time)
        queued = decode(Triplets, self.store.get(key) or b"")
        queued.triplets.append(
            Triplet(
                redelegation.delegator_address,
                redelegation.validator_src_address,
                redelegation.validator_dst_address,
            )
        )
        self.store.set(key, encode(queued))

    def mature_redelegations(self) -> list[Triplet]:
        """Remove the redelegations that complete by now from the queue, and return them."""
        found = []
        for stored in self._dequeue(_REDELEGATION_QUEUE):
            found += decode(Triplets, stored).triplets
        return found

    def _dequeue(self, queue: bytes) -> list[bytes]:
        found = []
        for key, stored in self.store.iterate(queue, before=queue + time_key(self.now) + b"\0"):
            found.append(stored)
            self.store.delete(key)
        return found

    def _validator_queue_key(self, time: int, height: int) -> bytes:
        text = time_key(time)
        return _VALIDATOR_QUEUE + len(text).to_bytes(8) + text + height.to_bytes(8)

    def queue_validator(self, validator: Validator) -> None:
        """Queue the end of a validator's unbonding."""
        key = self._validator_queue_key(validator.unbonding_time, validator.unbonding_height)
        queued = decode(Addresses, self.store.get(key) or b"")
        queued.addresses.append(validator.operator_address)
        self.store.set(key, encode(queued))

    def dequeue_validator(self, validator: Validator) -> None:
        """Remove a validator from the queue."""
        key = self._validator_queue_key(validator.unbonding_time, validator.unbonding_height)
        queued = decode(Addresses, self.store.get(key) or b"")
        queued.addresses = [
            each for each in queued.addresses if each != validator.operator_address
        ]
        if queued.addresses:
            self.store.set(key, encode(queued))
        else:
            self.store.delete(key)

    def mature_validators(self) -> list[str]:
        """Return the operators of validators whose unbonding ends by now."""
        end = self._validator_queue_key(self.now, self.height) + b"\0"
        found = []
        for key, stored in self.store.iterate(_VALIDATOR_QUEUE, before=end):
            if int.from_bytes(key[-8:]) <= self.height:
                found += decode(Addresses, stored).addresses
        return found

    # Pools

    def _coins(self, tokens: int) -> Coins:
        denom = self.bond_denom()
        return (Coin(denom, tokens),) if tokens else ()

    def delegate_coins(self, delegator: bytes, pool: str, tokens: int) -> None:
        """Move tokens of a delegator to a pool; raise :exc:`TxError`."""
        self.context.balances.delegate(delegator, pool, self._coins(tokens))

    def bond_tokens(self, tokens: int) -> None:
        """Move tokens to the pool of bonded validators."""
        coins = self._coins(tokens)
        self.context.balances.send_between_modules(NOT_BONDED_POOL, BONDED_POOL, coins)

    def unbond_tokens(self, tokens: int) -> None:
        """Move tokens from the pool of bonded validators."""
        coins = self._coins(tokens)
        self.context.balances.send_between_modules(BONDED_POOL, NOT_BONDED_POOL, coins)

    def burn(self, pool: str, tokens: int) -> None:
        """Destroy slashed tokens of a pool."""
        if tokens > 0:
            self.context.balances.burn(pool, self._coins(tokens))


def pool_of(validator: Validator) -> str:
    """Return the name of the pool that holds a validator's tokens."""
    if validator.status == BONDED:
        return BONDED_POOL
    if validator.status in (UNBONDED, UNBONDING):
        return NOT_BONDED_POOL
    raise Panic("invalid validator status")
