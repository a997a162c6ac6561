"""Errors of x/distribution; SDK: x/distribution/types/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="distribution")

NO_DELEGATION_INFO = _code(5, "no delegation distribution info")
NO_VALIDATOR_INFO = _code(6, "no validator distribution info")
NO_COMMISSION = _code(7, "no validator commission to withdraw")
WITHDRAW_ADDRESS_DISABLED = _code(8, "set withdraw address disabled")
BAD_DISTRIBUTION = _code(9, "community pool does not have sufficient coins to distribute")
