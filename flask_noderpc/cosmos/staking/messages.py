"""Messages of x/staking; SDK: x/staking/keeper/msg_server.go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...domain.time import SECOND, to_text
from ...domain.validator import ED25519
from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    Panic,
    TxError,
)
from ..bank.messages import Handler, of_governance, parse_address
from ..bank.params import updating
from ..protocol import coins, decimals, keys
from ..protocol.coins import Coin
from ..protocol.fields import AnyValue, Values, declared
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from . import delegations, validators
from .errors import (
    CHANGE_RATE_ABOVE_MAX,
    CHANGE_RATE_NEGATIVE,
    COMMISSION_ABOVE_MAX,
    COMMISSION_ABOVE_MAX_CHANGE,
    COMMISSION_BELOW_MIN,
    COMMISSION_HUGE,
    COMMISSION_NEGATIVE,
    COMMISSION_UPDATE_TIME,
    EMPTY_PUB_KEY,
    INVALID_EXCHANGE_RATE,
    MIN_SELF_DELEGATION_DECREASED,
    OWNER_EXISTS,
    PUB_KEY_EXISTS,
    PUB_KEY_TYPE_NOT_SUPPORTED,
    SELF_DELEGATION_BELOW_MINIMUM,
    VALIDATOR_JAILED,
)
from .records import (
    UNBONDING,
    Commission,
    CommissionRates,
    Description,
    Params,
    UnbondingDelegation,
    UnbondingEntry,
    Validator,
)
from .state import PARAMS, STORE, Staking

_PACKAGE = "cosmos.staking.v1beta1"
_DAY = 24 * 3600 * SECOND
_UNCHANGED = "[do-not-modify]"
# Maximum lengths of the parts of a description, in bytes, and the SDK's names of them.
_LENGTHS = {
    "moniker": (70, "moniker"),
    "identity": (3000, "identity"),
    "website": (140, "website"),
    "security_contact": (140, "security contact"),
    "details": (280, "details"),
}

_DESCRIPTION = declared("*types.Description", "Description")
_RATES = declared("*types.CommissionRates", "CommissionRates")


def _type(name: str, signer: str, **types: Any) -> MessageType:
    kind = declared(f"*types.{name}", f"{_PACKAGE}.{name}", signer=signer, **types)
    return MessageType(
        f"/{_PACKAGE}.{name}",
        kind,
        f"cosmos-sdk/{name}",
        is_signed_by_operator=signer == "validator_address",
    )


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a MsgCreateValidator; raise :exc:`InvalidMessage` if its key has
    another type."""
    if values["pubkey"] is not None:
        keys.decode(values["pubkey"])
    return values


MSG_CREATE_VALIDATOR = _type(
    "MsgCreateValidator",
    "validator_address",
    build=_checked,
    description=_DESCRIPTION,
    commission=_RATES,
)
MSG_EDIT_VALIDATOR = _type("MsgEditValidator", "validator_address", description=_DESCRIPTION)
MSG_DELEGATE = _type("MsgDelegate", "delegator_address")
MSG_UNDELEGATE = _type("MsgUndelegate", "delegator_address")
MSG_BEGIN_REDELEGATE = _type("MsgBeginRedelegate", "delegator_address")
MSG_CANCEL_UNBONDING = _type("MsgCancelUnbondingDelegation", "delegator_address")
MSG_UPDATE_PARAMS = replace(
    _type("MsgUpdateParams", "authority", params=declared("*types.Params", "StakingParams")),
    amino_name="cosmos-sdk/x/staking/MsgUpdateParams",
)


def parse_operator(context: Context, text: str, name: str = "validator") -> bytes:
    """Return the operator's address of a validator in a message; raise :exc:`TxError`."""
    return parse_address(context.environment.operators, name, text)


def _check_amount(amount: Coin, error: str) -> None:
    if not coins.is_valid((amount,)):
        raise TxError(INVALID_REQUEST, error)


def _check_denom(staking: Staking, amount: Coin) -> None:
    denom = staking.bond_denom()
    if amount.denom != denom:
        raise TxError(
            INVALID_REQUEST,
            f"invalid coin denomination: got {amount.denom}, expected {denom}",
        )


def _create_validator(context: Context, message: Values) -> None:
    staking = Staking(context)
    operator = parse_operator(context, message["validator_address"])
    _check_new_validator(message)
    rates, least = message["commission"], staking.params().min_commission_rate
    if rates["rate"] < least:
        text = f"minimum rate of {decimals.show(least)}"
        raise TxError(
            COMMISSION_BELOW_MIN, f"cannot set validator commission to less than {text}"
        )
    if staking.find_validator(operator) is not None:
        raise TxError(OWNER_EXISTS)
    key = _consensus_key(message["pubkey"])
    if staking.find_by_consensus_address(key.address) is not None:
        raise TxError(PUB_KEY_EXISTS)
    _check_denom(staking, message["value"])
    description = Description(**message["description"])
    _check_lengths(description)
    allowed = context.environment.head.key_types
    kind = _TYPES.get(key.type_url, "PubKeyMultisigThreshold")
    if kind not in allowed:
        text = f"got: {kind}, expected: [{' '.join(allowed)}]"
        raise TxError(PUB_KEY_TYPE_NOT_SUPPORTED, text)
    validator = Validator(
        message["validator_address"],
        message["pubkey"],
        description=description,
        commission=Commission(CommissionRates(**rates), staking.now),
        min_self_delegation=message["min_self_delegation"],
    )
    validators.add(staking, validator)
    delegations.delegate(staking, operator, message["value"].value, None, validator)
    context.events.append(
        event(
            "create_validator",
            validator=message["validator_address"],
            amount=str(message["value"]),
        )
    )


# Names of the types of keys in consensus parameters; a multisig key has another name.
_TYPES = {keys.Ed25519Key.type_url: ED25519, keys.Secp256k1Key.type_url: "secp256k1"}


def _consensus_key(given: AnyValue) -> keys.Key:
    key = keys.decode(given)
    if key is None:
        raise Panic("runtime error: invalid memory address or nil pointer dereference")
    return key


def _check_new_validator(message: Values) -> None:
    if message["pubkey"] is None:
        raise TxError(EMPTY_PUB_KEY)
    _check_amount(message["value"], "invalid delegation amount")
    if not any(message["description"].values()):
        raise TxError(INVALID_REQUEST, "empty description")
    _check_rates(message["commission"])
    least: int | None = message["min_self_delegation"]
    if _set(least) <= 0:
        text = "minimum self delegation must be a positive integer"
        raise TxError(INVALID_REQUEST, text)
    if message["value"].value < _set(least):
        raise TxError(SELF_DELEGATION_BELOW_MINIMUM)


def _set(value: int | None) -> int:
    """Return a number; the SDK panics at one that the message does not have."""
    if value is None:
        raise Panic("runtime error: invalid memory address or nil pointer dereference")
    return value


def _check_rates(rates: dict[str, int | None]) -> None:
    if all(each is None for each in rates.values()):
        raise TxError(INVALID_REQUEST, "empty commission")
    highest = _set(rates["max_rate"])
    if highest < 0:
        raise TxError(COMMISSION_NEGATIVE)
    if highest > decimals.ONE:
        raise TxError(COMMISSION_HUGE)
    if _set(rates["rate"]) < 0:
        raise TxError(COMMISSION_NEGATIVE)
    if _set(rates["rate"]) > highest:
        raise TxError(COMMISSION_ABOVE_MAX)
    if _set(rates["max_change_rate"]) < 0:
        raise TxError(CHANGE_RATE_NEGATIVE)
    if _set(rates["max_change_rate"]) > highest:
        raise TxError(CHANGE_RATE_ABOVE_MAX)


def _check_lengths(description: Description) -> None:
    for name, (most, shown) in _LENGTHS.items():
        size = len(getattr(description, name).encode())
        if size > most:
            raise TxError(INVALID_REQUEST, f"invalid {shown} length; got: {size}, max: {most}")


def _edit_validator(context: Context, message: Values) -> None:
    staking = Staking(context)
    operator = parse_operator(context, message["validator_address"])
    _check_edit(staking, message)
    validator = staking.validator(operator)
    changes = {
        name: given
        for name in _LENGTHS
        if (given := message["description"][name]) != _UNCHANGED
    }
    validator.description = replace(validator.description, **changes)
    _check_lengths(validator.description)
    rate, least = message["commission_rate"], message["min_self_delegation"]
    if rate is not None:
        _change_commission(staking, validator.commission, rate)
    if least is not None:
        if least <= validator.min_self_delegation:
            raise TxError(MIN_SELF_DELEGATION_DECREASED)
        if least > validator.tokens:
            raise TxError(SELF_DELEGATION_BELOW_MINIMUM)
        validator.min_self_delegation = least
    staking.set_validator(validator)
    context.events.append(
        event(
            "edit_validator",
            commission_rate=_show_commission(validator.commission),
            min_self_delegation=str(validator.min_self_delegation),
        )
    )


def _check_edit(staking: Staking, message: Values) -> None:
    if not any(message["description"].values()):
        raise TxError(INVALID_REQUEST, "empty description")
    least: int | None = message["min_self_delegation"]
    if least is not None and least <= 0:
        text = "minimum self delegation must be a positive integer"
        raise TxError(INVALID_REQUEST, text)
    rate: int | None = message["commission_rate"]
    if rate is None:
        return
    if not 0 <= rate <= decimals.ONE:
        text = "commission rate must be between 0 and 1 (inclusive)"
        raise TxError(INVALID_REQUEST, text)
    lowest = staking.params().min_commission_rate
    if rate < lowest:
        text = f"min commission rate {decimals.show(lowest)}"
        raise TxError(INVALID_REQUEST, f"commission rate cannot be less than the {text}")


def _change_commission(staking: Staking, commission: Commission, rate: int) -> None:
    rates = commission.commission_rates
    if staking.now - commission.update_time < _DAY:
        raise TxError(COMMISSION_UPDATE_TIME)
    if rate > rates.max_rate:
        raise TxError(COMMISSION_ABOVE_MAX)
    if rate - rates.rate > rates.max_change_rate:
        raise TxError(COMMISSION_ABOVE_MAX_CHANGE)
    # The SDK reads the minimum again.
    staking.params()
    rates.rate, commission.update_time = rate, staking.now


def _show_commission(commission: Commission) -> str:
    """Return gogoproto's text of the message."""
    rates = commission.commission_rates
    shown = " ".join(
        f'{name}:"{value}"'
        for name, value in (
            ("rate", rates.rate),
            ("max_rate", rates.max_rate),
            ("max_change_rate", rates.max_change_rate),
        )
    )
    seconds, nanos = divmod(commission.update_time, SECOND)
    time = f"seconds:{seconds} " * bool(seconds) + f"nanos:{nanos} " * bool(nanos)
    return f"commission_rates:<{shown} > update_time:<{time}> "


def _delegate(context: Context, message: Values) -> None:
    staking = Staking(context, is_strict=True)
    operator = parse_operator(context, message["validator_address"])
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    _check_amount(message["amount"], "invalid delegation amount")
    validator = staking.validator(operator)
    _check_denom(staking, message["amount"])
    shares = delegations.delegate(staking, delegator, message["amount"].value, None, validator)
    context.events.append(
        event(
            "delegate",
            validator=message["validator_address"],
            delegator=message["delegator_address"],
            amount=str(message["amount"]),
            new_shares=decimals.show(shares),
        )
    )


def _undelegate(context: Context, message: Values) -> bytes:
    staking = Staking(context, is_strict=True)
    operator = parse_operator(context, message["validator_address"])
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    shares = _shares(staking, delegator, operator, message["amount"])
    done = delegations.undelegate(staking, delegator, operator, shares)
    amount = Coin(message["amount"].denom, done.tokens)
    context.events.append(
        event(
            "unbond",
            validator=message["validator_address"],
            delegator=message["delegator_address"],
            amount=str(amount),
            completion_time=_seconds(done.completion_time),
        )
    )
    completion = done.completion_time
    return _response("MsgUndelegate", completion_time=completion, amount=amount.encode())


def _shares(staking: Staking, delegator: bytes, operator: bytes, amount: Coin) -> int:
    _check_amount(amount, "invalid shares amount")
    shares = delegations.shares_to_unbond(staking, delegator, operator, amount.value)
    _check_denom(staking, amount)
    return shares


def _seconds(time: int) -> str:
    """Return a time as text, without fractions of a second."""
    return to_text(time - time % SECOND)


def _response(name: str, **values: Any) -> bytes:
    return MESSAGES.encode(f"{_PACKAGE}.{name}Response", **values)


def _begin_redelegate(context: Context, message: Values) -> bytes:
    staking = Staking(context, is_strict=True)
    source = parse_operator(context, message["validator_src_address"], "source validator")
    destination = parse_operator(
        context, message["validator_dst_address"], "destination validator"
    )
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    shares = _shares(staking, delegator, source, message["amount"])
    completion = delegations.redelegate(staking, delegator, source, destination, shares)
    context.events.append(
        event(
            "redelegate",
            source_validator=message["validator_src_address"],
            destination_validator=message["validator_dst_address"],
            amount=str(message["amount"]),
            completion_time=_seconds(completion),
        )
    )
    return _response("MsgBeginRedelegate", completion_time=completion)


def _cancelled_entry(
    staking: Staking, unbonding: UnbondingDelegation, height: int, tokens: int
) -> UnbondingEntry:
    """Return the entry of a height; raise :exc:`TxError` if it has not enough tokens."""
    entry = next((each for each in unbonding.entries if each.creation_height == height), None)
    if entry is None:
        text = f"unbonding delegation entry is not found at block height {height}"
        raise TxError(NOT_FOUND, text)
    if entry.balance < tokens:
        text = "amount is greater than the unbonding delegation entry balance"
        raise TxError(INVALID_REQUEST, text)
    if entry.completion_time < staking.now:
        raise TxError(INVALID_REQUEST, "unbonding delegation is already processed")
    return entry


def _cancel_unbonding(context: Context, message: Values) -> None:
    staking = Staking(context, is_strict=True)
    operator = parse_operator(context, message["validator_address"])
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    amount, height = message["amount"], message["creation_height"]
    _check_amount(amount, "invalid amount")
    if height <= 0:
        raise TxError(INVALID_REQUEST, "invalid height")
    _check_denom(staking, amount)
    validator = staking.validator(operator)
    if validator.has_invalid_rate:
        raise TxError(INVALID_EXCHANGE_RATE)
    if validator.jailed:
        raise TxError(VALIDATOR_JAILED)
    unbonding = staking.find_unbonding(delegator, operator)
    if unbonding is None:
        raise TxError(
            INTERNAL,
            "rpc error: code = NotFound desc = unbonding delegation with delegator"
            f" {message['delegator_address']} not found for validator"
            f" {message['validator_address']}",
        )
    entry = _cancelled_entry(staking, unbonding, height, amount.value)
    delegations.delegate(staking, delegator, amount.value, UNBONDING, validator)
    entry.balance -= amount.value
    if entry.balance:
        entry.initial_balance -= amount.value
    else:
        unbonding.entries.remove(entry)
    staking.set_unbonding(unbonding)
    context.events.append(
        event(
            "cancel_unbonding_delegation",
            amount=str(amount),
            validator=message["validator_address"],
            delegator=message["delegator_address"],
            creation_height=str(height),
        )
    )


HANDLERS = (
    Handler(MSG_CREATE_VALIDATOR, _create_validator),
    Handler(MSG_EDIT_VALIDATOR, _edit_validator),
    Handler(MSG_DELEGATE, _delegate),
    Handler(MSG_UNDELEGATE, _undelegate),
    Handler(MSG_BEGIN_REDELEGATE, _begin_redelegate),
    Handler(MSG_CANCEL_UNBONDING, _cancel_unbonding),
    of_governance(MSG_UPDATE_PARAMS, updating(Params, STORE, PARAMS)),
)
"""Handlers of x/staking."""
