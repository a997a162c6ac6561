"""Errors of x/authz; SDK: x/authz/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="authz")

NOT_AUTHORIZED = _code(2, "authorization not found")
INVALID_EXPIRATION = _code(
    3, "expiration time of authorization should be more than current time"
)
UNKNOWN_TYPE = _code(4, "unknown authorization type")
NO_GRANT_KEY = _code(5, "grant key not found")
EXPIRED = _code(6, "authorization expired")
GRANTEE_IS_GRANTER = _code(7, "grantee and granter should be different")
NUMBER_OF_SIGNERS = _code(9, "authorization can be given to msg with only one signer")
NEGATIVE_MAX_TOKENS = _code(12, "max tokens should be positive")
