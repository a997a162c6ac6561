"""The exception tree.

::

    NodeRPCError
    ├── ConfigurationError          raised at start, never on the wire
    │   └── InvalidSetting          a setting whose value is always wrong
    ├── BackendError                raised by backends and the chain; has no code
    │   ├── NotFound                the requested object does not exist
    │   │   ├── HeightNotAvailable(height, lowest, latest)
    │   │   ├── BlockNotFound(hash)
    │   │   ├── TxNotFound(hash)
    │   │   ├── FilterNotFound()
    │   │   └── ResultNotFound(what)
    │   ├── Refused                 the request is not allowed
    │   │   ├── ValueNotAllowed(reason)
    │   │   ├── GenesisTooLarge(size, limit)
    │   │   ├── Forbidden           the caller may not do this
    │   │   │   ├── OriginRefused() · HostRefused() · NotAuthorized(method)
    │   │   │   └── SigningRefused()    its keys sign only for local callers
    │   │   ├── KeyProtected(action)  a validator key must not sign a height twice
    │   │   ├── TxRejected(reason)
    │   │   │   ├── TxInCache · TxTooLarge(size, limit) · NonceTaken()
    │   │   ├── InvalidEvidence(reason)
    │   │   ├── InvalidTransaction(reason)  not a signed Ethereum transaction
    │   │   ├── QuerySyntaxError(reason, at)
    │   │   └── NotSupported(what)
    │   ├── MempoolFull(txs, max_txs, size, max_bytes)
    │   ├── EvidencePoolFull(limit)
    │   ├── WaitTimedOut(what)
    │   ├── Busy(what, setting)     a limit of this server is reached
    │   ├── SearchTooCostly(reason) the search exceeds its limits
    │   ├── ExecutionFailed         the execution of the code was aborted
    │   │   └── ExecutorsBusy(count) · ExecutionTimedOut(hint) · ExecutorDied() · TraceStopped ·
    │   │       TracerFailed
    │   ├── InvalidBlock(reason)    append_block refused it
    │   ├── BlockNotExecuted(height, txs, reason)  the next proposal has fewer txs
    │   ├── LeaseLost(reason)       another producer took over
    │   ├── ChainHalted(reason)     the keys can't commit a block
    │   ├── DecodeError(reason, path)   JSON of another node does not fit its schema
    │   ├── ForwardedCallFailed(error)  error object of another node
    │   ├── UpstreamError           another node can't be used
    │   │   ├── UpstreamUnavailable(name, reason)   it gave no usable response
    │   │   ├── UpstreamRefused(name, code, message, data)  it responded with an error
    │   │   └── UpstreamMismatch(name, reason)      its data is refuted
    │   └── StoreError(reason, path) the store is missing, corrupt or too new
    │       └── StoreUnavailable    it is locked or full, or its database can't be reached
    └── RPCError(code, message, text)   the JSON-RPC error object
        ├── ParseError -32700 · MethodNotFound -32601 · InvalidParams -32602
        ├── InternalError -32603
        │   └── CallFailed · ValueRefused · AnswerTooLarge · BatchTimedOut
        └── InvalidRequest -32600
            └── BatchTooLarge(limit) · BodyTooLarge(limit) · BodyEncoded
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr
from typing import Any

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def short_repr(value: object) -> str:
    """Return the repr of a value for an error message, shortened if it is long."""
    try:
        return _SHORT.repr(value)
    except ValueError:
        # CPython refuses to print integers with more than 4,300 digits.
        return f"<{type(value).__name__}>"


class NodeRPCError(Exception):
    """Root of every error that this package raises on purpose.

    ``text`` is the message, as a real node would word it; ``hint`` says how to fix the
    problem.
    """

    def __init__(self, text: str = "", hint: str = "") -> None:
        self.text, self.hint = text, hint
        self.text_with_hint = f"{text} ({hint})" if text and hint else text or hint
        super().__init__(self.text_with_hint)


class ConfigurationError(NodeRPCError):
    """A setting, a home or a mount is wrong; the message says how to fix it."""


def unfit_argument(argument: str, value: object, needed: str) -> ConfigurationError:
    """Return the error for an argument whose value is not what is ``needed``."""
    return ConfigurationError(f"{argument}: {needed}, got {short_repr(value)}")


class InvalidSetting(ConfigurationError):
    """The value of a setting is wrong with any store, home and machine."""


class BackendError(NodeRPCError):
    """Root of the errors of a backend; the caller gets the text."""


class DecodeError(BackendError):
    """JSON of another node does not match its schema; ``path`` names the member."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        self.reason, self.path = reason, path
        super().__init__(f"{'.'.join(path)}: {reason}" if path else reason)


class NotFound(BackendError):
    """The requested object does not exist."""


class HeightNotAvailable(NotFound):
    """No block has this height: it is below the lowest stored one or above the latest."""

    def __init__(self, height: int, lowest: int, latest: int) -> None:
        self.height, self.lowest, self.latest = height, lowest, latest
        # Keep CometBFT's texts: light clients match both with regular expressions.
        if height > latest:
            text = (
                f"height {height} must be less than or equal to"
                f" the current blockchain height {latest}"
            )
        else:
            text = f"height {height} is not available, lowest height is {lowest}"
        super().__init__(text)


class BlockNotFound(NotFound):
    """No block has this hash."""

    def __init__(self, block_hash: bytes) -> None:
        self.hash = block_hash
        super().__init__(f"block ({block_hash.hex().upper()}) not found")


class TxNotFound(NotFound):
    """No committed transaction has this hash."""

    def __init__(self, tx_hash: bytes, hint: str = "") -> None:
        self.hash = tx_hash
        super().__init__(f"tx ({tx_hash.hex().upper()}) not found", hint)


class ResultNotFound(NotFound):
    """The store has no results, validators or parameters of this height."""


class GenesisNotAvailable(NotFound):
    """The chain began at a trusted height, without its genesis document."""

    def __init__(self) -> None:
        super().__init__(
            "the genesis document is not available",
            "this chain began at a trusted block; add the document with ChainStore.set_genesis",
        )


class FilterNotFound(NotFound):
    """No filter has this ID, or it expired because it was not polled."""

    def __init__(self) -> None:
        # The text is geth's: eth/filters/api.go.
        super().__init__("filter not found")


class Refused(BackendError):
    """The request is valid but is not allowed."""


class ValueNotAllowed(Refused):
    """A parameter is well formed, but its value is out of range."""


class GenesisTooLarge(Refused):
    """The genesis document does not fit into one chunk."""

    def __init__(self, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            "genesis response is large, please use the genesis_chunked API instead"
        )


class Forbidden(Refused):
    """The caller may not do this."""


class OriginRefused(Forbidden):
    """The caller is a web page whose origin is not allowed to do this."""


class HostRefused(Forbidden):
    """The request names a host that is not served."""

    def __init__(self) -> None:
        super().__init__("invalid host specified", "add the host to NODERPC_ALLOWED_HOSTS")


class NotAuthorized(Forbidden):
    """The app's ``authorize`` function denied the call of a method."""

    def __init__(
        self,
        method: str,
        status: int = 403,
        headers: Mapping[str, str] | None = None,
        message: str = "",
    ) -> None:
        self.status, self.headers = status, dict(headers or {})
        super().__init__(message or f"not authorized to call {method}")


class SigningRefused(Forbidden):
    """The caller is not on this machine, and the node's keys only sign for local callers."""

    def __init__(self) -> None:
        super().__init__(
            "only callers on this machine may sign here",
            "connect from this machine to localhost, and not through a proxy",
        )


class KeyProtected(Refused):
    """The call would let a validator key sign a height twice."""

    def __init__(self, action: str) -> None:
        super().__init__(
            f"{action} would sign a height twice, for which a development key is needed; a"
            " validator key of this home is not one",
            "use a new home that NODERPC_DEV (noderpc start --dev) creates, with a development"
            " key",
        )


class TxRejected(Refused):
    """The mempool rejects this transaction."""


class NonceTaken(TxRejected):
    """The mempool holds another transaction of the sender with this nonce."""

    def __init__(self) -> None:
        super().__init__("another transaction with this nonce is pending")


class TxInCache(TxRejected):
    """The mempool has seen this transaction recently."""

    def __init__(self) -> None:
        super().__init__("tx already exists in cache")


class TxTooLarge(TxRejected):
    """The transaction exceeds the mempool's size limit."""

    def __init__(self, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            f"Tx too large. Max size is {limit}, but got {size}",
            "raise NODERPC_MAX_TX_BYTES",
        )


class InvalidEvidence(Refused):
    """The evidence is invalid or expired."""


class InvalidTransaction(Refused):
    """The bytes are not a signed Ethereum transaction; the text is geth's."""


class QuerySyntaxError(Refused):
    """The text is not a valid event query."""

    def __init__(self, reason: str, at: int) -> None:
        self.reason, self.at = reason, at
        super().__init__(f"offset {at}: {reason}")


class NotSupported(Refused):
    """The backend does not support what the call needs."""


class MempoolFull(BackendError):
    """The mempool has reached its limit of transactions or bytes."""

    def __init__(self, txs: int, max_txs: int, size: int, max_bytes: int) -> None:
        self.txs, self.max_txs, self.size, self.max_bytes = txs, max_txs, size, max_bytes
        super().__init__(
            f"mempool is full: number of txs {txs} (max: {max_txs}),"
            f" total txs bytes {size} (max: {max_bytes})",
            "to allow more transactions, raise NODERPC_MEMPOOL_SIZE",
        )


class EvidencePoolFull(BackendError):
    """The evidence pool is full."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(
            f"evidence pool is full: {limit} pieces are pending; try again after some blocks"
        )


class WaitTimedOut(BackendError):
    """The awaited event did not happen within the timeout."""


class Busy(BackendError):
    """A limit of this server is reached; the message names its setting."""


class SearchTooCostly(BackendError):
    """The search exceeds its limits; it returns no incomplete result."""

    @classmethod
    def by_rows(cls, rows: int) -> SearchTooCostly:
        """Return the error of a search that reads too many rows."""
        return cls(
            f"the search has to read more than {rows} rows: narrow it by height or by an"
            " equality, or raise NODERPC_SEARCH_TIMEOUT"
        )

    @classmethod
    def by_time(cls, seconds: float) -> SearchTooCostly:
        """Return the error of a search that took too long, including its time in the queue."""
        return cls(
            f"the search was not done within {seconds:g} s: narrow it by height, by cursor or"
            " by an equality, or raise NODERPC_SEARCH_TIMEOUT"
        )

    @classmethod
    def by_size(cls, size: int) -> SearchTooCostly:
        """Return the error of a search whose results exceed one response."""
        return cls(
            f"the page is larger than {size} bytes: pass a smaller per_page, or raise"
            " NODERPC_MAX_RESPONSE_BYTES"
        )


class SearchIncomplete(BackendError):
    """The index lacks heights of the search, and no upstream node could search them."""


class InvalidBlock(BackendError):
    """The block does not follow the chain or does not match its own hashes."""


class ExecutionFailed(BackendError):
    """The execution of the code was aborted, not because of an error in the code."""


class ExecutorsBusy(ExecutionFailed):
    """All executors are busy and their queue is full."""

    def __init__(self, count: int) -> None:
        super().__init__(
            "too many calls are being executed",
            f"try again later, or raise NODERPC_EVM_EXECUTORS, which is {count}",
        )


class ExecutionTimedOut(ExecutionFailed):
    """The code exceeded its timeout; its process was killed."""

    def __init__(self, hint: str = "to allow more seconds, raise NODERPC_EVM_TIMEOUT") -> None:
        super().__init__("execution aborted", hint)


class TraceStopped(ExecutionFailed):
    """The trace takes too long or is too large."""


class TracerFailed(ExecutionFailed):
    """The code of a tracer failed, which does not stop the transaction that it traces."""


class ExecutorDied(ExecutionFailed):
    """The process that ran the code was killed, or ran out of memory."""

    def __init__(self) -> None:
        super().__init__("the process that executed the call has ended; try again")


class BlockNotExecuted(BackendError):
    """A proposed block could not be executed completely; the next proposal has fewer
    transactions."""

    def __init__(self, height: int, txs: int, reason: str) -> None:
        super().__init__(f"block {height} with {txs} transactions was not executed: {reason}")


class LeaseLost(BackendError):
    """Another process has the lease and produces blocks."""


class ChainHalted(BackendError):
    """The keys of this home can't commit a block: they have too little voting power, or have
    already signed this height."""


class NotReady(BackendError):
    """The node can't respond properly now, for example because blocks are due but are not
    produced."""


class UpstreamError(BackendError):
    """Another node can't be used; ``name`` is its address without credentials."""

    def __init__(self, name: str, text: str, hint: str = "") -> None:
        self.name = name
        super().__init__(text, hint)


class UpstreamUnavailable(UpstreamError):
    """The upstream sent no usable response; another upstream may, or the same one later.

    ``retry_after`` is the number of seconds to wait that the upstream asked for, or ``None``.
    """

    def __init__(self, name: str, reason: str, retry_after: float | None = None) -> None:
        self.reason, self.retry_after = reason, retry_after
        super().__init__(name, f"upstream {name}: {reason}")


class UpstreamRefused(UpstreamError):
    """The upstream responded to a call with a JSON-RPC error."""

    def __init__(self, name: str, code: int, message: str, data: str = "") -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(name, data or message)


class ForwardedCallFailed(BackendError):
    """Another node responded to a forwarded call with an error object."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.error = error
        super().__init__(str(error.get("message", "")))


class UpstreamMismatch(UpstreamError):
    """A hash, a signature or another upstream refutes the upstream's data."""

    def __init__(self, name: str, reason: str) -> None:
        self.reason = reason
        super().__init__(name, f"upstream {name}: {reason}")


FULL = "the disk or the page limit is full, nothing was written"
"""Beginning of the error of a write that fails because the disk is full."""


class StoreError(BackendError):
    """The store can't be opened, read or written; the message says what to do."""

    def __init__(self, reason: str, path: str | None = None) -> None:
        self.reason, self.path = reason, path
        super().__init__(reason if path is None else f"{path}: {reason}")


class StoreUnavailable(StoreError):
    """The store can't be used at the moment; the same call may succeed later."""


class RPCError(NodeRPCError):
    """A JSON-RPC error object; its ``data`` is the text with the hint, and is omitted if
    empty."""

    code = -32603
    message = "Internal error"

    def __init__(
        self,
        text: str = "",
        hint: str = "",
        *,
        code: int | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(text, hint)
        if code is not None:
            self.code = code
        if message is not None:
            self.message = message

    def __str__(self) -> str:
        return f"{self.message}: {self.text_with_hint}" if self.text_with_hint else self.message


class ParseError(RPCError):
    """The body is not JSON."""

    code = -32700
    message = "Parse error. Invalid JSON"


class InvalidRequest(RPCError):
    """The body is JSON but not a JSON-RPC request."""

    code = -32600
    message = "Invalid Request"


class BatchTooLarge(InvalidRequest):
    """The batch exceeds the maximum number of calls."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"batch request exceeds maximum ({limit}) allowed number of requests",
            "send smaller batches, or raise NODERPC_MAX_BATCH",
        )


class BodyTooLarge(InvalidRequest):
    """The body exceeds its maximum size."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            "error reading request body: http: request body too large",
            f"expected at most {limit} bytes; raise NODERPC_MAX_BODY_BYTES, and the app's"
            " MAX_CONTENT_LENGTH if it is lower",
        )


class BodyEncoded(InvalidRequest):
    """The body is compressed; no content coding is supported."""


class MethodNotFound(RPCError):
    """No method has this name."""

    code = -32601
    message = "Method not found"


class InvalidParams(RPCError):
    """A parameter is invalid; the text names it."""

    code = -32602
    message = "Invalid params"


class InternalError(RPCError):
    """The call failed; the text gives the reason if it may be public."""


class CallFailed(InternalError):
    """The call failed for a reason that is returned to the caller."""


class ValueRefused(CallFailed):
    """A parameter has a value that the call can't use; CometBFT calls this an internal
    error."""

    own_message = "Invalid value"
    """Message in the dialect ``document``."""


class BatchTimedOut(InternalError):
    """The batch exceeded its timeout."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the batch was not done within {seconds:g} s", "send fewer calls in a batch"
        )


class AnswerTooLarge(InternalError):
    """The responses of a batch exceed the maximum size."""

    def __init__(self) -> None:
        super().__init__(
            "the responses to the batch are too large",
            "send fewer calls in a batch, or raise NODERPC_MAX_RESPONSE_BYTES",
        )
