"""Tests of the key-value store with proofs: its app hash, past states, proofs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.backends.base.application import BlockRequest
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.domain.block import Commit
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.errors import StoreError
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.hashes import pair_hash
from flask_noderpc.testing.chains import DictState

from .conftest import Open
from .fixtures import key, validator_tx
from .proofs import root_of

PATH = "/store/main/key"


@pytest.fixture
def chain(open_chain: Open) -> EmbeddedChain:
    """A chain of one validator with proofs of its values."""
    return open_chain(application=MerkleKVStore)


def make_block(chain: EmbeddedChain, *txs: bytes) -> int:
    for tx in txs:
        assert chain.mempool.submit(tx).code == 0
    return chain.produce()


def is_proved(chain: EmbeddedChain, found: QueryResult) -> bool:
    header = chain.reads.block_meta(found.height + 1).header
    assert found.key is not None
    path = (b"main", found.key)
    return root_of(found.proof_ops, path, found.value) == header.app_hash


def app_hash(pairs: dict[bytes, bytes]) -> bytes:
    """Hash all pairs at once, in the order in which their keys were first set."""
    leaves = [
        bytes([len(name)]) + name + b"\x20" + sha256(value).digest()
        for name, value in pairs.items()
    ]
    return pair_hash(b"main", hashes.root(leaves))


def test_the_app_hash_is_the_root_over_all_pairs(chain: EmbeddedChain) -> None:
    first = make_block(chain, b"b=1", b"a=2")
    second = make_block(chain, b"c=3", b"b=4")
    make_block(chain)

    hashes = [chain.reads.block_meta(height).header.app_hash for height in (1, 2, 3)]

    assert (first, second) == (1, 2)
    assert hashes == [
        app_hash({}),
        app_hash({b"b": b"1", b"a": b"2"}),
        app_hash({b"b": b"4", b"a": b"2", b"c": b"3"}),
    ]


def test_an_empty_block_leaves_the_app_hash(chain: EmbeddedChain) -> None:
    make_block(chain, b"a=b")
    make_block(chain)

    assert chain.reads.results(2).app_hash == chain.reads.results(1).app_hash


def test_the_application_introduces_itself(chain: EmbeddedChain) -> None:
    before = chain.application.info()
    make_block(chain, b"a=b", b"a=c", b"d=e")
    info = chain.application.info()

    assert (before.last_block_height, before.last_block_app_hash) == (0, app_hash({}))
    assert (info.version, info.app_version, info.last_block_height) == ("1.0.0", 1, 1)
    assert info.data == '{"size":2}'
    assert info.last_block_app_hash == chain.reads.results(1).app_hash


@pytest.mark.parametrize(
    ("tx", "code"), [(b"a=b", 0), (b"a:b", 0), (b"ab", 2), (b"val=x", 2), (b"", 2)]
)
def test_transactions_are_those_of_the_kvstore(
    chain: EmbeddedChain, tx: bytes, code: int
) -> None:
    assert chain.application.check_tx(tx).code == code


def test_validators_change_by_transactions(chain: EmbeddedChain) -> None:
    make_block(chain, validator_tx(key(1), 2))
    make_block(chain)

    assert chain.reads.validators(3).by_address[key(1).address][1].voting_power == 2
    assert chain.application.query("/val", key(1).public.value, 0, False).value.endswith(
        b"\x10\x02"
    )
    # The transactions before this one are already in the header's app hash.
    assert chain.reads.results(1).app_hash == app_hash({})


@pytest.mark.parametrize("path", [PATH, "/key", ""])
def test_a_query_reads_committed_state(chain: EmbeddedChain, path: str) -> None:
    make_block(chain, b"name=satoshi")

    found = chain.application.query(path, b"name", 0, False)

    assert (found.code, found.log, found.height) == (0, "exists", 1)
    assert (found.key, found.value, found.proof_ops) == (b"name", b"satoshi", ())


def test_another_path_is_refused(chain: EmbeddedChain) -> None:
    found = chain.application.query("/store/other/key", b"name", 0, True)

    assert (found.code, found.proof_ops) == (4, ())
    assert found.log == "unknown path '/store/other/key': known are /store/main/key and /val"


def test_an_error_shows_little_of_a_long_path(chain: EmbeddedChain) -> None:
    found = chain.application.query("/x" * 100_000, b"name", 0, False)

    assert found.log.startswith("unknown path '/x/x/x")
    assert len(found.log) < 200


def test_a_proof_leads_to_the_app_hash_of_the_latest_header(chain: EmbeddedChain) -> None:
    make_block(chain, b"a=1", b"b=2", b"c=3")
    make_block(chain, b"b=4")

    found = chain.application.query(PATH, b"b", 0, True)

    # That header contains the app hash before its block.
    assert (found.height, found.value) == (1, b"2")
    assert is_proved(chain, found)
    assert not root_of(found.proof_ops, (b"main", b"b"), b"3")


def test_the_state_after_the_latest_block_is_proved_by_the_next_header(
    chain: EmbeddedChain,
) -> None:
    height = make_block(chain, b"a=1")
    found = chain.application.query(PATH, b"a", height, True)
    make_block(chain)

    assert (found.height, found.value) == (height, b"1")
    assert is_proved(chain, found)
    assert chain.application.query(PATH, b"a", 0, True) == found


def test_a_key_that_is_not_there_has_no_proof(chain: EmbeddedChain) -> None:
    make_block(chain, b"a=1")
    make_block(chain)

    found = chain.application.query(PATH, b"nobody", 0, True)

    assert (found.code, found.log) == (0, "does not exist at height 1, which has no proof")
    assert (found.key, found.value, found.height, found.proof_ops) == (b"nobody", b"", 1, ())
    assert chain.application.query(PATH, b"nobody", 0, False).log == "does not exist"


@pytest.mark.parametrize("initial_height", [1, 50])
def test_before_the_first_block_there_is_nothing(initial_height: int) -> None:
    state = DictState()
    app = MerkleKVStore(state)
    state.apply(app.init_chain(Genesis("c", 0, initial_height=initial_height)).changes)

    for prove in (False, True):
        found = app.query(PATH, b"a", 0, prove)
        assert (found.value, found.height) == (b"", 0)
    assert app.info().last_block_app_hash == app_hash({})


def test_a_past_state_is_queried_by_height(chain: EmbeddedChain) -> None:
    for number in range(1, 6):
        make_block(chain, b"a=%d" % number, b"k%d=x" % number)
    make_block(chain)

    for height in range(1, 6):
        found = chain.application.query(PATH, b"a", height, True)
        assert (found.value, found.height) == (b"%d" % height, height)
        assert is_proved(chain, found)
        later = chain.application.query(PATH, b"k%d" % (height + 1), height, False)
        assert (later.log, later.value) == ("does not exist", b"")


class Brief(MerkleKVStore):
    retained_heights = 3


def test_a_state_that_is_too_old_or_to_come_is_refused(open_chain: Open) -> None:
    chain = open_chain(application=Brief)
    for number in range(1, 7):
        make_block(chain, b"a=%d" % number)

    found = {
        height: chain.application.query(PATH, b"a", height, True) for height in (-1, 3, 4, 6, 7)
    }

    assert [found[height].code for height in (-1, 3, 4, 6, 7)] == [5, 5, 0, 0, 5]
    assert (found[3].log, found[3].value) == (
        "the state at height 3 is not stored: ask for 4 to 6",
        b"",
    )
    assert (found[4].value, found[6].value) == (b"4", b"6")
    assert is_proved(chain, found[4])


def test_pruned_versions_are_deleted() -> None:
    sizes = []
    runner = Runner(Brief)
    runner.block({b"k%d" % number: b"0" for number in range(50)})
    for number in range(1, 30):
        runner.block({b"k7": b"%d" % number})
        sizes.append(len(runner.state))

    assert len(set(sizes[3:])) == 1


def test_a_state_that_is_dropped_while_it_is_read_is_refused() -> None:
    runner = Runner(Brief)
    runner.block({b"a": b"1", b"b": b"1"})
    runner.block({b"a": b"2"})
    nodes = [name for name in runner.state if name.startswith(b"node:")]
    runner.state.apply(dict.fromkeys(nodes))

    assert runner.app.query(PATH, b"a", 1, True).code == 5


def test_the_state_survives_a_restart(open_chain: Open) -> None:
    first = open_chain(application=MerkleKVStore)
    make_block(first, b"a=1", b"b=2")
    first.close()

    again = open_chain(application=MerkleKVStore)
    make_block(again, b"b=3", b"c=4")
    make_block(again)

    assert again.reads.results(2).app_hash == app_hash({b"a": b"1", b"b": b"3", b"c": b"4"})
    assert is_proved(again, again.application.query(PATH, b"c", 0, True))
    assert again.store.verify() == 3


def clear_application(path: str) -> None:
    """Change a store into one of an older version, which does not name its application."""
    with closing(sqlite3.connect(path)) as at, at:
        at.execute("UPDATE chain SET application = ''")


@pytest.mark.sqlite
def test_merkle_refuses_a_chain_of_another_application(open_chain: Open) -> None:
    chain = open_chain()
    make_block(chain, b"a=1")
    chain.close()
    clear_application(chain.store.location.path)

    with pytest.raises(StoreError, match="no state of this application at height 1"):
        open_chain(application=MerkleKVStore)


@pytest.mark.sqlite
def test_another_application_refuses_a_merkle_chain(open_chain: Open) -> None:
    chain = open_chain(application=MerkleKVStore)
    make_block(chain, b"a=1")
    chain.close()
    clear_application(chain.store.location.path)

    other = open_chain()
    with pytest.raises(StoreError, match="state differs from the state after block 1"):
        other.produce()
    other.close()

    again = open_chain(application=MerkleKVStore)
    make_block(again, b"b=2")
    assert again.application.query(PATH, b"a", 0, False).value == b"1"


def test_a_block_that_was_not_committed_is_executed_again_alike(chain: EmbeddedChain) -> None:
    make_block(chain, b"a=1")
    app = chain.store.abci
    assert app is not None
    request = _request(2, {b"b": b"2"})

    assert app.finalize_block(request) == app.finalize_block(request)
    assert make_block(chain, b"b=2") == 2
    assert chain.reads.results(2).app_hash == app.finalize_block(request).app_hash


KEYS = st.binary(min_size=1, max_size=3).filter(lambda key: key != b"val" and b"=" not in key)
VALUES = st.binary(min_size=1, max_size=8).filter(lambda value: b"=" not in value)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=12), max_size=7))
def test_every_value_of_every_retained_height_is_proved(
    blocks: list[dict[bytes, bytes]],
) -> None:
    runner = Runner(Brief)
    states: dict[int, dict[bytes, bytes]] = {0: {}}
    hashes = {0: app_hash({})}
    for height, pairs in enumerate(blocks, 1):
        states[height] = states[height - 1] | pairs
        hashes[height] = runner.block(pairs)

    for height in range(max(len(blocks) - 2, 1), len(blocks) + 1):
        assert hashes[height] == app_hash(states[height])
        for name, value in states[height].items():
            found = runner.app.query(PATH, name, height, True)
            assert found.value == value
            assert root_of(found.proof_ops, (b"main", name), value) == hashes[height]


class Runner:
    """An application over a dictionary, without a chain."""

    def __init__(self, application: type[MerkleKVStore]) -> None:
        self.state = DictState()
        self.app = application(self.state)
        self.height = 0
        self.state.apply(self.app.init_chain(Genesis("c", 0)).changes)

    def block(self, pairs: dict[bytes, bytes]) -> bytes:
        self.height += 1
        execution = self.app.finalize_block(_request(self.height, pairs))
        self.state.apply(execution.changes)
        return execution.app_hash


def _request(height: int, pairs: dict[bytes, bytes]) -> BlockRequest:
    txs = tuple(name + b"=" + value for name, value in pairs.items())
    members = ValidatorSet(())
    return BlockRequest(height, 0, txs, (), b"", b"", Commit(), members, members)
