"""Accounts and their storage in a state, by state root and node hashes; state dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, Account, AccountProof, SlotProof, StateChange
from . import rlp
from .alloc import decompress
from .rlp import Reader, encode
from .trie import NodeMissing, Record, find, leaves, load, walk


def account(record: Record, root: bytes, address: bytes) -> Account:
    """Return the account at an address; raise :exc:`~.trie.NodeMissing`."""
    return find_account(record, root, address) or Account()


def find_account(record: Record, root: bytes, address: bytes) -> Account | None:
    """Return the account at an address, or ``None`` if it does not exist."""
    value, _ = find(record, root, address)
    return _decoded(value) if value else None


def encoded(account: Account) -> bytes:
    """Encode an account as the trie stores it."""
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
    """Decode an account; raise :exc:`ValueError` if the protocol does not allow it."""
    found = _decoded(value)
    is_sized = found.nonce < 1 << 64 and found.balance < 1 << 256
    sizes = {len(found.storage_root), len(found.code_hash)}
    if not is_sized or sizes != {32} or encoded(found) != value:
        raise ValueError("not an account")
    return found


def _check_word(value: bytes) -> None:
    word = _word(value)
    if not 0 < word < 1 << 256 or encode(word) != value:
        raise ValueError("not a word of storage")


def records(record: Record, root: bytes) -> Iterator[bytes]:
    """Yield each record of a state once: the nodes of its tries, and contract codes.

    Raise :exc:`~.trie.NodeMissing`, and :exc:`ValueError` for an encoding that the protocol
    does not allow.
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
    """Return a word of an account's storage."""
    value, _ = find(record, storage_root, slot)
    return _word(value)


def _word(value: bytes) -> int:
    return int.from_bytes(Reader(value).string("word")) if value else 0


def prove(record: Record, root: bytes, address: bytes, slots: Sequence[bytes]) -> AccountProof:
    """Return an account and slots of its storage, with their Merkle proofs."""
    value, nodes = find(record, root, address)
    known = _decoded(value)
    found = []
    for slot in slots:
        word, path = find(record, known.storage_root, slot)
        found.append(SlotProof(slot, _word(word), path))
    return AccountProof(address, known, nodes, tuple(found))


_NAME = b"name:"


def names(addresses_or_slots: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return records of the addresses and slots themselves; the tries contain only their
    hashes."""
    return {_NAME + keccak(name): name for name in addresses_or_slots}


def _name(record: Record, digest: bytes) -> bytes:
    found = record(_NAME + digest)
    if found is None or keccak(found) != digest:
        raise NodeMissing(digest.hex())
    return found


def by_address(record: Record, root: bytes) -> Iterator[tuple[bytes, Account]]:
    """Yield each account of a state whose records include :func:`names`; raise
    :exc:`~.trie.NodeMissing`."""
    for digest, value in leaves(record, root):
        yield _name(record, digest), _decoded(value)


def words(record: Record, storage_root: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each slot of a storage with its word, like :func:`by_address`."""
    for digest, value in leaves(record, storage_root):
        yield _name(record, digest), _word(value)


def decode_dump(dump: bytes, max_bytes: int) -> StateChange:
    """Decode the state in a dump of an earlier version of this package, which contains the
    nodes of its tries; raise :exc:`ValueError` if it is malformed or incomplete."""
    document = decompress(dump, max_bytes)
    try:
        found = _read(document)
        for _ in records(found.written.get, found.root):
            pass
    except NodeMissing as error:
        raise ValueError(f"{error} is missing in it") from None
    except (rlp.Malformed, ValueError, IndexError, AssertionError):
        raise ValueError("it can't be read") from None
    return found


def _read(document: bytes) -> StateChange:
    whole = rlp.Reader(document)
    reader = whole.list("dump")
    root, items = reader.string("root"), reader.list("records")
    if not (whole.done and reader.done):
        raise ValueError("it can't be read")
    written: dict[bytes, bytes] = {}
    while not items.done:
        record = items.string("record")
        written[keccak(record)] = record
    return StateChange(root, written)
