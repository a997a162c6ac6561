"""The exception tree.

::

    NodeRPCError
    ├── ConfigurationError          raised at start, never on the wire
    ├── BackendError                raised by backends and the chain; knows no code
    │   ├── NotFound                what was asked for does not exist
    │   │   ├── HeightNotAvailable(height, lowest, latest)
    │   │   ├── BlockNotFound(hash)
    │   │   ├── TxNotFound(hash)
    │   │   ├── FilterNotFound()
    │   │   └── ResultNotFound(what)
    │   ├── Refused                 the caller asked for something that can't be granted
    │   │   ├── ValueNotAllowed(reason)
    │   │   ├── GenesisTooLarge(size, limit)
    │   │   ├── Forbidden           this caller may not do this
    │   │   │   ├── OriginRefused() · HostRefused() · NotAuthorized(method)
    │   │   │   └── SigningRefused()    only callers on this machine may have its keys sign
    │   │   ├── TxRejected(reason)
    │   │   │   ├── TxInCache · TxTooLarge(size, limit) · PlaceTaken()
    │   │   ├── InvalidEvidence(reason)
    │   │   ├── InvalidTransaction(reason)  no signed Ethereum transaction
    │   │   ├── QuerySyntaxError(reason, at)
    │   │   └── NotSupported(what)
    │   ├── MempoolFull(txs, max_txs, size, max_bytes)
    │   ├── EvidencePoolFull(limit)
    │   ├── WaitTimedOut(what)
    │   ├── Busy(what, setting)     a cap of this server is reached
    │   ├── SearchTooCostly(reason) the search needs more than one may take
    │   ├── ExecutionFailed         code was not run to its end
    │   │   └── ExecutorsBusy(count) · ExecutionTimedOut() · ExecutorDied() · TraceStopped
    │   ├── InvalidBlock(reason)    append_block refused it
    │   ├── BlockNotExecuted(height, txs, reason)  the next proposal has less in it
    │   ├── LeaseLost(reason)       another producer took over
    │   ├── ChainHalted(reason)     our keys hold too little voting power
    │   └── StoreError(reason, path) the store is missing, corrupt, locked, full or too new
    └── RPCError(code, message, text)   what goes on the wire
        ├── ParseError -32700 · MethodNotFound -32601 · InvalidParams -32602
        ├── InternalError -32603
        │   └── CallFailed · AnswerTooLarge · BatchTimedOut
        └── InvalidRequest -32600
            └── BatchTooLarge(limit) · BodyTooLarge(limit) · BodyEncoded
"""

from __future__ import annotations

from reprlib import Repr

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def short_repr(value: object) -> str:
    """The repr of a bad value in an error, cut where it is long."""
    return _SHORT.repr(value)


class NodeRPCError(Exception):
    """Root of every error that this package raises on purpose.

    ``text`` is what a real node says; ``hint`` is what we add to it: what to do about it.
    """

    def __init__(self, text: str = "", hint: str = "") -> None:
        self.text, self.hint = text, hint
        self.said = f"{text} ({hint})" if text and hint else text or hint
        super().__init__(self.said)


class ConfigurationError(NodeRPCError):
    """A setting, a home or a mount is wrong; the message names the cure."""


class BackendError(NodeRPCError):
    """Root of what a backend raises; its text reaches the caller."""


class NotFound(BackendError):
    """What was asked for does not exist here."""


class HeightNotAvailable(NotFound):
    """No block at this height: below the lowest kept or above the latest."""

    def __init__(self, height: int, lowest: int, latest: int) -> None:
        self.height, self.lowest, self.latest = height, lowest, latest
        # CometBFT: light clients match both sentences with regular expressions.
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

    def __init__(self, tx_hash: bytes) -> None:
        self.hash = tx_hash
        super().__init__(f"tx ({tx_hash.hex().upper()}) not found")


class ResultNotFound(NotFound):
    """The store holds nothing of this kind at this height."""


class FilterNotFound(NotFound):
    """No filter of this id lives; it may have, but nobody polled it for too long."""

    def __init__(self) -> None:
        # geth: eth/filters/api.go.
        super().__init__("filter not found")


class Refused(BackendError):
    """The request is understood and can't be granted as it stands."""


class ValueNotAllowed(Refused):
    """A parameter is well formed, its value is outside what is allowed."""


class GenesisTooLarge(Refused):
    """The genesis document does not fit one chunk."""

    def __init__(self, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            "genesis response is large, please use the genesis_chunked API instead"
        )


class Forbidden(Refused):
    """The caller may not do this."""


class OriginRefused(Forbidden):
    """The caller is a page of another site, which may not do this."""


class HostRefused(Forbidden):
    """The request is for a host that is not served here."""

    def __init__(self) -> None:
        super().__init__("invalid host specified", "NODERPC_ALLOWED_HOSTS lists those served")


class NotAuthorized(Forbidden):
    """The host's own ``authorize`` did not let the caller call a method."""

    def __init__(self, method: str) -> None:
        super().__init__(f"not authorized to call {method}")


class SigningRefused(Forbidden):
    """The caller is not on this machine, whose keys sign for nobody else."""

    def __init__(self) -> None:
        super().__init__(
            "only callers on this machine may sign here",
            "connect from it, to localhost or a loopback address and not through a proxy",
        )


class TxRejected(Refused):
    """The mempool does not take this transaction."""


class PlaceTaken(TxRejected):
    """Another transaction of the sender waits with this nonce."""

    def __init__(self) -> None:
        super().__init__("another transaction with this nonce waits")


class TxInCache(TxRejected):
    """The mempool has seen this transaction lately."""

    def __init__(self) -> None:
        super().__init__("tx already exists in cache")


class TxTooLarge(TxRejected):
    """The transaction is over the mempool's size limit."""

    def __init__(self, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            f"Tx too large. Max size is {limit}, but got {size}",
            "NODERPC_MAX_TX_BYTES raises it",
        )


class InvalidEvidence(Refused):
    """The evidence does not prove what it says, or is of no use any more."""


class InvalidTransaction(Refused):
    """The bytes are no Ethereum transaction, or nobody signed it; the text is geth's."""


class QuerySyntaxError(Refused):
    """The text is no event query."""

    def __init__(self, reason: str, at: int) -> None:
        self.reason, self.at = reason, at
        super().__init__(f"offset {at}: {reason}")


class NotSupported(Refused):
    """This backend does not offer the role that the call needs."""


class MempoolFull(BackendError):
    """The mempool has reached its count or its bytes."""

    def __init__(self, txs: int, max_txs: int, size: int, max_bytes: int) -> None:
        self.txs, self.max_txs, self.size, self.max_bytes = txs, max_txs, size, max_bytes
        super().__init__(
            f"mempool is full: number of txs {txs} (max: {max_txs}),"
            f" total txs bytes {size} (max: {max_bytes})",
            "NODERPC_MEMPOOL_SIZE and NODERPC_MEMPOOL_BYTES raise it",
        )


class EvidencePoolFull(BackendError):
    """As much evidence waits as may."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"{limit} pieces of evidence wait for a block already")


class WaitTimedOut(BackendError):
    """What was waited for did not happen in time."""


class Busy(BackendError):
    """A cap of this server is reached; the message names its setting."""


class SearchTooCostly(BackendError):
    """The search needs more than one may take; never is a short list handed over instead."""

    @classmethod
    def by_rows(cls, rows: int) -> SearchTooCostly:
        """It would look at too much."""
        return cls(
            f"the search looks at more than {rows} rows: narrow it by height or by an equality"
            " (NODERPC_SEARCH_MAX_ROWS raises this)"
        )

    @classmethod
    def by_time(cls, seconds: float) -> SearchTooCostly:
        """It took too long, or waited too long for its turn."""
        return cls(
            f"the search was not done within {seconds:g} s: narrow it by height, by cursor or"
            " by an equality (NODERPC_SEARCH_TIMEOUT raises this)"
        )

    @classmethod
    def by_size(cls, size: int) -> SearchTooCostly:
        """What was found is too large for one answer."""
        return cls(
            f"the page is larger than {size} bytes: ask for a smaller per_page"
            " (NODERPC_MAX_RESPONSE_BYTES raises this)"
        )


class InvalidBlock(BackendError):
    """The block does not follow the chain or does not match its own hashes."""


class ExecutionFailed(BackendError):
    """Code was not run to its end, for no fault of its own."""


class ExecutorsBusy(ExecutionFailed):
    """All processes that run code have work, and enough waits already."""

    def __init__(self, count: int, hint: str = "") -> None:
        super().__init__(
            "too many calls are being executed", hint or f"NODERPC_EVM_EXECUTORS is {count}"
        )

    @classmethod
    def of_client(cls, most: int) -> ExecutorsBusy:
        """Enough of them are this client's."""
        return cls(most, f"NODERPC_MAX_WAITING_CALLS_PER_CLIENT is {most}")


class ExecutionTimedOut(ExecutionFailed):
    """The code took longer than it may; its process was killed."""

    def __init__(self) -> None:
        super().__init__("execution aborted", "NODERPC_EVM_TIMEOUT gives it more seconds")


class TraceStopped(ExecutionFailed):
    """A trace takes too long, or shows too much."""


class ExecutorDied(ExecutionFailed):
    """The process that ran the code was killed, or ran out of memory."""

    def __init__(self) -> None:
        super().__init__("the process that executed the call has ended")


class BlockNotExecuted(BackendError):
    """A proposed block was not executed to its end; the next proposal has less in it."""

    def __init__(self, height: int, txs: int, reason: str) -> None:
        super().__init__(f"block {height} with {txs} transactions was not executed: {reason}")


class LeaseLost(BackendError):
    """Another process produces blocks now."""


class ChainHalted(BackendError):
    """The keys of this home hold too little voting power to make a block."""


class NotReady(BackendError):
    """No blocks are made that should be."""


class StoreError(BackendError):
    """The store can't be opened, read or written; the message says what to do."""

    def __init__(self, reason: str, path: str | None = None) -> None:
        self.reason, self.path = reason, path
        super().__init__(reason if path is None else f"{path}: {reason}")


class RPCError(NodeRPCError):
    """A JSON-RPC error object; its ``data`` is the text, left out where there is none."""

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
        return f"{self.message}: {self.said}" if self.said else self.message


class ParseError(RPCError):
    """The body is not JSON."""

    code = -32700
    message = "Parse error. Invalid JSON"


class InvalidRequest(RPCError):
    """The body is JSON and no JSON-RPC request."""

    code = -32600
    message = "Invalid Request"


class BatchTooLarge(InvalidRequest):
    """The batch has more calls than one may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"batch request exceeds maximum ({limit}) allowed number of requests",
            "NODERPC_MAX_BATCH raises it",
        )


class BodyTooLarge(InvalidRequest):
    """The body is larger than one may be."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            "error reading request body: http: request body too large",
            f"it has more than {limit} bytes; NODERPC_MAX_BODY_BYTES raises it,"
            " MAX_CONTENT_LENGTH of the app lowers it",
        )


class BodyEncoded(InvalidRequest):
    """The body is compressed, which nobody here undoes."""


class MethodNotFound(RPCError):
    """No route of this name."""

    code = -32601
    message = "Method not found"


class InvalidParams(RPCError):
    """A parameter can't be read; the text names it."""

    code = -32602
    message = "Invalid params"


class InternalError(RPCError):
    """The call failed; the text says why where it may be shown."""


class CallFailed(InternalError):
    """The call failed for a reason that the caller is told."""


class BatchTimedOut(InternalError):
    """The calls of a batch have taken the time that they may take together."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the batch was not done within {seconds:g} s", "NODERPC_BATCH_TIMEOUT raises it"
        )


class AnswerTooLarge(InternalError):
    """The answers to a batch have reached the size that they may have together."""

    def __init__(self) -> None:
        super().__init__(
            "the answer to the batch is too large",
            "NODERPC_MAX_RESPONSE_BYTES raises it",
        )
