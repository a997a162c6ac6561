"""State in memory of the engine, with a log to undo changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, NO_STORAGE, Account
from ..protocol import accounts
from ..protocol.rlp import encode
from ..protocol.trie import load
from .stored import NodeOverlay, StoredState

_NONCES = 1 << 64
_BALANCES = 1 << 256
_EMPTY_ACCOUNT = Account()
_ABSENT: Final = object()

# EIP-161's exception: in block 2,675,119 of the main network this account was deleted although
# the call that touched it had failed (github.com/ethereum/EIPs, 716).
_RIPEMD160 = (3).to_bytes(20)


class _Storage:
    """Storage of an account: its root in the store, and the slots set since then."""

    __slots__ = ("root", "words")

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.words: dict[int, int] = {}


class State:
    """State after a block, and the changes of the transactions that run on it."""

    def __init__(self, stored: StoredState, *, keeps_names: bool = False) -> None:
        self._stored = stored
        self._keeps_names = keeps_names
        self._nodes = NodeOverlay(stored.record)
        self._accounts: dict[bytes, Account | None] = {}
        self._storages: dict[bytes, _Storage] = {}
        self._codes: dict[bytes, bytes] = {}
        # State of the current transaction: the previous values of the slots that it set,
        # accessed accounts and slots (EIP-2929), transient slots, touched, created and
        # destroyed accounts, and the undo log: (dictionary, key, previous value).
        self._before: dict[tuple[bytes, int], int] = {}
        self._warm: dict[object, bool] = {}
        self._transient: dict[tuple[bytes, int], int] = {}
        self._touched: dict[bytes, bool] = {}
        self._created: dict[bytes, bool] = {}
        self._destroyed: dict[bytes, bool] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def _set(self, values: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((values, key, values.get(key, _ABSENT)))
        values[key] = value

    def snapshot(self) -> int:
        """Return the length of the undo log, which :meth:`revert` takes."""
        return len(self._undo)

    def revert(self, snapshot: int) -> None:
        """Undo all changes made since a snapshot was taken."""
        undo = self._undo
        was_touched = _RIPEMD160 in self._touched
        while len(undo) > snapshot:
            values, key, before = undo.pop()
            if before is _ABSENT:
                del values[key]
            else:
                values[key] = before
        if was_touched:
            self._touched[_RIPEMD160] = True

    def end_transaction(self) -> None:
        """Delete destroyed accounts, and touched accounts that are empty (EIP-161)."""
        for address in self._destroyed:
            self.delete_account(address)
        for address in self._touched:
            if self._account(address) is not None and self.is_empty(address):
                self.delete_account(address)
        self.keep_changes()

    def keep_changes(self) -> None:
        """Clear the undo log and the transaction's other data, so that its changes stay."""
        for values in (
            self._before,
            self._warm,
            self._transient,
            self._touched,
            self._created,
            self._destroyed,
        ):
            values.clear()
        self._undo.clear()

    # Accounts.

    def _account(self, address: bytes) -> Account | None:
        try:
            return self._accounts[address]
        except KeyError:
            return self._stored.account(address)

    def account(self, address: bytes) -> Account:
        """Return an account; an empty one if it does not exist."""
        return self._account(address) or _EMPTY_ACCOUNT

    def exists(self, address: bytes) -> bool:
        """Return true if the account is in the state, even if it is empty."""
        return self._account(address) is not None

    def is_empty(self, address: bytes) -> bool:
        """Return true if an account has neither nonce, balance nor code (EIP-161)."""
        found = self.account(address)
        return not found.nonce and not found.balance and found.code_hash == NO_CODE

    def can_be_created(self, address: bytes) -> bool:
        """Return true if a contract can be created at this address: the account has no nonce,
        code or storage (EIP-684, EIP-7610)."""
        found = self.account(address)
        return found == Account(balance=found.balance)

    def create(self, address: bytes) -> None:
        """Mark a contract as created by this transaction, and set its nonce to 1."""
        self._set(self._created, address, True)
        self.set_nonce(address, 1)

    def is_new(self, address: bytes) -> bool:
        """Return true if the transaction has created this contract."""
        return address in self._created

    def destroy(self, address: bytes) -> None:
        """Mark an account for deletion at the end of the transaction."""
        self._set(self._destroyed, address, True)

    def touch(self, address: bytes) -> None:
        """Mark an account for deletion if it is empty at the end of the transaction."""
        if address not in self._touched:
            self._set(self._touched, address, True)

    def delete_account(self, address: bytes) -> None:
        """Delete an account with its storage."""
        self._storage(address)
        self._set(self._storages, address, _Storage(NO_STORAGE))
        self._set(self._accounts, address, None)

    def set_balance(self, address: bytes, balance: int) -> None:
        """Set a balance, in wei."""
        if not 0 <= balance < _BALANCES:
            raise ValueError(f"balance: expected 0 to 2**256 - 1 wei, got {balance}")
        was = self.account(address)
        now = Account(was.nonce, balance, was.storage_root, was.code_hash)
        self._set(self._accounts, address, now)

    def add_balance(self, address: bytes, amount: int) -> None:
        """Add an amount, which may be negative, to a balance."""
        self.touch(address)
        if amount:
            # A balance wraps around at 2**256, as in geth.
            total = self.account(address).balance + amount
            self.set_balance(address, total % _BALANCES if total > 0 else total)

    def set_nonce(self, address: bytes, nonce: int) -> None:
        """Set a nonce."""
        was = self.account(address)
        now = Account(nonce, was.balance, was.storage_root, was.code_hash)
        self._set(self._accounts, address, now)

    def increment_nonce(self, address: bytes) -> None:
        """Increment a nonce, which wraps around at 2**64 as in geth."""
        self.set_nonce(address, (self.account(address).nonce + 1) % _NONCES)

    def code(self, address: bytes) -> bytes:
        """Return the code of an account."""
        digest = self.account(address).code_hash
        if digest == NO_CODE:
            return b""
        return self._codes.get(digest) or load(self._nodes.record, digest)

    def set_code(self, address: bytes, code: bytes) -> None:
        """Set the code of an account."""
        digest = keccak(code)
        self._codes[digest] = code
        now = replace(self.account(address), code_hash=digest)
        self._set(self._accounts, address, now)

    # Storage.

    def _storage(self, address: bytes) -> _Storage:
        found = self._storages.get(address)
        if found is None:
            found = self._storages[address] = _Storage(self.account(address).storage_root)
        return found

    def storage(self, address: bytes, slot: int) -> int:
        """Return the value of a slot."""
        storage = self._storage(address)
        found = storage.words.get(slot)
        return self._stored.word(storage.root, slot) if found is None else found

    def original(self, address: bytes, slot: int) -> int:
        """Return the value that a slot had before the transaction."""
        found = self._before.get((address, slot))
        return self.storage(address, slot) if found is None else found

    def set_storage(self, address: bytes, slot: int, value: int) -> None:
        """Set the value of a slot in a transaction."""
        self._before.setdefault((address, slot), self.storage(address, slot))
        self.override_storage(address, slot, value)

    def override_storage(self, address: bytes, slot: int, value: int) -> None:
        """Set the value of a slot between transactions, without reading the previous one."""
        self._set(self._storage(address).words, slot, value)

    def delete_storage(self, address: bytes) -> None:
        """Set all slots of an account to 0."""
        self._storage(address)
        self._set(self._storages, address, _Storage(NO_STORAGE))
        now = replace(self.account(address), storage_root=NO_STORAGE)
        self._set(self._accounts, address, now)

    def transient(self, address: bytes, slot: int) -> int:
        """Return the value of a transient slot (EIP-1153)."""
        return self._transient.get((address, slot), 0)

    def set_transient(self, address: bytes, slot: int, value: int) -> None:
        """Set the value of a transient slot."""
        self._set(self._transient, (address, slot), value)

    def warm(self, accessed: object) -> bool:
        """Mark an address, or an address and a slot, as warm; return true if it was before."""
        if accessed in self._warm:
            return True
        self._set(self._warm, accessed, True)
        return False

    def warm_up(self, addresses: Iterable[bytes]) -> None:
        """Mark addresses as warm for the whole transaction; no revert undoes this."""
        self._warm.update(dict.fromkeys(addresses, True))

    # Roots.

    @property
    def root(self) -> bytes:
        """Root after the last :meth:`persist`."""
        return self._stored.root

    def persist(self) -> None:
        """Write the changes into new trie nodes, and continue from the new root."""
        for address, storage in self._storages.items():
            was, root = self.account(address), self._persist_storage(storage)
            if was.storage_root != root:
                self._accounts[address] = replace(was, storage_root=root)
        changed = dict(self._changed_accounts())
        self._keep_names(changed)
        root = self._nodes.set_values(self._stored.root, changed.items())
        self._stored = StoredState(self._nodes.record, root)
        self._accounts.clear()
        self._storages.clear()
        self._codes.clear()
        self.keep_changes()

    def _persist_storage(self, storage: _Storage) -> bytes:
        # On a forked chain, an absent slot would have the value of the other chain, which may
        # not be known: it is not read for a comparison.
        is_forked = self._stored.is_forked and accounts.is_forked(
            self._nodes.record, storage.root
        )
        zero = encode(0) if is_forked else b""
        changed = [
            (slot.to_bytes(32), encode(word) if word else zero)
            for slot, word in storage.words.items()
            if is_forked or word != self._stored.word(storage.root, slot)
        ]
        self._keep_names(slot for slot, _ in changed)
        return self._nodes.set_values(storage.root, changed)

    def _keep_names(self, names: Iterable[bytes]) -> None:
        """Store addresses or slots under their hashes, which the tries use as keys."""
        if self._keeps_names:
            self._nodes.written |= accounts.names(names)

    def _changed_accounts(self) -> Iterator[tuple[bytes, bytes]]:
        absent = accounts.encoded(None) if self._stored.is_forked else b""
        for address, account in self._accounts.items():
            if account == self._stored.account(address):
                continue
            if account is not None and account.code_hash in self._codes:
                self._nodes.written[account.code_hash] = self._codes[account.code_hash]
            if account is not None and self._stored.is_forked:
                self._keep_forked(account)
            yield address, absent if account is None else accounts.encoded(account)

    def _keep_forked(self, account: Account) -> None:
        """Store the code and the storage's root node of an account, which may be from the other
        chain: a state is then whole without the values of that chain."""
        for digest in {account.code_hash, account.storage_root} - {NO_CODE, NO_STORAGE}:
            self._nodes.written.setdefault(digest, load(self._nodes.record, digest))

    def written(self) -> dict[bytes, bytes]:
        """Return the records written since the last call."""
        found, self._nodes.written = self._nodes.written, {}
        return found
