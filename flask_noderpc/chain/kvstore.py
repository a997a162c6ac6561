"""CometBFT's example application: ``key=value`` transactions (0.38 semantics)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import cast

from ..backend.application import Application, AppState, BlockExecution, BlockRequest, InitChain
from ..canonical import messages, validators
from ..canonical.protobuf import delimited, integer, message, varint
from ..domain.abci import AppInfo, Event, EventAttribute, QueryResult, TxResult
from ..domain.block import LightClientAttackEvidence
from ..domain.genesis import Genesis
from ..domain.validator import ED25519, PublicKey, ValidatorSet, ValidatorUpdate

# CometBFT 0.38: kvstore/code.go.
CODE_INVALID_FORMAT = 2
CODE_UNAUTHORIZED = 3

_VALIDATOR_TX = b"val="
_PAIR = b"pair:"
_VALIDATOR = b"validator:"
_SIZE, _HEIGHT = b"size", b"height"


class KVStore(Application):
    """Keeps pairs, counts transactions, and changes validators.

    ``val=ed25519!BASE64KEY!POWER`` sets a validator's power. Where a real node's
    application would stop its chain (the removal of a stranger or of the last
    validator), the transaction fails with code 3 instead.
    """

    # A transaction's form does not depend on the state.
    rechecks = False

    def __init__(self, state: AppState) -> None:
        self._state = state

    def info(self) -> AppInfo:
        size, height = self._number(_SIZE), self._number(_HEIGHT)
        return AppInfo(
            data=f'{{"size":{size}}}',
            # CometBFT 0.38: the ABCI protocol's version, and the kvstore's own.
            version="2.0.0",
            app_version=1,
            last_block_height=height,
            last_block_app_hash=_app_hash(size),
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        changes = dict(
            _validator_record(ValidatorUpdate(v.pub_key, v.power)) for v in genesis.validators
        )
        return InitChain(app_hash=_app_hash(0), changes=changes)

    def check_tx(self, tx: bytes) -> TxResult:
        if tx.startswith(_VALIDATOR_TX):
            valid = _parse_validator_tx(tx) is not None
        else:
            valid = _is_pair(tx)
        return TxResult(gas_wanted=1) if valid else TxResult(code=CODE_INVALID_FORMAT)

    def prepare_proposal(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        return tuple(tx.replace(b":", b"=", 1) for tx in txs if self.check_tx(tx).code == 0)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        members = _Members(block.next_validators)
        for update in _punishments(block):
            members.refusal(update)
        changes: dict[bytes, bytes | None] = {}
        results = []
        for tx in block.txs:
            code, log = _deliver(tx, members, changes)
            results.append(TxResult(code=code, log=log, events=_events(tx)))
        size = self._number(_SIZE) + len(block.txs)
        changes |= dict(_validator_record(update) for update in members.updates.values())
        changes[_SIZE], changes[_HEIGHT] = str(size).encode(), str(block.height).encode()
        return BlockExecution(
            tx_results=tuple(results),
            app_hash=_app_hash(size),
            validator_updates=tuple(members.updates.values()),
            changes=changes,
        )

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        if path == "/val":
            return QueryResult(key=data, value=self._state.get(_VALIDATOR + data) or b"")
        value = self._state.get(_PAIR + data)
        return QueryResult(
            log="does not exist" if value is None else "exists",
            # CometBFT 0.38: a proof is asked for with -1 and never given.
            index=-1 if prove else 0,
            key=data,
            value=value or b"",
            height=self._number(_HEIGHT),
        )

    def _number(self, key: bytes) -> int:
        return int(self._state.get(key) or b"0")


class _Members:
    """The voting powers as a block changes them, one update after another."""

    def __init__(self, members: ValidatorSet) -> None:
        self._before = {v.pub_key for v in members.validators}
        self._powers = {v.pub_key: v.voting_power for v in members.validators}
        self._total = members.total_power
        self.updates: dict[PublicKey, ValidatorUpdate] = {}

    def refusal(self, update: ValidatorUpdate) -> str | None:
        """Why the set can't take an update; ``None`` when it has taken it."""
        known = self._powers.get(update.pub_key, 0)
        total = self._total - known + update.power
        if not known and not update.power:
            return "a validator that is not in the set can't be removed"
        if not 0 < total <= validators.MAX_TOTAL_POWER:
            return f"the total voting power can't be {total}"
        self._total, self._powers[update.pub_key] = total, update.power
        self.updates[update.pub_key] = update
        if not update.power and update.pub_key not in self._before:
            # It came and went in one block.
            del self.updates[update.pub_key]
        return None


def _deliver(
    tx: bytes, members: _Members, changes: dict[bytes, bytes | None]
) -> tuple[int, str]:
    """Code and log of a transaction, whose effect is in ``members`` or ``changes`` then."""
    if not tx.startswith(_VALIDATOR_TX):
        key, _, value = tx.partition(b"=")
        changes[_PAIR + key] = value
        return 0, ""
    update = _parse_validator_tx(tx)
    if update is None:
        return CODE_INVALID_FORMAT, "not a validator update"
    refusal = members.refusal(update)
    return (0, "") if refusal is None else (CODE_UNAUTHORIZED, refusal)


def _is_pair(tx: bytes) -> bool:
    marks = (tx.count(b"="), tx.count(b":"))
    if marks not in ((1, 0), (0, 1)):
        return False
    mark = b"=" if marks[0] else b":"
    return not tx.startswith(mark) and not tx.endswith(mark)


def _parse_validator_tx(tx: bytes) -> ValidatorUpdate | None:
    fields = tx[len(_VALIDATOR_TX) :].split(b"!")
    if len(fields) != 3:
        return None
    kind, encoded, power = fields
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    # A real node takes other keys here and stops when the block is applied.
    if kind != ED25519.encode() or len(key) != 32:
        return None
    if not power.isdigit() or len(power) > 19 or int(power) > validators.MAX_TOTAL_POWER:
        return None
    return ValidatorUpdate(PublicKey(ED25519, key), int(power))


def _punishments(block: BlockRequest) -> Iterator[ValidatorUpdate]:
    """One power less for whoever voted twice and is still in the set."""
    for piece in block.evidence:
        # CometBFT 0.38: attacks on light clients go unpunished by the kvstore.
        if isinstance(piece, LightClientAttackEvidence):
            continue
        found = block.next_validators.by_address.get(piece.vote_a.validator_address)
        if found is not None and piece.validator_power > 1:
            yield ValidatorUpdate(found[1].pub_key, piece.validator_power - 1)


def _validator_record(update: ValidatorUpdate) -> tuple[bytes, bytes | None]:
    key = _VALIDATOR + update.pub_key.value
    if update.power == 0:
        return key, None
    body = message(1, messages.public_key(update.pub_key)) + integer(2, update.power)
    return key, delimited(body)


def _app_hash(size: int) -> bytes:
    # CometBFT: Go's PutVarint, zig-zag, into eight bytes.
    return varint(size << 1).ljust(8, b"\x00")


def _events(tx: bytes) -> tuple[Event, ...]:
    parts = tx.split(b"=")
    # CometBFT 0.38: a validator's base64 brings more equal signs, then both are the tx.
    key, value = cast(tuple[bytes, bytes], parts if len(parts) == 2 else (tx, tx))
    return (_event(b"Cosmoshi Netowoko", key), _event(b"Cosmoshi", value))


def _event(creator: bytes, key: bytes) -> Event:
    return Event(
        "app",
        (
            EventAttribute(b"creator", creator),
            EventAttribute(b"key", key),
            EventAttribute(b"index_key", b"index is working"),
            EventAttribute(b"noindex_key", b"index is working", index=False),
        ),
    )
