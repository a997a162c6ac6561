"""Results of ``abci_query``: query methods of the SDK's modules, and keys of its stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....backends.base.application import AppState
from ....domain.abci import QueryResult
from ....protocol.protobuf import Malformed, Message
from ...protocol.proto import MESSAGES
from ...services import METHODS as NODE_METHODS
from ..context import Environment
from ..errors import (
    INVALID_HEIGHT,
    INVALID_REQUEST,
    NOT_FOUND,
    PANIC,
    QUERY_DECODE,
    UNKNOWN_REQUEST,
    Panic,
    TxError,
)
from ..module import Module
from ..state import ACCOUNTS, BANK, Head, PastState, find_head, head, is_retained
from . import auth, bank, reflection, tx
from .request import Method, Node, QueryContext

__all__ = ["Node", "Query", "answer"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a client."""

    path: str
    data: bytes
    height: int
    prove: bool


def _of(module: str, methods: dict[str, Method]) -> dict[str, Method]:
    return {f"/cosmos.{module}.v1beta1.Query/{name}": each for name, each in methods.items()}


def _config(ctx: QueryContext) -> bytes:
    # The SDK returns zeros for its default pruning, although that retains heights.
    return MESSAGES.encode(
        "node.ConfigResponse",
        minimum_gas_price=ctx.node.min_gas_prices,
        pruning_keep_recent="0",
        pruning_interval="0",
    )


def _query_services(ctx: QueryContext) -> bytes:
    return reflection.query_services((*of_modules(ctx.environment.modules), *NODE_METHODS))


METHODS: dict[str, Method] = {
    **_of("auth", auth.METHODS),
    **_of("bank", bank.METHODS),
    # The node handles the other methods of these services, which read blocks and their index.
    "/cosmos.base.node.v1beta1.Service/Config": _config,
    **{f"/cosmos.base.reflection.{name}": each for name, each in reflection.METHODS.items()},
    "/cosmos.base.reflection.v2alpha1.ReflectionService/GetQueryServicesDescriptor": (
        _query_services
    ),
    **{f"/cosmos.tx.v1beta1.Service/{name}": each for name, each in tx.METHODS.items()},
}
"""Query methods by path."""

STORES = {"acc": ACCOUNTS, "bank": BANK}
"""Key prefixes of stores by name; the store of a module has the module's name."""


def of_modules(modules: Iterable[Module]) -> Mapping[str, Method]:
    """Return the query methods of a chain with these modules, by path."""
    return METHODS | {
        path: method for module in modules for path, method in module.methods().items()
    }


def answer(
    state: AppState,
    modules: tuple[Module, ...],
    asked: Query,
    node: Node,
) -> QueryResult:
    """Return the result of a query: a query method, or a key of a store."""
    latest, at = head(state), 0
    method = of_modules(modules).get(asked.path)
    try:
        store = _store(asked.path, modules)
        if store is not None:
            return _stored(state, latest, store, asked)
        at = _height(state, latest, asked.height, asked.prove)
        if method is None:
            text = "unknown query path" if asked.path else "no query path provided"
            raise TxError(UNKNOWN_REQUEST, text)
        past = PastState(state, at)
        then = find_head(past.get) or latest
        environment = Environment(then, at, then.time, modules)
        value = method(QueryContext(Message(asked.data), past, environment, node))
        now = head(state)
        if now != latest:
            # The state of this height may have been removed during the query, as blocks were
            # committed or reverted; check again.
            _height(state, now, at, asked.prove)
        return QueryResult(key=None, value=value, height=at)
    except Malformed:
        failed = TxError(INVALID_REQUEST, "unexpected EOF")
    except TxError as error:
        failed = error
    except (ArithmeticError, Panic) as error:
        failed = TxError(PANIC, str(error))
    # SDK: a query that panics has no height.
    return refusal(failed, at if method and failed.code is not PANIC else 0)


def _store(path: str, modules: Iterable[Module]) -> bytes | None:
    """Return the key prefix of the store that a path such as ``/store/bank/key`` names."""
    start, _, rest = path.removeprefix("/").partition("/")
    name, _, kind = rest.partition("/")
    if not path.startswith("/store/") or kind != "key" or start != "store":
        return None
    own = {module.name: f"{module.name}/".encode() for module in modules}
    return (STORES | own).get(name)


def refusal(error: TxError, height: int) -> QueryResult:
    """Return the query result that reports an error."""
    return QueryResult(
        code=error.code.code,
        log=error.log,
        codespace=error.code.codespace,
        key=None,
        height=height,
    )


def _stored(state: AppState, latest: Head, store: bytes, asked: Query) -> QueryResult:
    current = latest.height or latest.initial_height
    at = asked.height or current
    _check_proof(at, asked.prove)
    if not asked.data:
        raise TxError(QUERY_DECODE, "query cannot be zero length")
    if not 0 < at <= current or not _is_known(state, latest, at):
        return QueryResult(key=asked.data, log="version does not exist", height=at)
    value = PastState(state, at).get(store + asked.data)
    return QueryResult(key=asked.data, value=value or b"", height=at)


def _height(state: AppState, latest: Head, height: int, prove: bool) -> int:
    # Queries also work before the first block, unlike in the SDK, so that clients can send a
    # first transaction.
    current = latest.height or latest.initial_height
    if not 0 <= height <= current:
        wrong = "< 0" if height < 0 else "in the future"
        text = f"cannot query with height {wrong}; please provide a valid height"
        raise TxError(INVALID_HEIGHT if height > 0 else INVALID_REQUEST, text)
    at = height or current
    _check_proof(at, prove)
    if not _is_known(state, latest, at):
        raise TxError(
            NOT_FOUND,
            f"failed to load state at height {at}; version does not exist (latest height:"
            f" {current})",
        )
    return at


def _check_proof(height: int, prove: bool) -> None:
    if prove and height <= 1:
        text = "cannot query with proof when height <= 1; please provide a valid height"
        raise TxError(INVALID_REQUEST, text)


def _is_known(state: AppState, latest: Head, height: int) -> bool:
    current = latest.height or latest.initial_height
    return height == current or is_retained(state, latest, height)
