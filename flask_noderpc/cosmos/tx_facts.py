"""Transactions of Cosmos SDK chains in words, decoded from their bytes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from ..backends.base.backend import ChainBackend
from ..domain.abci import Event, ExecTxResult
from ..domain.facts import Fact, MessageFacts, Move, TxFacts, TxLine, in_words
from ..errors import NodeRPCError
from ..protocol.protobuf import Malformed, Message, fields
from .facts import amounts_of, denoms_of, is_coin, may_be_of_sdk, of_account
from .protocol.proto import MESSAGES
from .rest import gateway
from .rest.writer import write

_SHOWN_MESSAGES = _SHOWN_FIELDS = 100
_MAX_DEPTH = 8
_MAX_TEXT = 200
# Limits of a line: fields to read of a transaction and of its body, and the size of a message
# whose fields are read.
_LINE_PARTS, _LINE_MESSAGES, _LINE_BYTES = 64, 100, 4_096

# Fields with the account that a message is about, the most telling first.
_TARGETS = (
    *("to_address", "validator_dst_address", "validator_address", "recipient", "receiver"),
    *("grantee", "withdraw_address", "depositor"),
)
# Type of the messages of Ethermint and its forks, which the feature ``ethereum`` decodes.
_OF_ETHERMINT = ".MsgEthereumTx"
_FAILED = re.compile(r"failed to execute message; message index: \d+: ", re.ASCII)


class _Part(NamedTuple):
    """A message of a transaction: its type URL and its bytes."""

    url: str
    value: bytes


def tx_facts(
    backend: ChainBackend,
    query: gateway.Query,
    ask: Callable[..., Any] | None,
    tx: bytes,
    result: ExecTxResult | None,
) -> TxFacts | None:
    """Return a transaction with its messages decoded, ``None`` if it is not one of the SDK.
    ``query`` runs a query method at a height, like ``abci_query``."""
    if not may_be_of_sdk(backend):
        return None
    try:
        raw = Message(tx)
        body, info = Message(raw.blob(1)), Message(raw.blob(2))
        parts, fee = _parts(body), write("Fee", info.blob(2))
        sequences = [Message(each).integer(3) for each in info.blobs(1)]
    except Malformed:
        return None
    if not parts:
        return None
    given = [
        (each, _values(each))
        for each in parts[:_SHOWN_MESSAGES]
        if not each.url.endswith(_OF_ETHERMINT)
    ]
    coins = [*fee["amount"], *(coin for _, values in given for coin in _coins_in(values))]
    denoms = _denoms(query, coins)
    facts = [
        Fact("Fee", text) for text in islice(amounts_of(fee["amount"], denoms), _SHOWN_FIELDS)
    ]
    facts += [
        of_account(title, fee[name])
        for name, title in (("payer", "Fee paid by"), ("granter", "Fee granted by"))
        if fee[name]
    ]
    facts += list(islice(_signers(result), _SHOWN_FIELDS)) or [
        Fact("Sequence", str(each)) for each in sequences[:_SHOWN_FIELDS]
    ]
    facts += _other_facts(body, len(parts))
    return TxFacts(tuple(facts), tuple(_message(*each, denoms) for each in given))


def _other_facts(body: Message, count: int) -> Iterator[Fact]:
    if memo := body.blob(2):
        yield Fact("Memo", memo.decode(errors="replace"))
    if timeout := body.integer(3):
        yield Fact("Valid until block", str(timeout))
    if count > _SHOWN_MESSAGES:
        yield Fact("Messages", f"{count:,}; the first {_SHOWN_MESSAGES} follow")


def tx_line(tx: bytes, result: ExecTxResult | None) -> TxLine | None:
    """Return the messages of a transaction in words, why it failed, and what it moved; ``None``
    if it is not one of the SDK."""
    moves = _moves(result.events) if result else ()
    try:
        raw = Message(tx, _LINE_PARTS)
        parts = _parts(Message(raw.blob(1), _LINE_MESSAGES + 1))
    except Malformed:
        parts = []
    if not parts:
        return TxLine(moves=moves) if moves else None
    failure = _FAILED.sub("", result.log, count=1) if result and result.code else ""
    return TxLine(_line(parts), failure, moves)


def _line(parts: list[_Part]) -> str:
    if len(parts) == 1:
        return ", ".join(_described(parts[0]))
    counts = Counter(in_words(each.url) for each in parts[:_LINE_MESSAGES])
    names = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    more = ("and more",) if len(parts) > _LINE_MESSAGES else ()
    return ", ".join((*names, *more))


def _described(part: _Part) -> Iterator[str]:
    """Yield the name of a message, and what tells most of it: amounts, the other account, and
    the proposal of a vote."""
    yield in_words(part.url)
    if len(part.value) > _LINE_BYTES or not _is_known(part.url):
        return
    values = _values(part)
    if inner := [each for each in values.get("msgs", ()) if isinstance(each, dict)]:
        yield ", ".join(in_words(str(each.get("@type"))) for each in inner)
        return
    amount = ", ".join(f"{each['amount']}{each['denom']}" for each in _coins_in(values))
    target = next((_short(values[name]) for name in _TARGETS if values.get(name)), "")
    if amount or target:
        yield " to ".join(filter(None, (amount, target)))
    if proposal := values.get("proposal_id"):
        yield f"proposal {proposal}"
    if isinstance(option := values.get("option"), str):
        yield option.removeprefix("VOTE_OPTION_").lower()


def _short(address: Any) -> str:
    prefix, mark, data = str(address).partition("1")
    return f"{prefix}{mark}{data[:4]}…{data[-4:]}" if len(data) > 12 else str(address)


def _moves(events: Iterable[Event]) -> tuple[Move, ...]:
    """Return the transfers in the events of a transaction, without its fee."""
    found: list[Move] = []
    for event in events:
        if event.type not in ("tx", "transfer"):
            continue
        own = {each.key: each.value.decode(errors="replace") for each in event.attributes}
        if event.type == "transfer" and own.get(b"amount"):
            sender, recipient = own.get(b"sender", ""), own.get(b"recipient", "")
            found.append(Move(sender, recipient, own[b"amount"][:_MAX_TEXT]))
        elif b"fee" in own:
            # The SDK reports the fee after the transfer that pays it, before the messages.
            found.clear()
    return tuple(found)


def _parts(body: Message) -> list[_Part]:
    """Return the messages of a transaction's body; raise
    :exc:`~flask_noderpc.protocol.protobuf.Malformed` if one is not an ``Any``."""
    found = []
    for each in map(Message, body.blobs(1)):
        if not each.text(1).startswith("/"):
            raise Malformed("expected the URL of a type")
        found.append(_Part(each.text(1), each.blob(2)))
    return found


def _signers(result: ExecTxResult | None) -> Iterator[Fact]:
    """Yield the signers, which the SDK reports in the events of a transaction."""
    for event in result.events if result else ():
        for each in event.attributes if event.type == "tx" else ():
            if each.key == b"acc_seq":
                address, _, sequence = each.value.decode(errors="replace").rpartition("/")
                yield of_account("Signed by", address)
                yield Fact("Sequence", sequence)


def _denoms(query: gateway.Query, coins: list[Any]) -> Mapping[str, tuple[str, int]]:
    try:
        return denoms_of(query, coins)
    except NodeRPCError:
        # Show amounts in the smallest unit if the reader may not query the application.
        return {}


def _is_known(url: str) -> bool:
    return "." in url and url.removeprefix("/") in MESSAGES


def _values(part: _Part) -> dict[str, Any]:
    """Return the fields of a message by name; by number if its type is unknown."""
    try:
        if _is_known(part.url):
            return write(part.url.removeprefix("/"), part.value)
    except Malformed:
        pass
    return _numbered(part.value, _MAX_DEPTH)


def _message(
    part: _Part, values: dict[str, Any], denoms: Mapping[str, tuple[str, int]]
) -> MessageFacts:
    facts = (fact for name, value in values.items() for fact in _fact(name, value, denoms))
    return MessageFacts(in_words(part.url), part.url, tuple(islice(facts, _SHOWN_FIELDS)))


def _fact(name: str, value: Any, denoms: Mapping[str, tuple[str, int]]) -> Iterator[Fact]:
    title = name.replace("_", " ").capitalize()
    if value in (None, "", [], {}):
        return
    coins = value if isinstance(value, list) else [value]
    if all(is_coin(each) for each in coins):
        yield Fact(title, ", ".join(amounts_of(coins, denoms)))
    elif isinstance(value, str):
        yield of_account(title, value)
    else:
        yield Fact(title, json.dumps(value, ensure_ascii=False))


def _coins_in(values: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    for value in values.values():
        yield from filter(is_coin, value if isinstance(value, list) else [value])


def _numbered(data: bytes, depth: int) -> dict[str, Any]:
    """Return the fields of an unknown message by their numbers."""
    found: dict[str, Any] = {}
    try:
        for number, value in fields(data):
            shown = value if isinstance(value, int) else _unknown(value, depth - 1)
            name = f"field {number}"
            if name not in found:
                found[name] = shown
            elif isinstance(found[name], list):
                found[name].append(shown)
            else:
                found[name] = [found[name], shown]
    except Malformed:
        return {"bytes": data.hex()}
    return found


def _unknown(value: bytes, depth: int) -> Any:
    """Return bytes of an unknown type as text, as a message, or in hex digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not value):
        return text
    nested = _numbered(value, depth) if depth > 0 else {"bytes": value.hex()}
    return value.hex() if "bytes" in nested else nested
