"""Errors with codes that only the EVM layer has."""

from __future__ import annotations

from ..errors import RPCError

# EIP-1474: method not supported.
NOT_SUPPORTED = -32004


class EvmError(RPCError):
    """An error object with a code of its own, and ``data`` that is no text of ours."""

    def __init__(self, text: str, *, code: int, data: object = None) -> None:
        super().__init__(text, code=code)
        self.data = data
