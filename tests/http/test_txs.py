"""Tests of transactions from the client's side: sent, refused, awaited, found again."""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.node import app_for

from ..helpers.http import client_call, client_get, client_post
from ..helpers.until import PATIENCE

BROADCASTS = ["broadcast_tx_sync", "broadcast_tx_async", "broadcast_tx_commit"]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(
        tmp_path / "chain.db",
        clock=ManualClock(),
        produce=False,
        limits=MempoolLimits(max_tx_bytes=100, max_txs=3),
    )
    made.start()
    yield made
    made.close()


@pytest.fixture
def client(chain: EmbeddedChain) -> FlaskClient:
    return app_for(chain, broadcast_timeout=0.2, max_waiting_calls=1).test_client()


def send(client: FlaskClient, method: str, tx: bytes) -> Any:
    return client_call(client, method, {"tx": b64encode(tx).decode()})


def waiting(client: FlaskClient) -> int:
    return int(client_call(client, "num_unconfirmed_txs")["result"]["total"])


class Producer(threading.Thread):
    """A thread that makes a block as soon as a transaction is pending."""

    def __init__(self, chain: EmbeddedChain) -> None:
        super().__init__()
        self._chain = chain

    def run(self) -> None:
        if self._chain.store.wait_for_pending(PATIENCE):
            self._chain.produce()


def test_a_committed_transaction_is_found_by_its_hash_with_a_proof(
    client: FlaskClient, chain: EmbeddedChain
) -> None:
    result = commit(chain, b"name=satoshi")

    assert (result["height"], result["check_tx"]["code"]) == ("1", "0")
    assert result["tx_result"]["code"] == "0"
    assert result["hash"] == sha256(b"name=satoshi").hexdigest().upper()
    found = client_get(client, f"/tx?hash=0x{result['hash']}&prove=true").json["result"]
    assert b64decode(found["tx"]) == b"name=satoshi"
    assert_proves(client, found)
    answer = client_get(client, '/abci_query?data="name"').json["result"]["response"]
    assert bytes.fromhex(answer["value"]) == b"satoshi"


def assert_proves(client: FlaskClient, found: Any) -> None:
    header = client_get(client, f"/header?height={found['height']}").json["result"]["header"]
    proof = found["proof"]["proof"]
    leaf = sha256(b"\x00" + sha256(b64decode(found["tx"])).digest()).digest()
    assert found["proof"]["root_hash"] == header["data_hash"]
    assert b64decode(proof["leaf_hash"]) == leaf
    assert (
        hashes.root([sha256(b64decode(found["tx"])).digest()]).hex().upper()
        == (header["data_hash"])
    )


def test_a_block_that_does_not_come_is_waited_for_no_longer_than_the_setting(
    client: FlaskClient,
) -> None:
    answer = client_get(client, '/broadcast_tx_commit?tx="late=1"')

    error = answer.json["error"]
    assert (answer.status, error["code"]) == (500, -32603)
    assert error["data"].startswith("timed out waiting for tx to be included in a block")
    assert "NODERPC_BROADCAST_TIMEOUT" in error["data"]
    assert waiting(client) == 1


def test_a_call_beyond_the_waiter_limit_is_refused(
    client: FlaskClient, chain: EmbeddedChain
) -> None:
    patient = app_for(chain, broadcast_timeout=PATIENCE, max_waiting_calls=1).test_client()
    replies: list[Any] = []
    first = threading.Thread(
        target=lambda: replies.append(send(patient, "broadcast_tx_commit", b"seat=1"))
    )
    first.start()
    assert chain.store.wait_for_pending(PATIENCE)

    error = send(patient, "broadcast_tx_commit", b"seat=2")["error"]
    chain.produce()
    first.join()

    assert error["code"] == -32603
    assert "1 calls are already waiting; raise NODERPC_MAX_WAITING_CALLS" in error["data"]
    assert replies[0]["result"]["height"] == "1"
    # The refused call leaves nothing behind, and its place is free again.
    assert waiting(client) == 0
    assert send(patient, "broadcast_tx_commit", b"noequals")["result"]["height"] == "0"


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[EmbeddedChain]:
    """A chain whose cache holds one transaction, so that others may be sent again."""
    limits = MempoolLimits(cache_size=1)
    made = EmbeddedChain(
        tmp_path / "forgetful.db", clock=ManualClock(), produce=False, limits=limits
    )
    made.start()
    yield made
    made.close()


def commit(chain: EmbeddedChain, tx: bytes) -> Any:
    """Return the response to ``broadcast_tx_commit``, while a block is made."""
    producer = Producer(chain)
    producer.start()
    client = app_for(chain, broadcast_timeout=PATIENCE).test_client()
    result = send(client, "broadcast_tx_commit", tx)["result"]
    producer.join()
    return result


def test_a_transaction_committed_again_is_answered_with_its_new_block(
    forgetful: EmbeddedChain,
) -> None:
    answers = [commit(forgetful, tx) for tx in (b"again=1", b"other=1", b"again=1")]

    assert [answer["height"] for answer in answers] == ["1", "2", "3"]


def test_a_transaction_that_fails_the_second_time_is_answered_with_its_failure(
    forgetful: EmbeddedChain,
) -> None:
    key = b64encode(PrivateKey(b"\x77" * 32).public.value)
    join, leave = (b"val=ed25519!" + key + power for power in (b"!1", b"!0"))

    answers = [commit(forgetful, tx) for tx in (join, leave, b"other=1", leave)]

    assert [answer["height"] for answer in answers] == ["1", "2", "3", "4"]
    assert [answer["tx_result"]["code"] for answer in answers] == ["0", "0", "0", "3"]


@pytest.mark.parametrize("method", BROADCASTS)
def test_a_transaction_sent_twice_is_refused_with_the_text_of_nodes(
    client: FlaskClient, chain: EmbeddedChain, method: str
) -> None:
    chain.mempool.submit(b"twice=1")
    prefix = "error on broadcastTxCommit: " if method.endswith("commit") else ""

    answer = client_get(client, f'/{method}?tx="twice=1"')

    assert (answer.status, answer.json["error"]["code"]) == (400, -32603)
    assert answer.json["error"]["data"] == f"{prefix}tx already exists in cache"
    chain.produce()
    assert send(client, method, b"twice=1")["error"] == answer.json["error"]


@pytest.mark.parametrize("method", BROADCASTS)
def test_a_transaction_over_the_limit_is_refused_and_names_the_setting(
    client: FlaskClient, method: str
) -> None:
    error = send(client, method, b"k=" + b"x" * 99)["error"]

    assert error["code"] == -32603
    assert "Tx too large. Max size is 100, but got 101" in error["data"]
    assert "NODERPC_MAX_TX_BYTES" in error["data"]


@pytest.mark.parametrize("method", BROADCASTS)
def test_a_full_mempool_error_has_count_and_bytes(
    client: FlaskClient, chain: EmbeddedChain, method: str
) -> None:
    for index in range(3):
        chain.mempool.submit(b"full=%d" % index)

    error = send(client, method, b"one=more")["error"]

    assert error["code"] == -32603
    assert "mempool is full: number of txs 3 (max: 3)" in error["data"]


@pytest.mark.parametrize("tx", [b"", b"noequals", b"=", b"a=b=c", b"\xff\x00"])
def test_a_tx_refused_by_check_tx_has_its_code_and_is_not_pending(
    client: FlaskClient, tx: bytes
) -> None:
    checked, synced = send(client, "check_tx", tx), send(client, "broadcast_tx_sync", tx)
    committed = send(client, "broadcast_tx_commit", tx)["result"]
    unheard = send(client, "broadcast_tx_async", tx)["result"]

    assert (checked["result"]["code"], synced["result"]["code"]) == ("2", "2")
    assert (committed["check_tx"]["code"], committed["height"]) == ("2", "0")
    assert unheard["code"] == "0"
    assert waiting(client) == 0


def test_a_check_leaves_nothing_behind(client: FlaskClient) -> None:
    first, second = (send(client, "check_tx", b"a=1") for _ in range(2))

    assert first == second
    assert first["result"]["gas_wanted"] == "1"
    assert waiting(client) == 0


@pytest.mark.parametrize(("limit", "shown"), [("1", 1), ("2", 2), ("0", 3), ("-1", 3)])
def test_unconfirmed_txs_respects_limit(
    client: FlaskClient, chain: EmbeddedChain, limit: str, shown: int
) -> None:
    for index in range(3):
        chain.mempool.submit(b"k=%d" % index)

    result = client_call(client, "unconfirmed_txs", {"limit": limit})["result"]

    assert [b64decode(tx) for tx in result["txs"]] == [b"k=%d" % i for i in range(shown)]
    assert (result["n_txs"], result["total"], result["total_bytes"]) == (str(shown), "3", "9")


def test_a_transaction_of_many_bytes_comes_back_whole(tmp_path: Path) -> None:
    chain = EmbeddedChain(tmp_path / "large.db", clock=ManualClock(), produce=False)
    client = app_for(chain).test_client()
    tx = b"large=" + bytes(range(1, 58)) * 12_000
    assert b"=" not in tx[6:]

    hashed = send(client, "broadcast_tx_sync", tx)["result"]["hash"]
    chain.produce()

    found = client_call(client, "tx", {"hash": hashed})["result"]
    chain.close()
    assert b64decode(found["tx"]) == tx


def test_an_empty_chain_gives_clear_errors(client: FlaskClient) -> None:
    status = client_call(client, "status")["result"]["sync_info"]
    assert (status["latest_block_height"], status["catching_up"]) == ("0", True)
    assert status["latest_block_time"] == "1970-01-01T00:00:00Z"
    for path in ("/block", "/commit", "/header", "/block_results", "/block?height=1"):
        answer = client_get(client, path)
        assert (answer.status, answer.json["error"]["code"]) == (404, -32603)
    sentence = client_get(client, "/blockchain").json["error"]["data"]
    assert sentence == "min height 1 can't be greater than max height 0"
    assert client_post(client, '{"id":1,"method":"validators"}').json["result"]["total"] == "1"
