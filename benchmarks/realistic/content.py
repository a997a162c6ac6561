"""Transactions and results of one height, equal in each process that makes them.

A transaction is random bytes; its events are the events of a Cosmos SDK's MsgSend and its fee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import cycle, islice
from random import Random

from flask_noderpc.domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from flask_noderpc.domain.validator import ValidatorUpdate
from flask_noderpc.protocol.comet.keys import PrivateKey

_ACCOUNTS = 20_000
# The letters of bech32.
_LETTERS = "023456789acdefghjklmnpqrstuvwxyz"

# Events of the Cosmos SDK 0.50, in their order: of the ante handler's fee, of the message, of
# its rewards.
_SEND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("coin_spent", ("spender", "amount")),
    ("coin_received", ("receiver", "amount")),
    ("transfer", ("recipient", "sender", "amount")),
    ("message", ("sender",)),
    ("tx", ("fee", "fee_payer")),
    ("tx", ("acc_seq",)),
    ("tx", ("signature",)),
    ("message", ("action", "sender", "module", "msg_index")),
    ("coin_spent", ("spender", "amount", "msg_index")),
    ("coin_received", ("receiver", "amount", "msg_index")),
    ("transfer", ("recipient", "sender", "amount", "msg_index")),
    ("message", ("sender", "msg_index")),
    ("coin_spent", ("spender", "amount")),
    ("coin_received", ("receiver", "amount")),
    ("withdraw_rewards", ("amount", "validator", "delegator", "msg_index")),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of each block of a chain."""

    name: str
    validators: int = 180
    txs: int = 10
    tx_bytes: int = 1_000
    attributes: int = 36
    """Attributes of each transaction."""

    def key(self, index: int) -> PrivateKey:
        """Return the key of a validator."""
        return PrivateKey(sha256(b"%s validator %d" % (self.name.encode(), index)).digest())


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("busy"),
        Shape("usual", validators=100, txs=20, tx_bytes=400, attributes=12),
        Shape("dense", txs=2_000, tx_bytes=250, attributes=36),
        Shape("idle", txs=0),
        Shape("small", validators=4, tx_bytes=250, attributes=10),
    )
}
# One validator's power changes at each multiple of this height.
_UPDATE_EVERY = 50


@dataclass(frozen=True, slots=True)
class Content:
    """Transactions of a block, and their results."""

    txs: tuple[bytes, ...]
    results: BlockResults


def content(shape: Shape, height: int) -> Content:
    """Make the content of a height."""
    random = Random(f"{shape.name} {height}")
    txs = tuple(
        b"%d/%d:" % (height, index) + random.randbytes(shape.tx_bytes - 20)
        for index in range(shape.txs)
    )
    results = BlockResults(
        height,
        tuple(_result(shape, random) for _ in txs),
        validator_updates=_updates(shape, height, random),
        app_hash=sha256(b"state %d" % height).digest(),
    )
    return Content(txs, results)


def powers(shape: Shape) -> list[int]:
    """Return the validators' powers at the start: few have much, as on a main network."""
    return [1_000 + 30_000_000 // (index + 3) for index in range(shape.validators)]


def _updates(shape: Shape, height: int, random: Random) -> tuple[ValidatorUpdate, ...]:
    if height % _UPDATE_EVERY:
        return ()
    index = random.randrange(shape.validators)
    power = powers(shape)[index] + random.randrange(1_000)
    return (ValidatorUpdate(shape.key(index).public, power),)


def _result(shape: Shape, random: Random) -> ExecTxResult:
    return ExecTxResult(
        data=b"\x12\x26\n$/cosmos.bank.v1beta1.MsgSendResponse",
        gas_wanted=200_000,
        gas_used=random.randrange(60_000, 120_000),
        events=tuple(events_of(shape.attributes, random)),
    )


def events_of(count: int, random: Random) -> Iterator[Event]:
    """Yield the events of a MsgSend, again and again, until they have ``count`` attributes."""
    values = _values(random)
    for kind, keys in cycle(_SEND):
        if count <= 0:
            return
        yield Event(
            kind,
            tuple(
                EventAttribute(key.encode(), values[key].encode())
                for key in islice(keys, count)
            ),
        )
        count -= len(keys)


def _values(random: Random) -> dict[str, str]:
    sender, receiver = _account(random.randrange(_ACCOUNTS)), _account(random.randrange(50))
    amount = f"{random.randrange(1, 10**9)}uatom"
    return {
        "spender": sender,
        "receiver": receiver,
        "recipient": receiver,
        "sender": sender,
        "amount": amount,
        "fee": f"{random.randrange(500, 5_000)}uatom",
        "fee_payer": sender,
        "acc_seq": f"{sender}/{random.randrange(10_000)}",
        "signature": random.randbytes(43).hex(),
        "action": "/cosmos.bank.v1beta1.MsgSend",
        "module": "bank",
        "msg_index": "0",
        "validator": _account(random.randrange(180)).replace("cosmos", "cosmosvaloper"),
        "delegator": sender,
    }


@lru_cache(maxsize=_ACCOUNTS)
def _account(number: int) -> str:
    digest = sha256(b"account %d" % number).digest()
    return "cosmos1" + "".join(_LETTERS[byte & 31] for byte in (digest + digest)[:38])
