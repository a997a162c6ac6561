"""Errors and error codes that only the EVM layer uses."""

from __future__ import annotations

from ...errors import NotSupported, RPCError

# geth: rpc/errors.go, the default code.
SERVER_ERROR = -32000
# JSON-RPC 2.0.
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
# EIP-1474: method not supported.
NOT_SUPPORTED = -32004
# geth: rpc/errors.go.
TIMED_OUT, RESPONSE_TOO_LARGE = -32002, -32003
# geth: internal/ethapi/errors.go.
REVERTED, VM_ERROR = 3, -32015
NUMBER_INVALID, TIME_INVALID, LIMIT_EXCEEDED = -38020, -38021, -38026
# execution-apis: src/eth/execute.yaml.
MOVED_TO_ITSELF, MOVED_TOGETHER = -38022, -38023


class EvmError(RPCError):
    """Error with its own JSON-RPC code and optional ``data``, such as the data of a revert."""

    def __init__(self, text: str, *, code: int = SERVER_ERROR, data: object = None) -> None:
        super().__init__(text, code=code)
        self.data = data


def not_supported(error: NotSupported) -> EvmError:
    """Return the error for a call that the backend does not support."""
    return EvmError(error.text_with_hint, code=NOT_SUPPORTED)


class PrunedHistory(EvmError):
    """Error for a block that was pruned."""

    def __init__(self) -> None:
        # execution-apis defines this code for pruned history; the text is from geth:
        # core/history.
        super().__init__("pruned history unavailable", code=4444)
