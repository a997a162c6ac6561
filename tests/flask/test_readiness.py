"""Tests of ``/readyz``: 200 if calls are served and blocks produced, otherwise 503."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from flask_noderpc import ChainBackend, EmbeddedChain, NodeRPC, SQLiteBackend, noderpc_bp
from flask_noderpc.backends.base import health
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.errors import BackendError
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for
from tests.chain.fixtures import key, validator_tx, write_home
from tests.helpers.until import until

from .conftest import MakeApp

HALTED = (
    "no block is produced: expected keys with more than two thirds of the voting power,"
    " got 10 of 16"
)


def asked(backend: ChainBackend) -> TestResponse:
    return app_for(backend).test_client().get("/readyz")


def make_chain_of_one_key(folder: Path) -> EmbeddedChain:
    write_home(folder, {1: 10}, [1])
    return EmbeddedChain(folder / "chain.db", schedule=BlockSchedule(0.01, empty_blocks=True))


def test_a_node_that_answers_and_produces_blocks_is_ready(tmp_path: Path) -> None:
    with closing(EmbeddedChain(tmp_path / "chain.db")) as chain:
        answer = asked(chain)

        assert (answer.status_code, answer.text) == (200, "ready\n")


def test_a_chain_with_manual_blocks_stays_ready(tmp_path: Path) -> None:
    schedule = BlockSchedule(lease_s=0.001)
    with closing(
        EmbeddedChain(tmp_path / "chain.db", produce=False, schedule=schedule)
    ) as chain:
        chain.produce()
        expire(tmp_path / "chain.db", seconds=100)

        assert asked(chain).status_code == 200


def test_readyz_gives_the_halt_reason_in_every_process(
    tmp_path: Path,
) -> None:
    with (
        closing(make_chain_of_one_key(tmp_path)) as producer,
        closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as other,
    ):
        producer.start()
        producer.mempool.submit(validator_tx(key(2), 6))
        for chain in (producer, other):
            # Another process does not notice the moment in which the chain tries again.
            until(lambda: asked(chain).status_code == 503, "not ready")  # noqa: B023

            until(lambda: HALTED in asked(chain).text, HALTED)  # noqa: B023
            assert asked(chain).text.count("\n") == 1


def expire(database: Path, seconds: int) -> None:
    """Set the time at which the lease expired."""
    with closing(sqlite3.connect(database)) as store:
        store.execute("UPDATE lease SET expires = ?", (time.time_ns() - seconds * 10**9,))
        store.commit()


def test_readyz_reports_an_expired_lease(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    with closing(EmbeddedChain(database, produce=False)) as producer:
        producer.produce()
        with closing(EmbeddedChain(database, produce=False)) as other:
            assert asked(other).status_code == 200

            # Another process may acquire a lease that has just expired at any time.
            expire(database, seconds=0)
            assert asked(other).status_code == 200

            expire(database, seconds=100)
            answer = asked(other)
            assert answer.status_code == 503
            found = re.search(r"expired (\d+) seconds ago", answer.text)
            assert found
            assert int(found[1]) >= 100


def test_a_read_only_copy_is_ready_without_producer(tmp_path: Path) -> None:
    copy = tmp_path / "apart" / "copy.db"
    copy.parent.mkdir()
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as chain:
        chain.produce()
        chain.store.backup(copy)
    expire(copy, seconds=100)

    with closing(EmbeddedChain(copy, produce=False)) as served:
        assert asked(served).status_code == 200


def test_a_process_that_only_serves_is_not_ready_without_new_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer ended normally, and left neither an error nor a lease."""
    schedule = BlockSchedule(0.01, empty_blocks=True)
    database = tmp_path / "chain.db"
    with closing(EmbeddedChain(database, produce=False, schedule=schedule)) as serving:
        with closing(EmbeddedChain(database, schedule=schedule)) as producer:
            producer.start()
            until(lambda: producer.reads.latest_height() > 1, "a block")
            assert asked(serving).status_code == 200

        monkeypatch.setattr(health, "_LATE_S", 0.0)
        until(lambda: asked(serving).status_code == 503, "the newest block is late")

        newest = serving.reads.latest_height()
        text = f"no block is produced: the newest block, {newest}, is 0 seconds old"
        assert text in re.sub(r"\d+ seconds old", "0 seconds old", asked(serving).text)


def test_a_process_that_only_serves_does_not_know_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the process with the lease knows the interval."""
    monkeypatch.setattr(health, "_LATE_S", 0.0)
    database = tmp_path / "chain.db"
    rare = BlockSchedule(10_000.0, empty_blocks=True, lease_s=1_000.0)
    often = BlockSchedule(1e-9, empty_blocks=True)
    with (
        closing(EmbeddedChain(database, schedule=rare)) as producer,
        closing(EmbeddedChain(database, produce=False, schedule=often)) as serving,
    ):
        producer.start()
        until(lambda: producer.reads.latest_height() == 1, "a block")

        assert asked(serving).status_code == asked(producer).status_code == 200


@pytest.mark.parametrize(
    "schedule", [BlockSchedule(0.01), BlockSchedule(0.01, empty_blocks=True, manual=True)]
)
def test_blocks_that_are_not_due_are_not_late(
    schedule: BlockSchedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such blocks wait for a transaction, or for a call."""
    monkeypatch.setattr(health, "_LATE_S", -(10.0**9))
    with closing(
        EmbeddedChain(tmp_path / "chain.db", produce=False, schedule=schedule)
    ) as chain:
        chain.produce()

        assert asked(chain).status_code == 200


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as store:
        store.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('flask_noderpc', 'm999_later', '2030-01-01')"
        )
        store.commit()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b"no database" * 1000), "not a SQLite database"),
        (lambda path: path.unlink(), "gone|can't be opened|no chain"),
        (newer, "created by a newer flask-noderpc"),
    ],
)
def test_readyz_reports_an_unreadable_store_without_its_path(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "chain.db"
    sample = make_chain(3)
    with closing(SQLiteBackend(path)) as backend:
        backend.init_chain(sample.genesis, sample.state)
    damage(path)

    with closing(SQLiteBackend(f"{path.as_uri()}?mode=ro")) as backend:
        answer = asked(backend)
        client = app_for(backend).test_client()
        call = {"jsonrpc": "2.0", "id": 1, "method": "health"}
        health = [client.get("/health"), client.post("/", json=call)]
        status = client.get("/status")

    assert [each.get_json()["result"] for each in health] == [{}, {}]
    assert status.get_json()["error"]["code"] == -32603
    assert answer.status_code == 503
    assert answer.text.count("\n") == 1
    assert str(tmp_path) not in answer.text
    assert any(word in answer.text for word in message.split("|")), answer.text


def test_readyz_asks_a_custom_backend(tmp_path: Path) -> None:
    class Mirror(SQLiteBackend):
        def check_ready(self) -> None:
            raise BackendError("the mirror is 40 blocks behind")

    with closing(Mirror(tmp_path / "chain.db")) as mirror:
        answer = asked(mirror)

    assert (answer.status_code, answer.text) == (503, "the mirror is 40 blocks behind\n")


def test_a_node_that_can_t_start_is_not_ready(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app(NODERPC_HOME=str(tmp_path / "home"))
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "genesis.json").write_text("{")
    app.register_blueprint(noderpc_bp)

    answer = app.test_client().get("/readyz")

    assert answer.status_code == 503
    assert answer.text == "the node can't start; the server's log says why\n"


def test_the_host_may_have_the_path(make_app: MakeApp) -> None:
    app = make_app(NODERPC_EXCLUDE_ROUTES=["readyz"])
    app.add_url_rule("/readyz", "own", lambda: "the host's")
    app.register_blueprint(noderpc_bp)

    assert app.test_client().get("/readyz").text == "the host's"


def as_json(client: FlaskClient, **headers: str) -> TestResponse:
    return client.get("/readyz", headers={"Accept": "application/json", **headers})


def test_json_has_the_lowest_heights_the_store_and_the_lease(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with closing(EmbeddedChain(path)) as chain:
        chain.produce()
        client = app_for(chain).test_client()
        answer = as_json(client)
        owner = chain.store.lease_state().owner
        text = client.get("/readyz", headers={"Accept": "*/*"})

    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    found = answer.get_json()
    lease = found["store"].pop("lease")
    assert found["store"].pop("bytes") >= path.stat().st_size
    assert owner.startswith(f"{lease['holder']}@")
    assert lease["seconds_left"] > 0
    assert found == {
        "state": "ready",
        "reason": "",
        "missing": [],
        "notes": [],
        "lowest": {"blocks": 1, "results": 1, "index": 1},
        "measures": [],
        "store": {},
    }
    assert (text.mimetype, text.text) == ("text/plain", "ready\n")
    assert answer.headers["Vary"] == text.headers["Vary"] == "Accept"


def test_json_of_a_store_that_can_t_be_read(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    path.write_bytes(b"no database" * 1000)
    with closing(SQLiteBackend(path)) as backend:
        answer = as_json(app_for(backend).test_client())

    assert answer.status_code == 503
    found = answer.get_json()
    assert found.pop("reason")
    assert found == {"state": "not ready", "missing": [], "notes": []}


def test_json_for_callers_who_may_not_call_status(make_app: MakeApp) -> None:
    app = make_app()
    NodeRPC(app, authorize=lambda _, method: method != "status")

    answer = as_json(app.test_client())

    assert (answer.status_code, answer.get_json()) == (200, {"state": "ready"})
