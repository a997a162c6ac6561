"""Errors of transactions and queries; SDK: types/errors, x/bank/types/errors.go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of error: code, text and codespace of a failed result."""

    code: int
    text: str | None
    codespace: str = "sdk"


class TxError(Exception):
    """Error of a transaction or a query; ``log`` is the detail and the text of its code."""

    def __init__(self, code: Code, detail: str | None = None) -> None:
        self.code = code
        self.log = ": ".join(each for each in (detail, code.text) if each is not None)
        super().__init__(self.log)

    def wrapped(self, detail: str) -> TxError:
        """Return the same kind of error, with a text in front of its log."""
        other = TxError(self.code)
        other.log = f"{detail}: {self.log}"
        return other


INTERNAL = Code(1, None, "undefined")
PANIC = Code(111222, "panic", "undefined")

TX_DECODE = Code(2, "tx parse error")
UNAUTHORIZED = Code(4, "unauthorized")
INSUFFICIENT_FUNDS = Code(5, "insufficient funds")
UNKNOWN_REQUEST = Code(6, "unknown request")
INVALID_ADDRESS = Code(7, "invalid address")
INVALID_PUB_KEY = Code(8, "invalid pubkey")
UNKNOWN_ADDRESS = Code(9, "unknown address")
INVALID_COINS = Code(10, "invalid coins")
OUT_OF_GAS = Code(11, "out of gas")
MEMO_TOO_LARGE = Code(12, "memo too large")
INSUFFICIENT_FEE = Code(13, "insufficient fee")
TOO_MANY_SIGNATURES = Code(14, "maximum number of signatures exceeded")
NO_SIGNATURES = Code(15, "no signatures supplied")
INVALID_REQUEST = Code(18, "invalid request")
KEY_NOT_FOUND = Code(22, "key not found")
INVALID_HEIGHT = Code(26, "invalid height")
INVALID_TYPE = Code(29, "invalid type")
TX_TIMEOUT_HEIGHT = Code(30, "tx timeout height")
UNKNOWN_EXTENSION_OPTIONS = Code(31, "unknown extension options")
WRONG_SEQUENCE = Code(32, "incorrect account sequence")
LOGIC = Code(35, "internal logic error")
NOT_SUPPORTED = Code(37, "feature not supported")
NOT_FOUND = Code(38, "not found")
INVALID_GAS_LIMIT = Code(41, "invalid gas limit")
TX_TIMEOUT = Code(42, "tx timeout")

QUERY_DECODE = Code(3, "tx parse error", "store")

NO_INPUTS = Code(2, "no inputs to send transaction", "bank")
NO_OUTPUTS = Code(3, "no outputs to send transaction", "bank")
INPUT_OUTPUT_MISMATCH = Code(4, "sum inputs != sum outputs", "bank")
SEND_DISABLED = Code(5, "send transactions are disabled", "bank")
DUPLICATE_ENTRY = Code(8, "duplicate entry", "bank")
MULTIPLE_SENDERS = Code(9, "multiple senders not allowed", "bank")

INVALID_SIGNER = Code(13, "expected gov account as only signer for proposal message", "gov")


class Panic(Exception):
    """Error at which the SDK panics."""

    def error(self) -> TxError:
        """Return the error of a transaction that panicked, with the SDK's text."""
        error = TxError(PANIC)
        error.log = f"recovered: {self}\nstack:\n"
        return error
