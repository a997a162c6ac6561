"""Stored states: cached accounts and storage values at a root, and new trie nodes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ..domain.execution import NO_STORAGE, Account
from ..protocol import accounts
from ..protocol.trie import Record
from ..protocol.trie_changes import changed


class StoredState:
    """State at a root; accounts and storage values are loaded at first use, and cached."""

    _MAX_KEPT = 4096

    def __init__(self, record: Record, root: bytes) -> None:
        self.record, self.root = record, root
        self._accounts: dict[bytes, Account | None] = {}
        self._words: dict[tuple[bytes, int], int] = {}

    @cached_property
    def is_forked(self) -> bool:
        """True for the state of a forked chain."""
        return accounts.is_forked(self.record, self.root)

    def account(self, address: bytes) -> Account | None:
        """Return an account, or ``None`` if it does not exist."""
        try:
            return self._accounts[address]
        except KeyError:
            found = accounts.find_account(
                self.record, self.root, address, forked=self.is_forked
            )
            if len(self._accounts) >= self._MAX_KEPT:
                self._accounts.clear()
            self._accounts[address] = found
            return found

    def word(self, storage_root: bytes, slot: int) -> int:
        """Return the value of a slot in the storage trie with this root."""
        if storage_root == NO_STORAGE:
            return 0
        try:
            return self._words[storage_root, slot]
        except KeyError:
            found = accounts.storage(
                self.record, storage_root, slot.to_bytes(32), forked=self.is_forked
            )
            if len(self._words) >= self._MAX_KEPT:
                self._words.clear()
            self._words[storage_root, slot] = found
            return found


class NodeOverlay:
    """Records written since the last commit, in front of the records of the chain."""

    def __init__(self, record: Record) -> None:
        self._below = record
        self.written: dict[bytes, bytes] = {}

    def record(self, digest: bytes) -> bytes | None:
        """Return a record by its hash, or ``None``."""
        return self.written.get(digest) or self._below(digest)

    def set_values(self, root: bytes, values: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Set values in a trie, record its new nodes and return its new root."""
        root, nodes = changed(self.record, root, dict(values))
        self.written |= nodes
        return root
