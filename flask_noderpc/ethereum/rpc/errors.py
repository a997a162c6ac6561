"""Errors with codes that only the EVM layer has."""

from __future__ import annotations

from ...errors import RPCError

# geth: rpc/errors.go, the default code.
SERVER_ERROR = -32000
INVALID_PARAMS = -32602
# EIP-1474: method not supported.
NOT_SUPPORTED = -32004


class EvmError(RPCError):
    """An error object with its own code, and ``data`` that is not an explanation of ours."""

    def __init__(self, text: str, *, code: int = SERVER_ERROR, data: object = None) -> None:
        super().__init__(text, code=code)
        self.data = data


class PrunedHistory(EvmError):
    """A block that was pruned."""

    def __init__(self) -> None:
        # execution-apis: history that the node no longer has; geth: core/history.
        super().__init__("pruned history unavailable", code=4444)
