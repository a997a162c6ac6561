"""Errors of x/feegrant; SDK: x/feegrant/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="feegrant")

FEE_LIMIT_EXCEEDED = _code(2, "fee limit exceeded")
FEE_LIMIT_EXPIRED = _code(3, "fee allowance expired")
INVALID_DURATION = _code(4, "invalid duration")
NO_ALLOWANCE = _code(5, "no allowance")
NO_MESSAGES = _code(6, "allowed messages are empty")
MESSAGE_NOT_ALLOWED = _code(7, "message not allowed")
