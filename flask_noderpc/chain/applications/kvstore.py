"""CometBFT's example application: transactions ``key=value``, and
``val=ed25519!BASE64KEY!POWER`` to change the validator set. It behaves like CometBFT
0.38's."""

from __future__ import annotations

import base64
import binascii
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from ...backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockLimits,
    BlockRequest,
    Changes,
    InitChain,
)
from ...domain.abci import AppInfo, Event, EventAttribute, ExecTxResult, QueryResult
from ...domain.block import LightClientAttackEvidence
from ...domain.genesis import Genesis
from ...domain.validator import ED25519, PublicKey, ValidatorSet, ValidatorUpdate
from ...errors import ConfigurationError, StoreError
from ...protocol.comet import messages, validators
from ...protocol.protobuf import delimited, varint

_UPDATE = b"val="
# Syntax of Go's ParseInt, which accepts a sign and leading zeros.
_INTEGER = re.compile(rb"[+-]?[0-9]+")


class VotingPowers:
    """Voting powers of the validators while a block is executed; each update changes them."""

    def __init__(self, members: ValidatorSet) -> None:
        self._before = {v.pub_key for v in members.validators}
        self._powers = {v.pub_key: v.voting_power for v in members.validators}
        self._total = members.total_power
        self.updates: dict[PublicKey, ValidatorUpdate] = {}

    def apply(self, update: ValidatorUpdate) -> str | None:
        """Apply an update; return ``None``, or the reason why the update is invalid."""
        known = self._powers.get(update.pub_key, 0)
        total = self._total - known + update.power
        if not known and not update.power:
            return "a validator that is not in the set can't be removed"
        if not 0 < total <= validators.MAX_TOTAL_POWER:
            return f"the total voting power can't be {total}"
        self._total, self._powers[update.pub_key] = total, update.power
        self.updates[update.pub_key] = update
        if not update.power and update.pub_key not in self._before:
            # Return no update for a validator that the block both added and removed.
            del self.updates[update.pub_key]
        return None


def parse_update(tx: bytes) -> ValidatorUpdate | None:
    """Parse a validator update; return ``None`` if it is malformed."""
    fields = tx[len(_UPDATE) :].split(b"!")
    if len(fields) != 3:
        return None
    kind, encoded, power = fields
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    # Refuse other keys. A real node accepts them here, and crashes when it applies the block.
    if kind != ED25519.encode() or len(key) != 32:
        return None
    number = _power(power)
    if number is None:
        return None
    return ValidatorUpdate(PublicKey(ED25519, key), number)


def _power(text: bytes) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > 19 or int(digits) > validators.MAX_TOTAL_POWER:
        return None
    return None if text.startswith(b"-") and digits != b"0" else int(digits)


def power_penalties(block: BlockRequest) -> Iterator[ValidatorUpdate]:
    """Yield an update that lowers the power by one for each validator that voted twice."""
    for evidence in block.evidence:
        # As in CometBFT 0.38, attacks on light clients are not punished.
        if isinstance(evidence, LightClientAttackEvidence):
            continue
        entry = block.next_validators.by_address.get(evidence.vote_a.validator_address)
        if entry is not None and evidence.validator_power > 1:
            yield ValidatorUpdate(entry[1].pub_key, evidence.validator_power - 1)


def _record_034(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 0.34 does: its length as a signed varint, then the
    message."""
    content = messages.MESSAGES.encoder("ValidatorUpdate")(update)
    return varint(len(content) << 1) + content


def _record_038(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 0.37 and 0.38 do: its length, then the message."""
    return delimited(messages.MESSAGES.encoder("ValidatorUpdate")(update))


def _record_1(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 1.0 does: the bytes of the key, and its type as text."""
    return delimited(messages.MESSAGES_1.encoder("ValidatorUpdate")(update))


# Result codes of CometBFT 0.38: kvstore/code.go.
CODE_INVALID_FORMAT = 2
CODE_UNAUTHORIZED = 3

_VALIDATOR = b"validator:"
_HEIGHT = b"height"


class KeyValueApplication(Application):
    """Base class of applications that accept pairs and validator updates; subclasses store the
    pairs.

    ``val=ed25519!BASE64KEY!POWER`` sets a validator's power. The removal of an unknown
    validator, or of the last one, fails with code 3; with CometBFT's kvstore, it would halt
    the chain.
    """

    # No recheck is needed, because a transaction's validity does not depend on the state.
    rechecks = False

    def __init__(self, state: AppState) -> None:
        self._state = state

    @abstractmethod
    def _begin(self, height: int) -> tuple[bytes, Changes]:
        """Return the app hash and the writes of the initial state, which has no pairs."""

    @abstractmethod
    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        """Return the app hash and the writes of a block that sets these pairs."""

    def init_chain(self, genesis: Genesis) -> InitChain:
        app_hash, changes = self._begin(genesis.initial_height - 1)
        updates = [ValidatorUpdate(v.pub_key, v.power) for v in genesis.validators]
        return InitChain(
            app_hash=app_hash, changes={**changes, **self._validator_records(updates)}
        )

    def check_tx(self, tx: bytes) -> ExecTxResult:
        is_update = tx.startswith(_UPDATE)
        valid = parse_update(tx) is not None if is_update else _is_pair(tx)
        return ExecTxResult(gas_wanted=1) if valid else ExecTxResult(code=CODE_INVALID_FORMAT)

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        return tuple(tx.replace(b":", b"=", 1) for tx in txs if self.check_tx(tx).code == 0)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        powers = VotingPowers(block.next_validators)
        for update in power_penalties(block):
            powers.apply(update)
        pairs: dict[bytes, bytes] = {}
        results = []
        for tx in block.txs:
            code, log = _deliver(tx, powers, pairs)
            results.append(ExecTxResult(code=code, log=log, events=_events(tx)))
        app_hash, changes = self._write(block, pairs)
        updates = tuple(powers.updates.values())
        return BlockExecution(
            tx_results=tuple(results),
            app_hash=app_hash,
            validator_updates=updates,
            changes={
                **changes,
                **self._validator_records(updates),
                _HEIGHT: str(block.height).encode(),
            },
        )

    def _number(self, key: bytes) -> int:
        return int(self._state.get(key) or b"0")

    def _height(self) -> int:
        return self._number(_HEIGHT)

    def _validator_records(self, updates: Sequence[ValidatorUpdate]) -> Changes:
        return {
            _VALIDATOR + update.pub_key.value: self._record(update) if update.power else None
            for update in updates
        }

    def _record(self, update: ValidatorUpdate) -> bytes:
        """Encode a validator for the store and for ``/val``."""
        return _record_038(update)

    def _validator(self, key: bytes) -> QueryResult:
        """Return the result of ``/val`` for a public key."""
        return QueryResult(key=key, value=self._state.get(_VALIDATOR + key) or b"")


def _deliver(tx: bytes, powers: VotingPowers, pairs: dict[bytes, bytes]) -> tuple[int, str]:
    """Apply a transaction to ``powers`` or ``pairs``; return its code and log."""
    if not tx.startswith(_UPDATE):
        key, _, value = tx.partition(b"=")
        pairs[key] = value
        return 0, ""
    update = parse_update(tx)
    if update is None:
        return CODE_INVALID_FORMAT, "not a validator update"
    error = powers.apply(update)
    return (0, "") if error is None else (CODE_UNAUTHORIZED, error)


def _is_pair(tx: bytes) -> bool:
    counts = (tx.count(b"="), tx.count(b":"))
    if counts not in ((1, 0), (0, 1)):
        return False
    separator = b"=" if counts[0] else b":"
    return not tx.startswith(separator) and not tx.endswith(separator)


def _events(tx: bytes) -> tuple[Event, ...]:
    parts = tx.split(b"=")
    # As in CometBFT 0.38, key and value are both the whole transaction unless it has exactly
    # one equals sign. The base64 of a validator's key can add equals signs, as padding.
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


_PAIR = b"pair:"
_SIZE = b"size"
_VERSION = b"version"


def _app_hash(size: int) -> bytes:
    # As in CometBFT, which uses Go's PutVarint: a zig-zag varint in eight bytes.
    return varint(size << 1).ljust(8, b"\x00")


def _checked_version(version: str) -> str:
    if version not in _VERSIONS:
        raise StoreError(
            f"the store's chain: expected a kvstore of version {', '.join(VERSIONS)}, got"
            f" {version!r}; upgrade the package, or use another NODERPC_DATABASE"
        )
    return version


@dataclass(frozen=True, slots=True)
class _Version:
    abci: str
    """ABCI version, which ``abci_info`` returns as the application's version."""
    first_hash: bytes
    """App hash before the first block."""
    record: Callable[[ValidatorUpdate], bytes]
    """Function that encodes the values of ``/val``."""


_VERSIONS = {
    "0.34": _Version("0.17.0", b"", _record_034),
    "0.37": _Version("1.0.0", b"", _record_038),
    "0.38": _Version("2.0.0", _app_hash(0), _record_038),
    "1.0": _Version("2.1.0", _app_hash(0), _record_1),
}

VERSIONS = tuple(_VERSIONS)
"""CometBFT versions whose kvstore is implemented."""
DEFAULT_VERSION = "0.38"


class KVStore(KeyValueApplication):
    """Application that stores pairs, counts transactions, and changes validators.

    ``version`` is the CometBFT version of a new chain; the chain stores it. The version
    determines the app hash of the first block, the values of ``/val`` and the version in
    ``abci_info``.
    """

    name = "kvstore"
    is_chain_only = True
    makes_empty_blocks_together = True

    def __init__(self, state: AppState, version: str = DEFAULT_VERSION) -> None:
        super().__init__(state)
        if version not in _VERSIONS:
            raise ConfigurationError(
                f"version: expected one of {', '.join(VERSIONS)}, got {version!r}"
            )
        self._new_version = version

    def info(self) -> AppInfo:
        size, height, version = self._number(_SIZE), self._height(), _VERSIONS[self.version]
        return AppInfo(
            data=f'{{"size":{size}}}',
            version=version.abci,
            app_version=1,
            last_block_height=height,
            last_block_app_hash=_app_hash(size) if height else version.first_hash,
        )

    @property
    def version(self) -> str:
        """CometBFT version with which the chain began, or will begin."""
        stored = self._state.get(_VERSION)
        if stored is not None:
            return _checked_version(stored.decode(errors="replace"))
        # A chain with blocks but no stored version was created by a release that only had the
        # default version.
        return DEFAULT_VERSION if self._height() else self._new_version

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        return _VERSIONS[self.version].first_hash, {_VERSION: self.version.encode()}

    def _record(self, update: ValidatorUpdate) -> bytes:
        return _VERSIONS[self.version].record(update)

    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        size = self._number(_SIZE) + len(block.txs)
        records = {_PAIR + key: value for key, value in pairs.items()}
        return _app_hash(size), {**records, _SIZE: str(size).encode()}

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        if path == "/val":
            return self._validator(data)
        value = self._state.get(_PAIR + data)
        return QueryResult(
            log="does not exist" if value is None else "exists",
            # As in CometBFT 0.38, the index is -1 if a proof is requested.
            index=-1 if prove else 0,
            key=data,
            value=value or b"",
            height=self._height(),
        )


def kvstore_of(dialect: str) -> Callable[[AppState], KVStore]:
    """Return a function that creates the kvstore of a dialect's CometBFT version, or of the
    default version if the dialect has no kvstore."""
    version = dialect.removeprefix("comet-")
    return partial(KVStore, version=version if version in VERSIONS else DEFAULT_VERSION)
