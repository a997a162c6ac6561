"""Answers to ``abci_query``: methods of the SDK's modules, and keys of its stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ....backends.base.application import AppState
from ....domain.abci import Event, ExecTxResult, QueryResult
from ....protocol.cosmos.coins import Coin, InvalidCoins, check_denom
from ....protocol.protobuf import Malformed, Message, blob, integer, message, string
from .balances import METADATA, PARAMS, SUPPLY, balance_key
from .context import Codec
from .errors import (
    INTERNAL,
    INVALID_HEIGHT,
    INVALID_REQUEST,
    KEY_NOT_FOUND,
    UNKNOWN_REQUEST,
    Code,
    TxError,
)
from .state import ACCOUNTS, BANK, Get, Head, head, is_retained, range_at, read_at

_PAGE = 100


class _Refused(TxError):
    """An error of gRPC."""

    def __init__(self, code: Code, name: str, text: str) -> None:
        super().__init__(code, f"rpc error: code = {name} desc = {text}")


def _invalid(text: str) -> _Refused:
    return _Refused(INVALID_REQUEST, "InvalidArgument", text)


def _not_found(text: str) -> _Refused:
    return _Refused(KEY_NOT_FOUND, "NotFound", text)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the state that it is about."""

    request: Message
    state: AppState
    codec: Codec
    height: int
    get: Get
    simulate: Callable[[bytes], ExecTxResult]

    def address(self, number: int) -> bytes:
        """Return an address of the request; raise :exc:`TxError`."""
        try:
            return self.codec.parse(self.request.text(number))
        except TxError as error:
            raise _invalid(f"invalid address: {error.log}") from None

    def owner(self) -> bytes:
        """Return the address of the account that is asked for; raise :exc:`TxError`."""
        try:
            return self.codec.parse(self.request.text(1))
        except TxError as error:
            # The SDK's own errors are others to gRPC.
            code = INVALID_REQUEST if error.code is INTERNAL else UNKNOWN_REQUEST
            raise TxError(code, error.log) from None

    def range(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs whose keys begin with a prefix, without it."""
        for key, value in range_at(self.state, self.height, prefix):
            yield key[len(prefix) :], value


def _account(asked: Asked) -> bytes:
    text = asked.request.text(1)
    if not text:
        raise _invalid("Address cannot be empty")
    stored = asked.get(ACCOUNTS + b"\1" + asked.owner())
    if stored is None:
        raise _not_found(f"account {text} not found")
    return message(1, stored)


def _auth_params(asked: Asked) -> bytes:
    return message(1, asked.get(ACCOUNTS + b"\0") or b"")


def _denom(asked: Asked, number: int) -> str:
    denom = asked.request.text(number)
    try:
        check_denom(denom)
    except InvalidCoins as error:
        raise _invalid(str(error)) from None
    return denom


def _balance(asked: Asked) -> bytes:
    denom = _denom(asked, 2)
    address = asked.address(1)
    amount = asked.get(BANK + balance_key(address, denom))
    return message(1, Coin(denom, int(amount or b"0")).encode())


def _all_balances(asked: Asked) -> bytes:
    address = asked.address(1)
    return _page(asked, BANK + balance_key(address))


def _supply(asked: Asked) -> bytes:
    return _page(asked, BANK + SUPPLY, page=1)


def _supply_of(asked: Asked) -> bytes:
    denom = _denom(asked, 1)
    amount = asked.get(BANK + SUPPLY + denom.encode())
    return message(1, Coin(denom, int(amount or b"0")).encode())


def _page(asked: Asked, prefix: bytes, page: int = 2) -> bytes:
    """Return a page of coins, whose request is a field of this number."""
    given = Message(asked.request.blob(page))
    key, offset, limit = given.blob(1), given.integer(2), given.integer(3)
    if key and offset:
        text = "invalid request, either offset or key is expected, got both"
        if page == 1:
            raise _Refused(UNKNOWN_REQUEST, "Internal", text)
        raise _invalid(f"paginate: {text}")
    counts = bool(given.integer(4)) or not limit
    pairs = list(asked.range(prefix))
    if given.integer(5):
        pairs.reverse()
    if key:
        offset = next((at for at, pair in enumerate(pairs) if pair[0] == key), len(pairs))
        counts = False
    counts &= offset < len(pairs) or not offset
    end = offset + (limit or _PAGE)
    coins = (Coin(denom.decode(), int(amount)) for denom, amount in pairs[offset:end])
    found = b"".join(message(1, coin.encode()) for coin in coins)
    following = blob(1, pairs[end][0]) if end < len(pairs) else b""
    return found + message(2, following + integer(2, len(pairs) if counts else 0))


def _metadata(asked: Asked) -> bytes:
    denom = _denom(asked, 1)
    stored = asked.get(BANK + METADATA + denom.encode())
    if stored is None:
        raise _not_found(f"client metadata for denom {denom}")
    return message(1, stored)


def _bank_params(asked: Asked) -> bytes:
    return message(1, asked.get(BANK + PARAMS) or b"")


def _simulate(asked: Asked) -> bytes:
    tx = asked.request.blob(2)
    if not tx:
        raise _invalid("empty txBytes is not allowed")
    result = asked.simulate(tx)
    if result.code:
        text = f"{result.log} with gas used: '{result.gas_used}'"
        raise _Refused(UNKNOWN_REQUEST, "Unknown", text)
    # The gas meter of a simulation has no limit.
    gas = integer(1, (1 << 64) - 1) + integer(2, result.gas_used)
    events = b"".join(message(3, _event(each)) for each in result.events)
    responses = b"".join(message(4, each) for each in Message(result.data).blobs(2))
    return message(1, gas) + message(2, blob(1, result.data) + events + responses)


def _event(given: Event) -> bytes:
    attributes = b"".join(
        message(2, blob(1, each.key) + blob(2, each.value)) for each in given.attributes
    )
    return string(1, given.type) + attributes


METHODS: dict[str, Callable[[Asked], bytes]] = {
    "/cosmos.auth.v1beta1.Query/Account": _account,
    "/cosmos.auth.v1beta1.Query/Params": _auth_params,
    "/cosmos.bank.v1beta1.Query/Balance": _balance,
    "/cosmos.bank.v1beta1.Query/AllBalances": _all_balances,
    "/cosmos.bank.v1beta1.Query/SpendableBalances": _all_balances,
    "/cosmos.bank.v1beta1.Query/TotalSupply": _supply,
    "/cosmos.bank.v1beta1.Query/SupplyOf": _supply_of,
    "/cosmos.bank.v1beta1.Query/DenomMetadata": _metadata,
    "/cosmos.bank.v1beta1.Query/Params": _bank_params,
    "/cosmos.tx.v1beta1.Service/Simulate": _simulate,
}
"""Answers by path."""

STORES = {"/store/acc/key": ACCOUNTS, "/store/bank/key": BANK}
"""Beginnings of the keys of the stores by path."""


def answer(
    state: AppState,
    path: str,
    data: bytes,
    height: int,
    simulate: Callable[[bytes], ExecTxResult],
) -> QueryResult:
    """Return the answer of a method or of a store."""
    latest, at = head(state), 0
    try:
        at = _height(state, latest, height)
        if path in STORES:
            value = read_at(state, at)(STORES[path] + data)
            return QueryResult(key=data, value=value or b"", height=at)
        if path not in METHODS:
            raise TxError(UNKNOWN_REQUEST, "unknown query path")
        get, codec = read_at(state, at), Codec(latest.prefix)
        asked = Asked(Message(data), state, codec, at, get, simulate)
        return QueryResult(key=None, value=METHODS[path](asked), height=at)
    except Malformed:
        failed = TxError(INVALID_REQUEST, "unexpected EOF")
    except TxError as error:
        failed = error
    return QueryResult(
        code=failed.code.code,
        log=failed.log,
        codespace=failed.code.codespace,
        key=None,
        height=at if path in METHODS else 0,
    )


def _height(state: AppState, latest: Head, height: int) -> int:
    # The SDK is not ready before the first block; here clients can begin with a transaction.
    current = latest.height or latest.initial_height
    if not 0 <= height <= current:
        wrong = "< 0" if height < 0 else "in the future"
        text = f"cannot query with height {wrong}; please provide a valid height"
        raise TxError(INVALID_HEIGHT if height > 0 else INVALID_REQUEST, text)
    at = height or current
    if at != current and not is_retained(state, latest, at):
        raise TxError(
            INVALID_REQUEST,
            f"failed to load state at height {at}; version does not exist (latest height:"
            f" {current})",
        )
    return at
