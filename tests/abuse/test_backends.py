"""Tests of an app's faulty backends: each call gets an error, and the node continues."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from flask import Flask, Request

from flask_noderpc import MemoryChain, NodeRPC
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE

from ..helpers.http import get

CHAIN = make_chain()
SECRET = "the password of the database"


class Faulty(MemoryChain):
    """A chain that runs a given fault when a block is read, once ``broken`` is set."""

    def __init__(self, fault: Any) -> None:
        super().__init__(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state)
        self.fault: Any = fault
        self.broken = True

    def block(self, height: int) -> Any:
        if not self.broken:
            return super().block(height)
        return self.fault() if callable(self.fault) else self.fault


def raises(error: BaseException) -> Any:
    def fault() -> None:
        raise error

    fault.__name__ = f"raises {error!r}"
    return fault


def _name(fault: Any) -> str:
    # The ID is the same in each process that runs tests.
    return getattr(fault, "__name__", repr(fault))


FAULTS = [
    None,
    42,
    "garbage",
    (),
    ({}, {}),
    raises(RuntimeError(SECRET)),
    raises(OSError(SECRET)),
    raises(MemoryError(SECRET)),
    raises(RecursionError(SECRET)),
    raises(KeyError(SECRET)),
]


@pytest.mark.parametrize("fault", FAULTS, ids=_name)
@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_a_fault_is_an_error_of_its_call_and_of_no_other(
    fault: Any, dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Faulty(fault)
    client = app_for(ChainBackend(chain), dialect=dialect).test_client()
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": method}
        for number, method in enumerate(("health", "block", "health"))
    ]

    first, failed, last = client.post("/", json=calls).get_json()
    by_get = client.get("/block")

    assert first["result"] == last["result"] == {}
    assert failed["error"]["code"] == by_get.get_json()["error"]["code"] == -32603
    assert by_get.status_code == 500
    assert SECRET not in str(failed) + by_get.text
    assert "Traceback" in caplog.text

    chain.broken = False
    assert client.get("/block").status_code == 200


def test_a_hanging_backend_blocks_only_its_caller() -> None:
    asked, goes_on = threading.Event(), threading.Event()

    def hangs() -> None:
        asked.set()
        goes_on.wait(PATIENCE)
        raise RuntimeError

    with serve(app_for(ChainBackend(Faulty(hangs)))) as url:
        waiting = threading.Thread(target=get, args=(f"{url}/block",))
        waiting.start()
        assert asked.wait(PATIENCE)
        for _ in range(20):
            assert get(f"{url}/health").status == 200
        goes_on.set()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def test_a_hanging_authorize_hook_blocks_only_its_caller() -> None:
    asked, goes_on = threading.Event(), threading.Event()

    def authorize(_request: Request, method: str) -> bool:
        if method == "block":
            asked.set()
            goes_on.wait(PATIENCE)
        return method == "health"

    app = Flask("guarded")
    backend = ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))
    NodeRPC(app, backend=backend, authorize=authorize)
    with serve(app) as url:
        found: list[int] = []
        waiting = threading.Thread(target=lambda: found.append(get(f"{url}/block").status))
        waiting.start()
        assert asked.wait(PATIENCE)
        assert get(f"{url}/health").status == 200
        goes_on.set()
        waiting.join(PATIENCE)
        assert found == [403]


def test_credentials_are_neither_logged_nor_echoed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    client = app_for(
        ChainBackend(Faulty(raises(RuntimeError("fault")))), log_calls=True
    ).test_client()
    headers = {"Authorization": f"Bearer {SECRET}", "Cookie": f"session={SECRET}"}
    message = [
        client.get("/block", headers=headers),
        client.get(f"/block?height={SECRET}", headers=headers),
        client.post("/", data=f'{{"id":1,"method":"nosuch","x":"{SECRET}"', headers=headers),
        client.get("/openapi.json", headers=headers),
        client.get("/nosuch", headers=headers),
    ]
    assert SECRET not in caplog.text
    assert [SECRET in answer.text for answer in message] == [False, True, False, False, False]
