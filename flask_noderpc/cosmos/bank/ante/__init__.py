"""Checks of a transaction and payment of its fee, before its messages run; SDK:
x/auth/ante."""

from __future__ import annotations

from collections.abc import Callable

from .basics import (
    check_basics,
    check_extensions,
    check_gas_limit,
    check_memo,
    check_timeout,
    pay_for_size,
)
from .checked import CheckedTx
from .fees import deduct_fee
from .signatures import verify_signatures
from .signers import check_count, increment_sequences, pay_for_signatures, set_keys

__all__ = ["CheckedTx", "check"]

# The steps are in the SDK's order.
_STEPS: tuple[Callable[[CheckedTx], None], ...] = (
    check_gas_limit,
    check_extensions,
    check_basics,
    check_timeout,
    check_memo,
    pay_for_size,
    deduct_fee,
    set_keys,
    check_count,
    pay_for_signatures,
    verify_signatures,
    increment_sequences,
)


def check(checked: CheckedTx) -> None:
    """Run all steps; raise :exc:`TxError` at the first failure."""
    for step in _STEPS:
        step(checked)
