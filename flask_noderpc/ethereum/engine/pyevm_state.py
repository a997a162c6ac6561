"""py-evm's state in dictionaries, whose changes are undone one by one.

py-evm itself keeps each value behind a dozen databases, and accounts as RLP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.prague.state import PragueState
from eth_typing import Address

from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, NO_STORAGE, Account
from ..domain.records import MIN_BLOB_FEE
from ..protocol import accounts
from ..protocol.rlp import encode
from ..protocol.trie import load
from .base import Tracer
from .pyevm_code import Computation
from .stored import NodeOverlay, StoredState

_NONCES = 1 << 64
_BALANCES = 1 << 256
_NOBODY = Account()
_ABSENT: Final = object()


class _Storage:
    """Storage of an account: its root, and the words set since."""

    __slots__ = ("root", "words")

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.words: dict[int, int] = {}


class State(PragueState):
    """State after a block, whose code can be traced and whose environment can change."""

    computation_class = Computation
    tracer: Tracer | None = None
    blob_fee = MIN_BLOB_FEE
    # Precompiled contracts by address, if overrides have moved some.
    precompiles: dict[Address, Any] | None = None

    def __init__(
        self, stored: StoredState, context: ExecutionContext, *, keeps_names: bool = False
    ) -> None:
        self.execution_context = context
        self._stored = stored
        self._keeps_names = keeps_names
        self._nodes = NodeOverlay(stored.record)
        self._accounts: dict[Address, Account | None] = {}
        self._storages: dict[Address, _Storage] = {}
        self._codes: dict[bytes, bytes] = {}
        # State of one transaction: the previous values of the words that it set, accessed
        # accounts and slots (EIP-2929), transient words, and functions that undo its changes.
        self._before: dict[tuple[Address, int], int] = {}
        self._warm: dict[object, bool] = {}
        self._transient: dict[tuple[Address, int], bytes] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def _set(self, values: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((values, key, values.get(key, _ABSENT)))
        values[key] = value

    def snapshot(self) -> Any:
        """Return the number of changes that can be undone."""
        return len(self._undo)

    def revert(self, snapshot: Any) -> None:
        """Undo all changes since a snapshot."""
        undo = self._undo
        while len(undo) > snapshot:
            values, key, before = undo.pop()
            if before is _ABSENT:
                del values[key]
            else:
                values[key] = before

    def commit(self, snapshot: Any) -> None:
        """Keep the changes, for which nothing has to be done."""

    def lock_changes(self) -> None:
        """End a transaction."""
        self._before.clear()
        self._warm.clear()
        self._undo.clear()

    @property
    def blob_base_fee(self) -> int:
        """Return the price of blob gas in the block."""
        return self.blob_fee

    # Accounts.

    def _account(self, address: Address) -> Account | None:
        try:
            return self._accounts[address]
        except KeyError:
            return self._stored.account(address)

    def account(self, address: Address) -> Account:
        """Return an account; an empty one if it does not exist."""
        return self._account(address) or _NOBODY

    def account_exists(self, address: Address) -> bool:
        return self._account(address) is not None

    def account_is_empty(self, address: Address) -> bool:
        found = self.account(address)
        return not found.nonce and not found.balance and found.code_hash == NO_CODE

    def has_code_or_nonce(self, address: Address) -> bool:
        # EIP-7610: existing storage prevents a new contract, too.
        found = self.account(address)
        return found != Account(balance=found.balance)

    def touch_account(self, address: Address) -> None:
        if self._account(address) is None:
            self._set(self._accounts, address, _NOBODY)

    def delete_account(self, address: Address) -> None:
        self._storage(address)
        self._set(self._storages, address, _Storage(NO_STORAGE))
        self._set(self._accounts, address, None)

    def get_balance(self, address: Address) -> int:
        return self.account(address).balance

    def set_balance(self, address: Address, balance: int) -> None:
        if not 0 <= balance < _BALANCES:
            raise ValueError(f"no balance: {balance}")
        was = self.account(address)
        now = Account(was.nonce, balance, was.storage_root, was.code_hash)
        self._set(self._accounts, address, now)

    def delta_balance(self, address: Address, delta: int) -> None:
        # geth's core/state, AddBalance, wraps around at the limit; py-evm raises an error.
        total = self.get_balance(address) + delta
        self.set_balance(address, total % _BALANCES if total > 0 else total)

    def get_nonce(self, address: Address) -> int:
        return self.account(address).nonce

    def set_nonce(self, address: Address, nonce: int) -> None:
        was = self.account(address)
        now = Account(nonce, was.balance, was.storage_root, was.code_hash)
        self._set(self._accounts, address, now)

    def increment_nonce(self, address: Address) -> None:
        # In geth the nonce wraps around; py-evm raises an error.
        self.set_nonce(address, (self.get_nonce(address) + 1) % _NONCES)

    def get_code_hash(self, address: Address) -> Any:
        return self.account(address).code_hash

    def get_code(self, address: Address) -> bytes:
        digest = self.account(address).code_hash
        if digest == NO_CODE:
            return b""
        return self._codes.get(digest) or load(self._nodes.record, digest)

    def set_code(self, address: Address, code: bytes) -> None:
        digest = keccak(code)
        self._codes[digest] = code
        now = replace(self.account(address), code_hash=digest)
        self._set(self._accounts, address, now)

    def delete_code(self, address: Address) -> None:
        now = replace(self.account(address), code_hash=NO_CODE)
        self._set(self._accounts, address, now)

    # Storage.

    def _storage(self, address: Address) -> _Storage:
        found = self._storages.get(address)
        if found is None:
            found = self._storages[address] = _Storage(self.account(address).storage_root)
        return found

    def get_storage(self, address: Address, slot: int, from_journal: bool = True) -> int:
        """Return the value of a slot; without ``from_journal``, the value before the
        transaction."""
        if not from_journal and (address, slot) in self._before:
            return self._before[address, slot]
        storage = self._storage(address)
        found = storage.words.get(slot)
        return self._stored.word(storage.root, slot) if found is None else found

    def set_storage(self, address: Address, slot: int, value: int) -> None:
        self._before.setdefault((address, slot), self.get_storage(address, slot))
        self._set(self._storage(address).words, slot, value)

    def delete_storage(self, address: Address) -> None:
        self._storage(address)
        self._set(self._storages, address, _Storage(NO_STORAGE))
        now = replace(self.account(address), storage_root=NO_STORAGE)
        self._set(self._accounts, address, now)

    def get_transient_storage(self, address: Address, slot: int) -> bytes:
        return self._transient.get((address, slot), b"")

    def set_transient_storage(self, address: Address, slot: int, value: bytes) -> None:
        self._set(self._transient, (address, slot), value)

    def clear_transient_storage(self) -> None:
        self._transient.clear()

    # Access lists.

    def is_address_warm(self, address: Address) -> bool:
        # The original addresses of moved precompiled contracts are warm, too.
        moved = self.precompiles
        return (
            address in self._warm
            or address in Computation.get_precompiles()
            or (moved is not None and address in moved)
        )

    def mark_address_warm(self, address: Address) -> None:
        if address not in self._warm:
            self._set(self._warm, address, True)

    def is_storage_warm(self, address: Address, slot: int) -> bool:
        return (address, slot) in self._warm

    def mark_storage_warm(self, address: Address, slot: int) -> None:
        if (address, slot) not in self._warm:
            self._set(self._warm, (address, slot), True)

    # Roots.

    @property
    def state_root(self) -> Any:
        """Return the root after the last :meth:`persist`."""
        return self._stored.root

    def persist(self) -> Any:
        """Make trie nodes of the changes, and continue from the new root."""
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
        self.lock_changes()

    def _persist_storage(self, storage: _Storage) -> bytes:
        changed = [
            (slot.to_bytes(32), encode(word) if word else b"")
            for slot, word in storage.words.items()
            if word != self._stored.word(storage.root, slot)
        ]
        self._keep_names(slot for slot, _ in changed)
        return self._nodes.set_values(storage.root, changed)

    def _keep_names(self, names: Iterable[bytes]) -> None:
        """Store addresses or slots by their hashes, which are the keys of the tries."""
        if self._keeps_names:
            self._nodes.written |= accounts.names(names)

    def _changed_accounts(self) -> Iterator[tuple[bytes, bytes]]:
        for address, account in self._accounts.items():
            if account == self._stored.account(address):
                continue
            if account is not None and account.code_hash in self._codes:
                self._nodes.written[account.code_hash] = self._codes[account.code_hash]
            yield address, b"" if account is None else accounts.encoded(account)

    def written(self) -> dict[bytes, bytes]:
        """Return the records written since the last call."""
        found, self._nodes.written = self._nodes.written, {}
        return found
