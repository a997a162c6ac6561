"""The fee of a transaction; SDK: x/auth/ante/fee.go."""

from __future__ import annotations

from ....jsoncodec import text_of
from ...protocol import coins
from ...protocol import tx as txs
from ...protocol.coins import Coins
from ..accounts import FEE_COLLECTOR
from ..balances import event
from ..context import Mode
from ..errors import (
    INSUFFICIENT_FEE,
    INSUFFICIENT_FUNDS,
    INVALID_GAS_LIMIT,
    INVALID_REQUEST,
    UNKNOWN_ADDRESS,
    Panic,
    TxError,
)
from .checked import CheckedTx


def deduct_fee(checked: CheckedTx) -> None:
    """Move the fee from the payer's balance to the fee collector; raise :exc:`TxError` if the
    fee is too low or can't be paid."""
    fee, show = checked.fee, checked.context.codec.show
    if not checked.simulates and not fee.gas_limit:
        raise TxError(INVALID_GAS_LIMIT, "must provide positive gas")
    if checked.mode in (Mode.CHECK, Mode.RECHECK):
        _check_gas_price(fee, checked.min_gas_prices)
    payer = checked.payer
    if fee.granter:
        payer = _use_grant(checked, fee.granter, payer)
    if checked.context.accounts.get(payer) is None:
        # The SDK writes the address as raw bytes.
        text = f"fee payer address: {text_of(payer)} does not exist"
        raise TxError(UNKNOWN_ADDRESS, text)
    if any(coin.value for coin in fee.amount):
        _pay(checked, payer, fee.amount)
    checked.context.events.append(
        event("tx", fee=coins.show(fee.amount), fee_payer=show(payer))
    )


def _use_grant(checked: CheckedTx, text: str, payer: bytes) -> bytes:
    """Return the granter's address, from whose balance the fee is paid."""
    context = checked.context
    try:
        granter = context.codec.parse(text)
    except TxError as error:
        raise Panic(error.log) from None
    module = next((each for each in context.environment.modules if each.grants_fees), None)
    if module is None:
        raise TxError(INVALID_REQUEST, "fee grants are not enabled")
    if granter != payer:
        messages = [each.type.type_url for each in checked.messages]
        try:
            module.use_grant(context, granter, payer, checked.fee.amount, messages)
        except TxError as error:
            # The SDK writes the addresses as raw bytes.
            shown = f"{text_of(granter)} does not allow to pay fees for {text_of(payer)}"
            raise error.wrapped(shown) from None
    return granter


def _pay(checked: CheckedTx, payer: bytes, amount: Coins) -> None:
    if not coins.is_valid(amount):
        text = f"invalid fee amount: {coins.show(amount)}"
        raise TxError(INSUFFICIENT_FEE, text)
    try:
        collector = checked.context.accounts.module(FEE_COLLECTOR)
        checked.context.balances.send(payer, collector, amount)
    except TxError as error:
        raise TxError(INSUFFICIENT_FUNDS, error.log) from None


def _check_gas_price(fee: txs.Fee, prices: dict[str, tuple[int, int]]) -> None:
    if not prices:
        return
    required = {
        denom: -(-price * fee.gas_limit // unit) for denom, (price, unit) in prices.items()
    }
    paid = {coin.denom: coin.value for coin in fee.amount}
    if not any(paid.get(denom, 0) >= least > 0 for denom, least in required.items()):
        shown = ",".join(f"{required[denom]}{denom}" for denom in sorted(required))
        raise TxError(
            INSUFFICIENT_FEE,
            f"insufficient fees; got: {coins.show(fee.amount)} required: {shown}",
        )
