"""State of the bank: the SDK's stores of keys and values, now and after each recent block.

A key's current value is stored under the key. If a block changes it, the old value is stored
under the key and the block's height. Past states are read from old values; a revert restores
them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import Any, Protocol, cast

from ... import jsoncodec
from ...backends.base.application import AppState, Changes
from ...backends.base.reads import ChainReads
from ...errors import InvalidBlock, NotSupported, StoreError
from . import gas
from .gas import GasMeter

ACCOUNTS, BANK = b"acc/", b"bank/"
"""Key prefixes of the two SDK stores, of x/auth and x/bank."""

RETAINED_HEIGHTS = 100
"""Default number of latest heights whose state is retained."""

_HEAD = b"head"
_OLD, _WRITTEN = b"old/", b"written/"

Get = Callable[[bytes], bytes | None]


class Readable(Protocol):
    """A state that can be read: keys and values."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or ``None``."""

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys with a prefix and their values, by key."""


@dataclass(frozen=True, slots=True)
class Head:
    """Values of the chain and of its latest block, stored with the state."""

    chain_id: str
    prefix: str
    """Prefix of addresses."""
    initial_height: int
    max_gas: int
    """Maximum gas of a block; -1 means no limit."""
    params_gas: int
    """Gas that the SDK charges a transaction for reading the consensus parameters."""
    height: int
    """Height of the latest block; 0 before the first."""
    time: int
    app_hash: bytes
    modules: tuple[str, ...] = ()
    """Names of the modules that the genesis state has; chains that earlier versions began have
    none."""
    key_types: tuple[str, ...] = ()
    """Types of keys that a validator may have."""
    max_age_blocks: int = 0
    max_age_duration: int = 0
    """Age from which evidence is not punished any more, in blocks and nanoseconds."""

    def encode(self) -> bytes:
        """Encode the head for the store."""
        return jsoncodec.pack([getattr(self, field.name) for field in fields(self)])


def head(state: AppState) -> Head:
    """Return the head; raise :exc:`~flask_noderpc.errors.StoreError` if it is missing."""
    found = find_head(state.get)
    if found is None:
        raise StoreError(
            "the store has no state of the application bank: the chain is not started, or"
            " belongs to another application; check NODERPC_APPLICATION and NODERPC_DATABASE"
        )
    return found


def find_head(get: Get) -> Head | None:
    """Return the head, or ``None`` if it is missing."""
    stored = get(_HEAD)
    if stored is None:
        return None
    values: Iterable[Any] = jsoncodec.unpack(stored)
    return Head(*map(_immutable, values))


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def head_changes(new: Head) -> Changes:
    """Return the changes that store a head."""
    return {_HEAD: new.encode()}


# Number of keys for which it takes less time to insert each than to sort all.
_FEW_KEYS = 20


class Branch:
    """A state with uncommitted writes, which may be applied or dropped."""

    def __init__(self, before: Readable) -> None:
        self._before = before
        self._read: dict[bytes, bytes | None] = {}
        self.writes: dict[bytes, bytes | None] = {}
        self._keys: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key with the writes applied, or ``None``."""
        return self.writes[key] if key in self.writes else self.before(key)

    def before(self, key: bytes) -> bytes | None:
        """Return the value of a key without the branch's writes, or ``None``."""
        if key not in self._read:
            self._read[key] = self._before.get(key)
        return self._read[key]

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys with a prefix and their values with the writes applied, by key."""
        own = {key: self.writes[key] for key in self._written(prefix)}
        stored = (pair for pair in self._before.pairs(prefix) if pair[0] not in own)
        for key, value in merge(stored, own.items()):
            if value is not None:
                yield key, value

    def _written(self, prefix: bytes) -> Iterator[bytes]:
        """Yield the keys with a prefix that were written, by key."""
        keys = self._sorted_keys()
        for at in range(bisect_left(keys, prefix), len(keys)):
            if not keys[at].startswith(prefix):
                return
            yield keys[at]

    def _sorted_keys(self) -> list[bytes]:
        # Keys are only ever added to the writes, so the newest ones are those that were not
        # sorted yet.
        new = list(islice(reversed(self.writes), len(self.writes) - len(self._keys)))
        if len(new) > _FEW_KEYS:
            self._keys = sorted(self.writes)
        else:
            for key in new:
                insort(self._keys, key)
        return self._keys

    def changed_values(self) -> dict[bytes, bytes | None]:
        """Return the writes whose value differs from the value before."""
        return {key: value for key, value in self.writes.items() if self.before(key) != value}

    def branch(self) -> Branch:
        """Return a new branch on top of this one."""
        return Branch(self)

    def copy(self) -> Branch:
        """Return a branch on the same state with a copy of the writes."""
        other = Branch(self._before)
        other._read, other.writes = self._read, dict(self.writes)
        return other

    def apply(self, other: Branch) -> None:
        """Add the writes of a branch on top of this one."""
        self.writes |= other.writes


class Store:
    """One of the SDK's stores, whose reads and writes cost gas."""

    def __init__(self, branch: Branch, prefix: bytes, meter: GasMeter) -> None:
        self._branch, self._prefix, self._meter = branch, prefix, meter

    def has(self, key: bytes) -> bool:
        """Return true if the key exists."""
        self._meter.consume(gas.HAS, "Has")
        return self._branch.get(self._prefix + key) is not None

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or ``None``."""
        self._meter.consume(gas.READ, "ReadFlat")
        value = self._branch.get(self._prefix + key)
        self._meter.consume(gas.READ_BYTE * len(key), "ReadPerByte")
        self._meter.consume(gas.READ_BYTE * len(value or b""), "ReadPerByte")
        return value

    def set(self, key: bytes, value: bytes) -> None:
        """Write the value of a key."""
        self._meter.consume(gas.WRITE, "WriteFlat")
        self._meter.consume(gas.WRITE_BYTE * len(key), "WritePerByte")
        self._meter.consume(gas.WRITE_BYTE * len(value), "WritePerByte")
        self._branch.writes[self._prefix + key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self._meter.consume(gas.DELETE, "Delete")
        self._branch.writes[self._prefix + key] = None

    def iterate(
        self,
        prefix: bytes,
        since: bytes = b"",
        before: bytes | None = None,
        *,
        is_reverse: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys with a prefix and their values, by key or in reverse order.

        Keys lower than ``since``, and keys from ``before`` on, are left out. Writes during the
        iteration have no effect on it. It costs gas for each element that is reached, also for
        the first one before the loop begins, as in the SDK.
        """
        size, pairs = len(self._prefix), []
        for key, value in self._branch.pairs(self._prefix + prefix):
            if before is not None and key[size:] >= before:
                break
            if key[size:] >= since:
                pairs.append((key[size:], value))
        if is_reverse:
            pairs.reverse()
        self._seek(pairs[0] if pairs else None)
        for pair in pairs:
            yield pair
            self._seek(pair)

    def _seek(self, pair: tuple[bytes, bytes] | None) -> None:
        if pair is not None:
            for part in pair:
                self._meter.consume(gas.READ_BYTE * len(part), "ValuePerByte")
        self._meter.consume(gas.NEXT, "IterNextFlat")


def app_hash(before: bytes, changed: Mapping[bytes, bytes | None]) -> bytes:
    """Return the app hash after a block, from the hash before and the changed values."""
    if not changed:
        return before
    listed = [[key, changed[key]] for key in sorted(changed)]
    return sha256(before + sha256(jsoncodec.pack(listed)).digest()).digest()


def block_changes(state: AppState, branch: Branch, new: Head, retained: int) -> Changes:
    """Return what to write for a block: its changes, the old values, and the removal of old
    values of blocks that are no longer retained."""
    values = {**branch.changed_values(), _HEAD: new.encode()}
    before = {_old_key(key, new.height): jsoncodec.pack([branch.before(key)]) for key in values}
    written = {_written_key(new.height): jsoncodec.pack(list(values))}
    return {**_too_old(state, new.height - retained), **values, **before, **written}


def _too_old(state: AppState, height: int) -> Changes:
    """Return the removal of the old values of blocks up to a height.

    Only the two oldest blocks are removed: one is needed per block, and a second one reduces
    the backlog after NODERPC_BANK_HEIGHTS was lowered.
    """
    found: dict[bytes, bytes | None] = {}
    for key, stored in state.range(_WRITTEN, None, 2):
        at = int.from_bytes(key[len(_WRITTEN) :])
        if at <= height:
            found |= _forgotten(at, jsoncodec.unpack(stored))
    return found


def _forgotten(height: int, keys: Sequence[bytes]) -> Changes:
    return {_written_key(height): None, **{_old_key(key, height): None for key in keys}}


def undo_changes(state: AppState, latest: Head, height: int) -> Changes:
    """Return the changes that restore the state after an earlier block; raise
    :exc:`~flask_noderpc.errors.NotSupported` if that state is not retained."""
    restored: dict[bytes, bytes | None] = {}
    for undone in range(latest.height, max(height, latest.initial_height - 1), -1):
        keys = _written_keys(state, undone)
        if keys is None:
            raise NotSupported(
                f"the state before block {undone} is no longer stored; raise"
                " NODERPC_BANK_HEIGHTS to store more heights"
            )
        for key in keys:
            restored[key] = _before(state, key, undone)
        restored |= _forgotten(undone, keys)
    return restored


def _before(state: AppState, key: bytes, height: int) -> bytes | None:
    stored = state.get(_old_key(key, height))
    if stored is None:
        raise StoreError(
            f"the state before block {height} is damaged: an old value is missing; restore a"
            " backup"
        )
    return cast("bytes | None", jsoncodec.unpack(stored)[0])


def _written_keys(state: AppState, height: int) -> list[bytes] | None:
    stored = state.get(_written_key(height))
    return None if stored is None else cast("list[bytes]", jsoncodec.unpack(stored))


def is_retained(state: AppState, latest: Head, height: int) -> bool:
    """Return true if the state after the block at a height can be read."""
    return height == latest.height or state.get(_written_key(height + 1)) is not None


def read_at(state: AppState, height: int) -> Get:
    """Return a function that reads values as they were after the block at a height."""

    def get(key: bytes) -> bytes | None:
        # Read the current value first: a block that is committed in between stores it as an old
        # value.
        value = state.get(key)
        found = state.range(_old_prefix(key), _old_key(key, height), 1)
        return cast("bytes | None", jsoncodec.unpack(found[0][1])[0]) if found else value

    return get


def verify(state: AppState, chain: ChainReads) -> None:
    """Check the app hash of each retained height against the block's writes; raise
    :exc:`~flask_noderpc.errors.InvalidBlock`."""
    height = head(state).height
    while (keys := _written_keys(state, height)) is not None and height >= chain.base_height():
        get = read_at(state, height)
        changed = {key: get(key) for key in keys if key != _HEAD}
        before = chain.block_meta(height).header.app_hash
        if app_hash(before, changed) != chain.results(height).app_hash:
            raise InvalidBlock(
                f"app_state: the stored writes of block {height} do not match its app hash;"
                " restore a backup"
            )
        height -= 1


_PAGE = 500


class Committed:
    """The committed state, after the latest block."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self.get = state.get

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys with a prefix and their values, by key."""
        after: bytes | None = None
        while found := self._state.range(prefix, after, _PAGE):
            yield from found
            if len(found) < _PAGE:
                return
            after = found[-1][0]


class NothingStored:
    """The state before the genesis state, which has no keys."""

    def get(self, key: bytes) -> bytes | None:
        """Return ``None``."""
        return None

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield nothing."""
        return iter(())


class PastState:
    """The state after the block at a height."""

    def __init__(self, state: AppState, height: int) -> None:
        self._state, self._height = state, height
        self.get = read_at(state, height)

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys with a prefix and their values, by key."""
        seen: bytes | None = None
        while True:
            present = [key for key, _ in self._state.range(prefix, seen, _PAGE)]
            last = present[-1] if len(present) == _PAGE else None
            for key in sorted({*present, *_removed(self._state, prefix, seen, last)}):
                value = self.get(key)
                if value is not None:
                    yield key, value
            if last is None:
                return
            seen = last


def _removed(
    state: AppState, prefix: bytes, after: bytes | None, last: bytes | None
) -> Iterator[bytes]:
    """Yield the keys with a prefix that have old values, which may be removed by now."""
    place = None if after is None else _old_prefix(after) + b"\xff"
    stop = None if last is None else _old_prefix(last) + b"\xff"
    while found := state.range(_OLD + _escaped(prefix), place, _PAGE):
        for stored, _ in found:
            if stop is not None and stored > stop:
                return
            yield _unescaped(stored)
        # A key may have an old value at each height: continue with the next key.
        place = _old_prefix(_unescaped(found[-1][0])) + b"\xff"


def _escaped(key: bytes) -> bytes:
    return key.replace(b"\0", b"\0\xff")


def _unescaped(stored: bytes) -> bytes:
    return stored[len(_OLD) : -10].replace(b"\0\xff", b"\0")


def _old_prefix(key: bytes) -> bytes:
    # The escaping and this end mark ensure that no key is a prefix of another, and keep the
    # order.
    return _OLD + _escaped(key) + b"\0\1"


def _old_key(key: bytes, height: int) -> bytes:
    return _old_prefix(key) + height.to_bytes(8)


def _written_key(height: int) -> bytes:
    return _WRITTEN + height.to_bytes(8)
