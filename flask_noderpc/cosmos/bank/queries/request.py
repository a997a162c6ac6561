"""Context of a query: the request's fields, the state, and gRPC errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....domain.abci import ExecTxResult
from ....protocol.protobuf import Message
from ...protocol.coins import InvalidCoins, check_denom
from ..context import Codec, Context, Environment
from ..errors import INTERNAL, INVALID_REQUEST, KEY_NOT_FOUND, UNKNOWN_REQUEST, Code, TxError
from ..state import Branch, PastState

if TYPE_CHECKING:
    from ..messages import Registry


class GrpcError(TxError):
    """Error with a gRPC code, in the SDK's text; ``text`` is without the text of the code."""

    def __init__(self, code: Code, name: str, text: str) -> None:
        self.text = f"rpc error: code = {name} desc = {text}"
        super().__init__(code, self.text)


def invalid(text: str) -> GrpcError:
    """Return gRPC's error for an invalid request."""
    return GrpcError(INVALID_REQUEST, "InvalidArgument", text)


def not_found(text: str) -> GrpcError:
    """Return gRPC's error for a missing value."""
    return GrpcError(KEY_NOT_FOUND, "NotFound", text)


def internal(text: str) -> GrpcError:
    """Return gRPC's error ``Internal``."""
    return GrpcError(UNKNOWN_REQUEST, "Internal", text)


def coded(error: TxError) -> TxError:
    """Return the error of a query that failed with an error of a keeper: errors with a code are
    unknown requests in the SDK, others are invalid ones."""
    code = INVALID_REQUEST if error.code is INTERNAL else UNKNOWN_REQUEST
    return TxError(code, error.log)


@dataclass(frozen=True, slots=True)
class Node:
    """Parts of the application that queries need in addition to the state."""

    simulate: Callable[[bytes], ExecTxResult]
    min_gas_prices: str
    """Minimum gas prices as the SDK shows them, such as ``0.025000000000000000stake``."""
    messages: Registry


@dataclass(frozen=True, slots=True)
class QueryContext:
    """A query's request, and the state at the height that it reads."""

    request: Message
    state: PastState
    environment: Environment
    node: Node

    @property
    def codec(self) -> Codec:
        """Codec of the chain's addresses."""
        return self.environment.codec

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or ``None``."""
        return self.state.get(key)

    def context(self) -> Context:
        """Return a context for the classes that read a module's state; its writes are
        dropped."""
        return Context(Branch(self.state), self.environment)

    def address(self, number: int) -> bytes:
        """Return the address in field ``number`` of the request; raise :exc:`TxError`."""
        try:
            return self.codec.parse(self.request.text(number))
        except TxError as error:
            raise invalid(f"invalid address: {error.log}") from None

    def owner(self, codec: Codec | None = None, number: int = 1) -> bytes:
        """Return the address in field ``number``, of an account or with another codec; raise
        :exc:`TxError`."""
        try:
            return (codec or self.codec).parse(self.request.text(number))
        except TxError as error:
            raise coded(error) from None

    def denom(self, number: int) -> str:
        """Return the denomination in field ``number`` of the request; raise :exc:`TxError`."""
        denom = self.request.text(number)
        try:
            check_denom(denom)
        except InvalidCoins as error:
            raise invalid(str(error)) from None
        return denom

    def range(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs whose keys begin with a prefix, with the prefix removed."""
        for key, value in self.state.pairs(prefix):
            yield key[len(prefix) :], value


Method = Callable[[QueryContext], bytes]
"""A function that returns the encoded response of a query method, or raises :exc:`TxError`."""
