"""Accounts and storage slots in a state, which is read by its root hash; state dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, Account, AccountProof, SlotProof, StateChange
from . import rlp
from .alloc import decompress
from .rlp import Reader, encode
from .trie import NodeMissing, Record, find, leaves, load, walk


def account(record: Record, root: bytes, address: bytes) -> Account:
    """Return the account at an address, or an empty account if it does not exist; raise
    :exc:`~.trie.NodeMissing`."""
    return find_account(record, root, address) or Account()


def find_account(record: Record, root: bytes, address: bytes) -> Account | None:
    """Return the account at an address, or ``None`` if it does not exist."""
    value, _ = find(record, root, address)
    return _decoded(value) if value else None


def encoded(account: Account) -> bytes:
    """Return the RLP of an account, which is its value in the state trie."""
    return encode((account.nonce, account.balance, account.storage_root, account.code_hash))


def _decoded(value: bytes) -> Account:
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
    found = _decoded(value)
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
    if not 0 < word < 1 << 256 or encode(word) != value:
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


def storage(record: Record, storage_root: bytes, slot: bytes) -> int:
    """Return the value of a slot, 0 if it is not set, in the storage trie with this root."""
    value, _ = find(record, storage_root, slot)
    return _word(value)


def _word(value: bytes) -> int:
    return int.from_bytes(Reader(value).string("word")) if value else 0


def prove(record: Record, root: bytes, address: bytes, slots: Sequence[bytes]) -> AccountProof:
    """Return an account and the values of storage slots, each with its Merkle proof."""
    value, nodes = find(record, root, address)
    known = _decoded(value)
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
        yield _preimage(record, digest), _decoded(value)


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
