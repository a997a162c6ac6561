"""Errors of x/slashing; SDK: x/slashing/types/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="slashing")

VALIDATOR_JAILED = _code(4, "validator still jailed; cannot be unjailed")
NOT_JAILED = _code(5, "validator not jailed; cannot be unjailed")
SELF_DELEGATION_TOO_LOW = _code(
    7, "validator's self delegation less than minimum; cannot be unjailed"
)
