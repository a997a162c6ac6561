"""Checks of a transaction's gas limit, timeout, memo and size; SDK: x/auth/ante/basic.go."""

from __future__ import annotations

from ....domain.time import SECOND, ZERO_TIME, to_go_text
from ....protocol.protobuf import delimited
from ...protocol import coins
from ...protocol.keys import MultisigKey
from ...protocol.tx import MultiSignature, Signature
from ..context import Mode
from ..errors import (
    INSUFFICIENT_FEE,
    INVALID_ADDRESS,
    INVALID_GAS_LIMIT,
    INVALID_REQUEST,
    MEMO_TOO_LARGE,
    NO_SIGNATURES,
    TX_TIMEOUT,
    TX_TIMEOUT_HEIGHT,
    UNAUTHORIZED,
    UNKNOWN_EXTENSION_OPTIONS,
    TxError,
)
from .checked import SIMULATED_KEY, CheckedTx

_MAX_GAS = (1 << 63) - 1
_SIMULATED_SIGNATURE = 64


def check_gas_limit(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for a gas limit above the block's."""
    limit = checked.context.environment.head.max_gas
    if 0 < limit < checked.fee.gas_limit:
        text = f"tx gas limit {checked.fee.gas_limit} exceeds block max gas {limit}"
        raise TxError(INVALID_GAS_LIMIT, text)


def check_extensions(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for extension options, as none are supported."""
    if checked.tx.body.extensions:
        raise TxError(UNKNOWN_EXTENSION_OPTIONS)


def check_basics(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for an invalid fee, or if signatures and signers differ in
    number."""
    if checked.mode is Mode.RECHECK:
        return
    _check_fee(checked)
    signatures = checked.tx.signatures
    if not signatures:
        raise TxError(NO_SIGNATURES)
    if len(signatures) != len(checked.signers):
        raise TxError(
            UNAUTHORIZED,
            f"wrong number of signers; expected {len(checked.signers)}, got {len(signatures)}",
        )


def _check_fee(checked: CheckedTx) -> None:
    fee = checked.fee
    if fee.gas_limit > _MAX_GAS:
        text = f"invalid gas supplied; {fee.gas_limit} > {_MAX_GAS}"
        raise TxError(INVALID_REQUEST, text)
    if any(coin.amount is None for coin in fee.amount):
        raise TxError(INSUFFICIENT_FEE, "invalid fee provided: null")
    if any(coin.value < 0 for coin in fee.amount):
        raise TxError(INSUFFICIENT_FEE, f"invalid fee provided: {coins.show(fee.amount)}")
    if fee.payer:
        try:
            checked.context.codec.parse_message(fee.payer)
        except TxError as error:
            text = f"Invalid fee payer address ({error.log})"
            raise TxError(INVALID_ADDRESS, text) from None


def check_timeout(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` if the transaction's timeout height or timeout has passed."""
    limit, height = checked.tx.body.timeout_height, checked.context.environment.height
    if limit and height > limit:
        text = f"block height: {height}, timeout height: {limit}"
        raise TxError(TX_TIMEOUT_HEIGHT, text)
    timeout, now = checked.tx.body.timeout, checked.context.environment.time
    # Go's zero time and the first second of 1970 mean that there is no timeout.
    if timeout is None or timeout == ZERO_TIME or not timeout // SECOND:
        return
    if timeout < now:
        block, given = to_go_text(now), to_go_text(timeout)
        raise TxError(TX_TIMEOUT, f"block time: {block}, timeout timestamp: {given}")


def check_memo(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for a memo that is too long."""
    size = len(checked.tx.body.memo)
    if not size:
        return
    limit = checked.params.max_memo_characters
    if size > limit:
        raise TxError(
            MEMO_TOO_LARGE,
            f"maximum number of characters is {limit} but received {size} characters",
        )


def pay_for_size(checked: CheckedTx) -> None:
    """Charge gas for the bytes of a transaction; in a simulation also for missing
    signatures."""
    params, meter = checked.params, checked.context.meter
    meter.consume(params.tx_size_cost_per_byte * checked.tx.size, "txSize")
    if not checked.simulates:
        return
    signatures = checked.signatures
    for at, signer in enumerate(checked.signers):
        if at < len(signatures) and _is_complete(signatures[at][0]):
            continue
        account = checked.context.accounts.get(signer)
        key = account.key if account and account.key else SIMULATED_KEY
        # A signature adds its key and itself to the size, in binary amino.
        size = len(b"\x0a" + delimited(key.amino)) + _SIMULATED_SIGNATURE + 2 + 6
        count = params.tx_sig_limit if isinstance(key, MultisigKey) else 1
        meter.consume(params.tx_size_cost_per_byte * size * count, "txSize")


def _is_complete(signature: Signature | None) -> bool:
    if isinstance(signature, MultiSignature):
        return bool(signature.parts) and all(map(_is_complete, signature.parts))
    return signature is not None and bool(signature.signature)
