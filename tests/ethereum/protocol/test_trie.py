"""Tests of reads of tries and accounts, compared with py-trie."""

from __future__ import annotations

import pytest
import rlp
from hypothesis import given
from hypothesis import strategies as some
from trie.hexary import HexaryTrie

from flask_noderpc.ethereum.domain.execution import NO_STORAGE, Account, AccountOverride
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.protocol import accounts
from flask_noderpc.ethereum.protocol.trie import NodeMissing, find
from flask_noderpc.ethereum.protocol.trie_changes import changed
from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.engine.jobs import NoRecords

KEYS = some.binary(min_size=1, max_size=3)
WORDS = some.integers(0, (1 << 256) - 1)


def proven(root: bytes, key: bytes, nodes: tuple[bytes, ...]) -> bytes:
    """Return the value that the nodes of a proof give for a key, verified by the root alone."""
    if root == NO_STORAGE:
        # py-trie requires at least one node.
        assert nodes == ()
        return b""
    found: bytes = HexaryTrie.get_from_proof(root, keccak(key), list(map(rlp.decode, nodes)))
    return found


@given(some.dictionaries(KEYS, some.binary(min_size=1, max_size=40), max_size=60), KEYS)
def test_presence_and_absence_in_a_trie_are_proven(
    content: dict[bytes, bytes], other: bytes
) -> None:
    nodes: dict[bytes, bytes] = {}
    tree = HexaryTrie(nodes)
    for key, value in content.items():
        tree[keccak(key)] = value

    for key in (*content, other):
        value, proof = find(nodes.get, tree.root_hash, key)
        assert value == content.get(key, b"")
        assert proven(tree.root_hash, key, proof) == value


@given(
    some.lists(
        some.dictionaries(
            KEYS, some.binary(max_size=3) | some.binary(min_size=40, max_size=40), max_size=30
        ),
        max_size=4,
    )
)
def test_a_trie_is_changed_step_by_step(steps: list[dict[bytes, bytes]]) -> None:
    nodes: dict[bytes, bytes] = {}
    root = NO_STORAGE
    content: dict[bytes, bytes] = {}
    for step in steps:
        root, written = changed(nodes.get, root, step)
        nodes |= written
        content = {key: value for key, value in {**content, **step}.items() if value}
        tree = HexaryTrie({})
        for key, value in content.items():
            tree[keccak(key)] = value
        assert root == tree.root_hash
        for key in step:
            assert find(nodes.get, root, key)[0] == content.get(key, b"")


def test_nodes_beside_the_way_are_not_read() -> None:
    values = {bytes((number,)): b"value" * 10 for number in range(200)}
    root, nodes = changed(lambda _: None, NO_STORAGE, values)
    key, other = bytes((7,)), bytes((8,))
    way = {keccak(node): node for node in find(nodes.get, root, key)[1]}
    assert keccak(find(nodes.get, root, other)[1][-1]) not in way

    after, written = changed(way.get, root, {key: b"other"})

    assert len(written) == len(way)
    assert find({**nodes, **written}.get, after, key)[0] == b"other"
    assert find({**nodes, **written}.get, after, other)[0] == values[other]


def test_a_missing_trie_node_raises() -> None:
    nodes: dict[bytes, bytes] = {}
    tree = HexaryTrie(nodes)
    for number in range(20):
        tree[keccak(bytes((number,)))] = b"value" * 10
    del nodes[keccak(find(nodes.get, tree.root_hash, b"\7")[1][-1])]

    with pytest.raises(NodeMissing):
        find(nodes.get, tree.root_hash, b"\7")
    with pytest.raises(NodeMissing):
        find(lambda _: None, tree.root_hash, b"\7")


ACCOUNTS = some.builds(
    AccountOverride,
    nonce=some.integers(1, 1 << 60),
    balance=WORDS,
    code=some.binary(max_size=40),
    state_diff=some.dictionaries(
        some.integers(0, 40).map(lambda n: n.to_bytes(32)), WORDS.map(lambda n: n.to_bytes(32))
    ),
)


@given(some.dictionaries(some.binary(min_size=20, max_size=20), ACCOUNTS, max_size=8))
def test_accounts_are_read_and_proven_as_they_were_written(
    written: dict[bytes, AccountOverride],
) -> None:
    world = Evm(NoRecords()).world(NO_STORAGE)
    world.patch(written)
    change = world.commit()
    record, root = change.written.get, change.root

    for address, own in written.items():
        state = own.state_diff or {}
        slots = [*state, b"\xff" * 32]
        proof = accounts.prove(record, root, address, slots)
        found = proof.account
        assert found == accounts.account(record, root, address)
        assert (found.nonce, found.balance) == (own.nonce, own.balance)
        assert accounts.code(record, root, address) == own.code
        leaf = rlp.decode(proven(root, address, proof.proof))
        assert leaf[2:] == [found.storage_root, found.code_hash]
        for slot, received in zip(slots, proof.slots, strict=True):
            word = int.from_bytes(state.get(slot, b""))
            assert received.value == word
            assert accounts.storage(record, found.storage_root, slot) == word
            value = proven(found.storage_root, slot, received.proof)
            assert value == (rlp.encode(word) if word else b"")

    nobody = accounts.prove(record, root, b"\x01" * 20, [bytes(32)])
    assert b"\x01" * 20 in written or nobody.account == Account()
    assert b"\x01" * 20 in written or proven(root, b"\x01" * 20, nobody.proof) == b""
