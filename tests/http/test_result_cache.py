"""Tests that cached results equal computed ones, whichever process produces the blocks."""

from __future__ import annotations

import gc
import tracemalloc
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from flask_noderpc.backends.base.application import ApplicationAccess
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.signals import rpc_called
from flask_noderpc.testing.node import app_for
from tests.helpers.stores import make_store

from ..chain.test_control import opened
from . import chain as sample

DIALECTS = ("document", "comet-0.34", "comet-0.37", "comet-0.38", "comet-1.0")


def text(value: str) -> str:
    return quote(f'"{value}"')


PATHS = (
    "/health",
    "/status",
    "/blockchain",
    "/blockchain?minHeight=2&maxHeight=5",
    *(f"/block?height={height}" for height in range(9)),
    "/block",
    "/header",
    "/header?height=3",
    "/block_results",
    "/block_results?height=2",
    *(f"/commit?height={height}" for height in (1, 6, 7, 8)),
    "/commit",
    "/validators",
    "/validators?height=8&page=1&per_page=2",
    "/validators?height=1&page=9",
    "/consensus_params",
    "/consensus_params?height=8",
    "/genesis",
    "/genesis_chunked",
    "/genesis_chunked?chunk=1",
    "/block_by_hash?hash=0x" + "00" * 32,
    "/tx?hash=0x" + "00" * 32,
    f"/tx_search?query={text('tx.height>0')}",
    f"/tx_search?query={text('tx.height>0')}&prove=true&per_page=1",
    f"/block_search?query={text('block.height>2')}",
    f"/block_search?query={text('block.height')}",
    "/unconfirmed_txs",
    "/abci_info",
    f"/abci_query?data={text('name')}",
)
# Headers that depend on the moment, or that only cached responses have.
OF_THE_MOMENT = {"X-Server-Time", "ETag"}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sample.PeeredBackend]:
    made = sample.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


def answer(client: FlaskClient, path: str) -> Any:
    return client.get(path).get_json()


def told(client: FlaskClient, path: str) -> tuple[object, ...]:
    found = client.get(path)
    headers = {k: v for k, v in found.headers.items() if k not in OF_THE_MOMENT}
    return found.status, headers, found.data


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_route_answers_the_same_uncached_and_cached(
    backend: sample.PeeredBackend, dialect: str
) -> None:
    without = app_for(backend, dialect=dialect, cache_bytes=0).test_client()
    keeping = app_for(backend, dialect=dialect).test_client()
    for path in PATHS:
        expected = told(without, path)
        assert [told(keeping, path) for _ in range(2)] == [expected, expected], path


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(tmp_path / "chain.db", clock=ManualClock(), produce=False, dev=True)
    made.start()
    yield made
    made.close()


@pytest.mark.sqlite  # PostgreSQL: within poll_s, tests/postgres
def test_a_commit_of_one_process_is_visible_in_another_at_once(chain: EmbeddedChain) -> None:
    other = make_store(chain.store.location.path)
    client = app_for(other).test_client()
    for number in range(1, 30):
        chain.mempool.submit(b"k%d=v" % number)
        height = chain.produce()
        latest = answer(client, "/status")["result"]["sync_info"]["latest_block_height"]
        assert latest == str(height)
        assert answer(client, "/block")["result"]["block"]["header"]["height"] == latest
        found = answer(client, f"/tx_search?query={text('tx.height>0')}")["result"]
        assert found["total_count"] == str(number)
    other.close()


@pytest.mark.sqlite  # PostgreSQL: within poll_s, tests/postgres
def test_abci_query_answers_are_cached_per_state(chain: EmbeddedChain) -> None:
    other = EmbeddedChain(chain.store.location.path, produce=False)
    client = app_for(other, dialect="comet-0.38").test_client()
    path = f"/abci_query?data={text('name')}"
    for number in range(1, 10):
        chain.mempool.submit(b"name=%d" % number)
        height = chain.produce()
        for _ in range(2):
            message = client.get(path)
            response = message.get_json()["result"]["response"]
            assert b64decode(response["value"]) == b"%d" % number
            assert response["height"] == str(height)
            told = answer(client, "/abci_info")["result"]["response"]
            assert told["last_block_height"] == str(height)
        headers = {"If-None-Match": message.headers["ETag"]}
        assert client.get(path, headers=headers).status_code == 304
    other.close()


class Moody:
    """An application whose response changes with each query."""

    asked = 0

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        self.asked += 1
        return QueryResult(value=b"%d" % self.asked)


class MoodyApplication(Moody, KVStore):
    pass


class MoodyAccess(Moody, ApplicationAccess):
    pass


class MoodyBackend(EmbeddedChain):
    @property
    def application(self) -> ApplicationAccess:
        return self._moody

    _moody = MoodyAccess()


@pytest.mark.parametrize(
    ("backend_of", "application"),
    [(EmbeddedChain, MoodyApplication), (MoodyBackend, KVStore)],
    ids=["application", "backend"],
)
def test_nondeterministic_applications_are_not_cached(
    backend_of: type[EmbeddedChain], application: type[KVStore], tmp_path: Path
) -> None:
    made = backend_of(tmp_path / "chain.db", application=application, produce=False)
    made.start()
    made.produce()
    client = app_for(made, dialect="comet-0.38").test_client()
    for number in (1, 2, 3):
        message = client.get("/abci_query")
        response = message.get_json()["result"]["response"]
        assert b64decode(response["value"]) == b"%d" % number
        assert "ETag" not in message.headers
    made.close()


def test_cached_keys_count_toward_the_limit(chain: EmbeddedChain) -> None:
    chain.produce()
    client = app_for(chain, cache_bytes=1 << 20).test_client()
    tracemalloc.start()
    try:
        for number in range(30):
            call = {"method": "abci_query", "params": {"path": f"{number:06}" + "x" * 500_000}}
            message = client.post("/", json={"jsonrpc": "2.0", "id": 1, **call}).get_json()
            assert "result" in message
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The cache keeps the last of thirty blocks, and as many others as fit.
    assert now < 5_000_000


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_the_calls_of_a_batch_read_one_snapshot(chain: EmbeddedChain, cache_bytes: int) -> None:
    client = app_for(chain, cache_bytes=cache_bytes, max_batch=20).test_client()
    for _ in range(3):
        before = chain.produce()
        methods = ("status", "block", "header", "commit", "status", "validators", "block")
        calls = [
            {"jsonrpc": "2.0", "id": number, "method": name}
            for number, name in enumerate(methods)
        ]

        def grow(_: object, **told: object) -> None:
            chain.produce()

        with rpc_called.connected_to(grow):
            replies = client.post("/", json=calls).get_json()
        assert chain.reads.latest_height() == before + len(calls)
        status, block, header, commit, again, validators, last = (
            reply["result"] for reply in replies
        )
        for found in (status, again):
            assert found["sync_info"]["latest_block_height"] == str(before)
        for found in (block["block"], header, commit["signed_header"], last["block"]):
            assert found["header"]["height"] == str(before)
        assert validators["block_height"] == str(before + 1)
        # The status read before the change must not be served now.
        latest = answer(client, "/block")["result"]["block"]["header"]["height"]
        assert latest == str(chain.reads.latest_height())


def test_a_search_in_a_batch_reads_the_current_state(chain: EmbeddedChain) -> None:
    client = app_for(chain).test_client()
    chain.produce()
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "block"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "block_search",
            "params": {"query": "block.height>0"},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "status"},
    ]

    def grow(_: object, method: str, **told: object) -> None:
        if method == "block":
            chain.produce()

    with rpc_called.connected_to(grow):
        block, found, status = (
            reply["result"] for reply in client.post("/", json=calls).get_json()
        )
    assert block["block"]["header"]["height"] == "1"
    heights = [one["block"]["header"]["height"] for one in found["blocks"]]
    assert (found["total_count"], sorted(heights)) == ("2", ["1", "2"])
    assert status["sync_info"]["latest_block_height"] == "2"


def test_a_call_sees_the_commit_of_an_earlier_one_in_its_batch(tmp_path: Path) -> None:
    made = EmbeddedChain(tmp_path / "chain.db", schedule=BlockSchedule(interval_s=0.01))
    client = app_for(made).test_client()
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "status"},
        {"jsonrpc": "2.0", "id": 2, "method": "broadcast_tx_commit", "params": {"tx": "YT0x"}},
        {"jsonrpc": "2.0", "id": 3, "method": "block"},
    ]
    _, committed, block = client.post("/", json=calls).get_json()
    made.close()
    header = block["result"]["block"]["header"]
    assert int(header["height"]) >= int(committed["result"]["height"])


def test_a_call_sees_the_block_an_earlier_one_in_its_batch_waited_for(tmp_path: Path) -> None:
    schedule = BlockSchedule(interval_s=0.2, empty_blocks=True)
    made = EmbeddedChain(tmp_path / "chain.db", schedule=schedule)
    client = app_for(made).test_client()
    for _ in range(3):
        newest = answer(client, f"/events?waitTime={text('10s')}")["result"]["newest"]
        wait = {"after": newest, "wait_time": "10s"}
        calls = [
            {"jsonrpc": "2.0", "id": 1, "method": "status"},
            {"jsonrpc": "2.0", "id": 2, "method": "events", "params": wait},
            {"jsonrpc": "2.0", "id": 3, "method": "status"},
        ]
        _, told, status = client.post("/", json=calls).get_json()
        height, _, _ = told["result"]["newest"].partition("-")
        assert int(status["result"]["sync_info"]["latest_block_height"]) >= int(height, 16)
    made.close()


def test_reverted_blocks_are_not_served_from_the_cache(tmp_path: Path) -> None:
    chain = opened(tmp_path / "chain.db")
    client, control = app_for(chain).test_client(), chain.control
    control.mine(2)
    before = control.snapshot()
    control.mine()
    first = answer(client, "/block?height=3")["result"]
    control.revert(before)
    assert "error" in answer(client, "/block?height=3")
    control.mine(time=2_000_000_000)
    assert answer(client, "/block?height=3")["result"] != first
    chain.close()


def test_pruned_blocks_are_not_served_from_the_cache(chain: EmbeddedChain) -> None:
    client = app_for(chain).test_client()
    chain.control.mine(5)
    assert "result" in answer(client, "/block?height=2")
    chain.store.prune(2)
    message = answer(client, "/block?height=2")["error"]["data"]
    assert "lowest height is 4" in message


def test_an_answer_that_a_client_has_is_not_sent_again(backend: sample.PeeredBackend) -> None:
    client = app_for(backend).test_client()
    first, latest = client.get("/block?height=2"), client.get("/block")
    assert first.headers["ETag"] != latest.headers["ETag"]
    again = client.get("/block?height=2", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
    other = client.get("/block", headers={"If-None-Match": first.headers["ETag"]})
    assert other.data == latest.data


@pytest.mark.parametrize("form", ["W/{}", '"other", W/{}', "{}", "*"])
def test_an_etag_that_a_proxy_has_weakened_is_known(
    backend: sample.PeeredBackend, form: str
) -> None:
    client = app_for(backend).test_client()
    etag = client.get("/block?height=2").headers["ETag"]

    again = client.get("/block?height=2", headers={"If-None-Match": form.format(etag)})

    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("form", ['"other"', '"*"', '"a,{}"', '"other", *'])
def test_other_etags_get_the_whole_answer(backend: sample.PeeredBackend, form: str) -> None:
    client = app_for(backend).test_client()
    etag = client.get("/block?height=2").headers["ETag"].strip('"')

    again = client.get("/block?height=2", headers={"If-None-Match": form.format(etag)})

    assert again.status_code == 200


def test_only_chain_only_answers_have_an_etag(backend: sample.PeeredBackend) -> None:
    client = app_for(backend).test_client()
    assert "ETag" not in client.get("/num_unconfirmed_txs").headers
    assert "ETag" not in client.get("/block?height=99").headers
    assert "ETag" not in client.post("/", json={"id": 1, "method": "status"}).headers
