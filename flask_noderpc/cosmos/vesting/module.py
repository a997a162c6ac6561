"""The module vesting: messages; SDK: x/auth/vesting/msg_server.go.

Its accounts are in the genesis state of x/auth.
"""

from __future__ import annotations

from functools import partial

from ...domain.time import SECOND
from ..bank.accounts import Account
from ..bank.context import Context
from ..bank.errors import INVALID_REQUEST, TxError
from ..bank.messages import (
    Handler,
    check_amount,
    parse_address,
    refuse_blocked,
    total_of,
)
from ..bank.module import Module
from ..bank.vesting import (
    CONTINUOUS,
    DELAYED,
    PERIOD,
    PERIODIC,
    PERMANENT,
    Vesting,
    encode_periods,
    end_of,
)
from ..protocol.coins import Coins
from ..protocol.fields import Values, declared
from ..protocol.messages import MessageType

_PACKAGE = "cosmos.vesting.v1beta1"
_declared = partial(declared, signer="from_address")

MSG_CREATE = MessageType(
    f"/{_PACKAGE}.MsgCreateVestingAccount",
    _declared("*types.MsgCreateVestingAccount", f"{_PACKAGE}.MsgCreateVestingAccount"),
    "cosmos-sdk/MsgCreateVestingAccount",
)
MSG_CREATE_PERMANENT = MessageType(
    f"/{_PACKAGE}.MsgCreatePermanentLockedAccount",
    _declared(
        "*types.MsgCreatePermanentLockedAccount", f"{_PACKAGE}.MsgCreatePermanentLockedAccount"
    ),
    "cosmos-sdk/MsgCreatePermLockedAccount",
)
MSG_CREATE_PERIODIC = MessageType(
    f"/{_PACKAGE}.MsgCreatePeriodicVestingAccount",
    _declared(
        "*types.MsgCreatePeriodicVestingAccount",
        f"{_PACKAGE}.MsgCreatePeriodicVestingAccount",
        vesting_periods=PERIOD,
    ),
    "cosmos-sdk/MsgCreatePeriodVestAccount",
)


def _parties(context: Context, given: Values) -> tuple[bytes, bytes]:
    """Return the addresses of sender and recipient."""
    sender = parse_address(context.codec, "'from'", given["from_address"])
    return sender, parse_address(context.codec, "'to'", given["to_address"])


def _refuse_recipient(context: Context, recipient: bytes, text: str) -> None:
    refuse_blocked(context, recipient, text)
    if context.accounts.get(recipient) is not None:
        raise TxError(INVALID_REQUEST, f"account {text} already exists")


def _create(context: Context, sender: bytes, recipient: bytes, vesting: Vesting) -> None:
    number = context.accounts.next_number()
    try:
        vesting.check()
    except ValueError as error:
        raise TxError(INVALID_REQUEST, str(error)) from None
    account = Account(context.codec.show(recipient), number, vesting=vesting)
    context.accounts.set(recipient, account)
    context.balances.send(sender, recipient, vesting.original)


def _handle_create(context: Context, given: Values) -> None:
    sender, recipient = _parties(context, given)
    amount, end = given["amount"], given["end_time"]
    check_amount(amount)
    if end <= 0:
        raise TxError(INVALID_REQUEST, "invalid end time")
    context.balances.check_send_enabled(amount)
    _refuse_recipient(context, recipient, given["to_address"])
    start = context.environment.time // SECOND
    vesting = (
        Vesting(DELAYED, amount, end=end)
        if given["delayed"]
        else Vesting(CONTINUOUS, amount, end=end, start=start)
    )
    _create(context, sender, recipient, vesting)


def _handle_create_permanent(context: Context, given: Values) -> None:
    sender, recipient = _parties(context, given)
    amount = given["amount"]
    check_amount(amount)
    context.balances.check_send_enabled(amount)
    _refuse_recipient(context, recipient, given["to_address"])
    _create(context, sender, recipient, Vesting(PERMANENT, amount))


def _handle_create_periodic(context: Context, given: Values) -> None:
    sender, recipient = _parties(context, given)
    start, periods = given["start_time"], given["vesting_periods"]
    if start < 1:
        text = f"invalid start time of {start}, length must be greater than 0"
        raise TxError(INVALID_REQUEST, text)
    amounts: list[Coins] = []
    try:
        for at, period in enumerate(periods):
            length = period["length"]
            if length < 1:
                text = f"invalid period length of {length} in period {at}, length must be"
                raise TxError(INVALID_REQUEST, f"{text} greater than 0")
            check_amount(period["amount"])
            amounts.append(period["amount"])
    finally:
        # The SDK adds up while it checks: a sum that is too large is found before a later
        # period is refused.
        total = total_of(*amounts)
    _refuse_recipient(context, recipient, given["to_address"])
    context.balances.check_send_enabled(total)
    end = end_of(start, periods)
    encoded = encode_periods(periods)
    vesting = Vesting(PERIODIC, total, end=end, start=start, periods=encoded)
    _create(context, sender, recipient, vesting)


class VestingModule(Module):
    """Messages that create vesting accounts."""

    name = "vesting"
    handlers = (
        Handler(MSG_CREATE, _handle_create),
        Handler(MSG_CREATE_PERMANENT, _handle_create_permanent),
        Handler(MSG_CREATE_PERIODIC, _handle_create_periodic),
    )
