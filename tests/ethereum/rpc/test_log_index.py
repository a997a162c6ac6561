"""Tests that the index finds the logs that a scan of every block finds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import CommittedBlock, MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.sql import hits
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.cli import main
from flask_noderpc.domain.search import SearchLimits
from flask_noderpc.errors import SearchTooCostly
from flask_noderpc.ethereum.domain.records import LogSearch
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    failing_contract,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.index import log_heights
from flask_noderpc.ethereum.protocol.execution import transaction_hashes
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.cosmos_txs import ethermint_message, wrapped
from tests.ethereum.protocol.signing import transfer
from tests.helpers.stores import make_store
from tests.helpers.until import PATIENCE

# Few addresses and topics, so that several logs have them; a topic may be an address.
ADDRESSES = (log_contract(0), log_contract(1), failing_contract())
TOPICS = (b"\xaa" * 32, b"\xbb" * 32, log_contract(0).rjust(32, b"\0"))

a_log = st.builds(
    EmittedLog, st.lists(st.sampled_from(TOPICS), max_size=4).map(tuple), st.just(b"")
)
# For each transaction of each block: the contract that it calls, the logs that this emits, and
# whether it is wrapped in another transaction.
contents = st.lists(
    st.lists(
        st.tuples(st.sampled_from(ADDRESSES), st.lists(a_log, max_size=3), st.booleans()),
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)
hexes = {value: "0x" + value.hex() for value in (*ADDRESSES, *TOPICS)}
asked = st.fixed_dictionaries(
    {},
    optional={
        "address": st.lists(st.sampled_from(ADDRESSES).map(hexes.get), max_size=2),
        "topics": st.lists(
            st.none()
            | st.sampled_from(TOPICS).map(hexes.get)
            | st.lists(st.sampled_from(TOPICS).map(hexes.get), max_size=2),
            max_size=4,
        ),
        "fromBlock": st.integers(0, 5).map(hex) | st.just("earliest"),
        "toBlock": st.integers(0, 5).map(hex),
    },
)


Made = tuple[ChainMaker, Sequence[CommittedBlock]]


class Nonces:
    """Signs transactions with consecutive nonces."""

    def __init__(self) -> None:
        self._next = 0

    def call(self, to: bytes, logs: Sequence[EmittedLog], in_cosmos: bool) -> bytes:
        data = log_calldata(*logs)
        nonce, self._next = self._next, self._next + 1
        tx = transfer(nonce, to=to_checksum(to), data=data, value=0, gas=200_000)
        return wrapped(ethermint_message(tx)) if in_cosmos else tx


def chain_of(parts: Any) -> Made:
    maker, nonces = ChainMaker(application=EthermintDouble), Nonces()
    return maker, [maker.block(*(nonces.call(*each) for each in part)) for part in parts]


@contextmanager
def stored(chain: Made, folder: Path) -> Iterator[ChainStore]:
    maker, blocks = chain
    with closing(make_store(folder / "chain.db")) as backend:
        backend.init_chain(maker.genesis, maker.state)
        backend.append_block(*blocks)
        yield backend


def client_of(backend: Any) -> FlaskClient:
    return app_for(backend, json_rpc_enable=True).test_client()


def call(client: FlaskClient, method: str, *params: object) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/evm", json=body).get_json()
    return answer.get("result", answer.get("error"))


@settings(max_examples=40, deadline=None)
@given(contents, st.lists(asked, min_size=1, max_size=12))
def test_index_search_equals_a_full_scan(parts: Any, filters: list[dict[str, object]]) -> None:
    maker, blocks = chain_of(parts)
    scanned = client_of(ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state)))
    with TemporaryDirectory() as folder, stored((maker, blocks), Path(folder)) as backend:
        indexed = client_of(backend)
        for expected in filters:
            one, other = (call(each, "eth_getLogs", expected) for each in (indexed, scanned))
            assert one == other, expected
        for own in (h for b in blocks for tx in b.block.txs for h in transaction_hashes(tx)):
            found = call(indexed, "eth_getTransactionReceipt", "0x" + own.hex())
            assert found == call(scanned, "eth_getTransactionReceipt", "0x" + own.hex())
            assert found is not None


EMITTING = [[(ADDRESSES[0], [EmittedLog((topic,))], False)] for topic in TOPICS]
ALL = LogSearch((), (), 1, 4)


@pytest.fixture
def made() -> Made:
    """A chain with a block for each topic, and one without logs."""
    return chain_of([*EMITTING, []])


def test_only_blocks_that_may_have_the_logs_are_looked_at(made: Made, tmp_path: Path) -> None:
    with stored(made, tmp_path) as backend:
        for search, heights in (
            (ALL, (1, 2, 3)),
            (LogSearch((ADDRESSES[0],), ((), (TOPICS[0],)), 1, 4), ()),
            (LogSearch((ADDRESSES[0],), ((TOPICS[0], TOPICS[2]),), 1, 4), (1, 3)),
            (LogSearch((ADDRESSES[0],), ((TOPICS[0], TOPICS[2]),), 2, 4), (3,)),
            (LogSearch((ADDRESSES[1],), (), 1, 4), ()),
            (LogSearch((TOPICS[2][12:],), (), 1, 4), (1, 2, 3)),
        ):
            assert log_heights(backend, search, SearchLimits(PATIENCE)) == heights, search


def test_many_alternatives_are_listed_rather_than_looked_up(tmp_path: Path) -> None:
    # Half of two hundred logs have the topic.
    logs = [[EmittedLog(TOPICS[:1])] * 25, [EmittedLog()] * 25]
    chain = chain_of(
        [[(ADDRESSES[number % 2], logs[number % 2], False)] for number in range(8)]
    )
    others = tuple(number.to_bytes(20) for number in range(998))
    with stored(chain, tmp_path) as backend:
        search = LogSearch((*ADDRESSES[:2], *others), (TOPICS[:1],), 1, 8)
        # Looking them up would read 100,000 rows.
        assert log_heights(backend, search, SearchLimits(rows=5_000)) == (1, 3, 5, 7)


@pytest.mark.parametrize(
    "limits",
    [
        # Only SQLite counts steps; PostgreSQL has a time limit alone.
        pytest.param(SearchLimits(rows=1), marks=pytest.mark.sqlite),
        SearchLimits(seconds=1e-9),
    ],
)
def test_a_log_index_query_respects_the_search_limits(
    limits: SearchLimits, made: Made, tmp_path: Path
) -> None:
    with (
        stored(made, tmp_path) as backend,
        pytest.raises(SearchTooCostly, match="NODERPC_SEARCH_TIMEOUT"),
    ):
        log_heights(backend, ALL, limits)


@pytest.mark.sqlite  # The test reads the tables.
def test_a_chain_without_ethereum_pays_nothing(tmp_path: Path) -> None:
    maker = ChainMaker()
    with stored((maker, [maker.block(b"a=1", b"b=2")]), tmp_path):
        assert rows(tmp_path) == (0, 0)


def rows(folder: Path) -> tuple[int, int]:
    """Return the number of rows in the index, and of rows still to be indexed."""
    with closing(sqlite3.connect(folder / "chain.db")) as at:
        counted = at.execute(
            "SELECT (SELECT count(*) FROM evm_hits), (SELECT count(*) FROM evm_unindexed)"
        ).fetchone()
    return counted[0], counted[1]


@pytest.mark.sqlite  # The test reads the tables.
def test_without_the_extra_every_such_block_is_looked_at(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "0x" + transaction_hashes(made[1][0].block.txs[0])[0].hex()
    with monkeypatch.context() as patch:
        patch.setattr(hits, "_reader", lambda name: None)
        with stored(made, tmp_path) as backend:
            assert rows(tmp_path) == (0, 3)
            assert log_heights(backend, ALL, SearchLimits(PATIENCE)) == (1, 2, 3)
            assert call(client_of(backend), "eth_getTransactionReceipt", hidden) is not None

    # The store is indexed when it is opened with the log index.
    with closing(make_store(tmp_path / "chain.db")) as backend:
        search = LogSearch((), ((TOPICS[1],),), 1, 4)
        assert log_heights(backend, search, SearchLimits(PATIENCE)) == (2,)
        assert call(client_of(backend), "eth_getTransactionReceipt", hidden) is not None
    # Each block has four rows: its transaction, that it has a log, the log's address and its
    # topic.
    assert rows(tmp_path) == (12, 0)


@pytest.mark.sqlite  # The command opens the file.
@pytest.mark.parametrize("has_tables", [False, True])
def test_a_store_that_was_written_without_the_feature_is_indexed_later(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_tables: bool
) -> None:
    path, (maker, blocks) = tmp_path / "chain.db", made
    if has_tables:
        with closing(make_store(path)) as backend:
            backend.init_chain(maker.genesis, maker.state)
    with monkeypatch.context() as patch:
        # Make the feature look uninstalled, so that its declarations are missing.
        patch.setattr(hits, "_declared", dict)
        patch.setattr(hits, "_reader", lambda name: None)
        with closing(make_store(path)) as backend:
            if not has_tables:
                backend.init_chain(maker.genesis, maker.state)
            backend.append_block(*blocks)
        shown = CliRunner().invoke(main, ["verify", str(path)])
        assert shown.exit_code == 0, shown.output
        missing = "not verified: the index evm, as its feature is not installed"
        assert (missing in shown.output) is has_tables

    with closing(make_store(path)) as backend:
        assert log_heights(backend, ALL, SearchLimits(PATIENCE)) == (1, 2, 3)
    assert rows(tmp_path) == (12, 0)
    assert "index evm" not in CliRunner().invoke(main, ["verify", str(path)]).output
