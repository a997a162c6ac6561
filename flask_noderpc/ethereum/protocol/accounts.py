"""Accounts and storage slots in a state, which is read by its root hash; state dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, Account, AccountProof, SlotProof, StateChange
from ..domain.records import EMPTY_ROOT
from . import rlp
from .alloc import decompress
from .rlp import Reader, encode
from .trie import NodeMissing, Record, find, leaves, load, walk
from .trie_changes import changed


def account(record: Record, root: bytes, address: bytes) -> Account:
    """Return the account at an address, or an empty account if it does not exist; raise
    :exc:`~.trie.NodeMissing`."""
    return find_account(record, root, address) or Account()


def find_account(
    record: Record, root: bytes, address: bytes, *, forked: bool = True
) -> Account | None:
    """Return the account at an address, or ``None`` if it does not exist.

    ``forked`` is false if the state is known not to be of a forked chain.
    """
    value, _ = find(record, root, address)
    if forked and value in (b"", _GONE) and is_forked(record, root):
        value = value or load(record, forked_account_key(address))
        return None if value == _GONE else decoded(value)
    return decoded(value) if value else None


def encoded(account: Account | None) -> bytes:
    """Return the RLP of an account, which is its value in the state trie.

    ``None`` is encoded as an empty account, which stands for a missing one in the state of a
    forked chain.
    """
    account = account or Account()
    return encode((account.nonce, account.balance, account.storage_root, account.code_hash))


# The state of a forked chain. The tries have a value for this key, which neither an address
# nor a slot has, and otherwise only the values that were set since the fork. Missing values are
# read from the other chain: they are records under the keys below.
_FORKED = b"forked"
_GONE = encoded(None)


def _nothing(digest: bytes) -> None:
    """Return ``None``: the trie is empty."""


def forked_state(height: int) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Return the root and the nodes of the state of a chain forked after a block."""
    return changed(_nothing, EMPTY_ROOT, {_FORKED: encoded(Account(nonce=1, balance=height))})


def forked_storage(address: bytes) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Return the root and the nodes of the storage of an account of the other chain."""
    return changed(_nothing, EMPTY_ROOT, {_FORKED: encode(b"\1" + address)})


def is_forked(record: Record, root: bytes) -> bool:
    """Return true for the root of the state of a forked chain, and of the storage of an account
    from the other chain."""
    return bool(find(record, root, _FORKED)[0])


FORK_PREFIX = b"fork:"
"""Prefix of the keys of records with values of the other chain."""


def forked_account_key(address: bytes) -> bytes:
    """Return the key of a record: the RLP of an account of the other chain."""
    return b"fork:account:" + address


def forked_slot_key(address: bytes, slot: bytes) -> bytes:
    """Return the key of a record: the RLP of a slot's value in the other chain."""
    return b"fork:slot:" + address + slot


def forked_block_key(height: int) -> bytes:
    """Return the key of a record: the hash of a block of the other chain, empty if it has no
    such block."""
    return b"fork:block:" + height.to_bytes(8)


def forked_key(key: bytes) -> tuple[str, bytes]:
    """Split the key of such a record into its kind and the rest."""
    _, kind, rest = key.split(b":", 2)
    return kind.decode(), rest


def decoded(value: bytes) -> Account:
    """Decode the result of :func:`encoded`."""
    if not value:
        return Account()
    items = Reader(value).list("account")
    nonce, balance = (int.from_bytes(items.string("number")) for _ in range(2))
    return Account(nonce, balance, items.string("root"), items.string("hash"))


def code(record: Record, root: bytes, address: bytes) -> bytes:
    """Return the contract code at an address."""
    return code_of(record, account(record, root, address))


def code_of(record: Record, account: Account) -> bytes:
    """Return the contract code of an account; raise :exc:`~.trie.NodeMissing`."""
    if account.code_hash == NO_CODE:
        return b""
    return load(record, account.code_hash)


def _checked(value: bytes) -> Account:
    """Decode an account; raise :exc:`ValueError` if it breaks the protocol's rules."""
    found = decoded(value)
    is_sized = found.nonce < 1 << 64 and found.balance < 1 << 256
    sizes = {len(found.storage_root), len(found.code_hash)}
    if not is_sized or sizes != {32} or encoded(found) != value:
        raise ValueError(
            "account in the state trie: expected canonical RLP of nonce, balance, storage root"
            f" and code hash, got 0x{value.hex()[:100]}; restore a backup"
        )
    return found


def _check_word(value: bytes) -> None:
    word = _word(value)
    # On a forked chain a slot may be set to 0.
    if not 0 <= word < 1 << 256 or encode(word) != value:
        raise ValueError(
            "value in a storage trie: expected canonical RLP of a number of 1 to 256 bits, got"
            f" 0x{value.hex()[:100]}; restore a backup"
        )


def records(record: Record, root: bytes) -> Iterator[bytes]:
    """Yield each record of a state once: the encoded nodes of its tries, and contract codes.

    Raise :exc:`~.trie.NodeMissing` if a record is not stored, and :exc:`ValueError` if an
    account or a storage value breaks the protocol's encoding.
    """
    known: list[Account] = []
    seen = {NO_CODE}
    yield from walk(record, root, seen, lambda value: known.append(_checked(value)))
    for each in known:
        yield from walk(record, each.storage_root, seen, _check_word)
        if each.code_hash not in seen:
            seen.add(each.code_hash)
            yield load(record, each.code_hash)


def storage(record: Record, storage_root: bytes, slot: bytes, *, forked: bool = True) -> int:
    """Return the value of a slot, 0 if it is not set, in the storage trie with this root.

    ``forked`` is false if the state is known not to be of a forked chain.
    """
    value, _ = find(record, storage_root, slot)
    if forked and not value:
        mark, _ = find(record, storage_root, _FORKED)
        if mark:
            address = Reader(mark).string("address")[1:]
            value = load(record, forked_slot_key(address, slot))
    return _word(value)


def _word(value: bytes) -> int:
    return int.from_bytes(Reader(value).string("word")) if value else 0


def prove(record: Record, root: bytes, address: bytes, slots: Sequence[bytes]) -> AccountProof:
    """Return an account and the values of storage slots, each with its Merkle proof."""
    value, nodes = find(record, root, address)
    known = decoded(value)
    found = []
    for slot in slots:
        word, path = find(record, known.storage_root, slot)
        found.append(SlotProof(slot, _word(word), path))
    return AccountProof(address, known, nodes, tuple(found))


_PREIMAGE = b"name:"


def names(addresses_or_slots: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return records that map a hash to its address or slot, as the tries contain only the
    hashes."""
    return {_PREIMAGE + keccak(name): name for name in addresses_or_slots}


def _preimage(record: Record, digest: bytes) -> bytes:
    found = record(_PREIMAGE + digest)
    if found is None or keccak(found) != digest:
        raise NodeMissing(digest.hex())
    return found


def by_address(record: Record, root: bytes) -> Iterator[tuple[bytes, Account]]:
    """Yield the address and the account of each account in a state; raise
    :exc:`~.trie.NodeMissing` if the store lacks a node or a record of :func:`names`."""
    for digest, value in leaves(record, root):
        yield _preimage(record, digest), decoded(value)


def words(record: Record, storage_root: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each storage slot with its value; raise the same error as :func:`by_address`."""
    for digest, value in leaves(record, storage_root):
        yield _preimage(record, digest), _word(value)


_NOT_A_STATE = "got data that is not the RLP of a valid state; dump the state again"


def decode_dump(dump: bytes, max_bytes: int) -> StateChange:
    """Decode a state dump of an earlier version of this package, which lists trie nodes and
    codes; raise :exc:`ValueError` if it is malformed or incomplete."""
    document = decompress(dump, max_bytes)
    try:
        found = _read(document)
        for _ in records(found.written.get, found.root):
            pass
    except NodeMissing as error:
        raise ValueError(f"the record 0x{error} is missing; dump the state again") from None
    except (rlp.Malformed, ValueError, IndexError, AssertionError):
        raise ValueError(_NOT_A_STATE) from None
    return found


def _read(document: bytes) -> StateChange:
    whole = rlp.Reader(document)
    reader = whole.list("dump")
    root, items = reader.string("root"), reader.list("records")
    if not (whole.done and reader.done):
        raise ValueError(_NOT_A_STATE)
    written: dict[bytes, bytes] = {}
    while not items.done:
        record = items.string("record")
        written[keccak(record)] = record
    return StateChange(root, written)
