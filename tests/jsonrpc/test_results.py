"""Tests that equal calls that run at once are computed once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from flask_noderpc import COMETBFT_ROUTES, NoParams, Route, SQLiteBackend
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.dispatch import Dispatcher
from flask_noderpc.jsonrpc.waiters import AsyncTxs, ScanLimit, WaiterLimit
from flask_noderpc.settings import Settings
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.wire.dialects import DOCUMENT
from tests.helpers.until import PATIENCE, until

CLIENTS = 5


def results(tmp_path: Path, handle: Callable[[Context, NoParams], int]) -> list[str]:
    """Return what clients get that call a route at once; the handler runs when all of them
    have called."""
    route = Route("slow", handle, NoParams, int, chain_only=True)
    maker, arrived = ChainMaker(), list[None]()
    with closing(SQLiteBackend(tmp_path / "a.db")) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=1"))
        backend = ChainBackend(store.reads)
        context = Context(
            backend,
            Settings(),
            DOCUMENT.behaviours,
            DOCUMENT.node_version,
            DOCUMENT.encode,
            WaiterLimit(1, "NODERPC_X"),
            ScanLimit(1),
            AsyncTxs(backend),
        )
        dispatcher = Dispatcher(
            COMETBFT_ROUTES.with_custom([route]),
            DOCUMENT,
            context,
            lambda: arrived.append(None),
        )
        with ThreadPoolExecutor(CLIENTS) as pool:
            calls = [pool.submit(dispatcher.get, "slow", b"") for _ in range(CLIENTS)]
            until(lambda: len(arrived) == CLIENTS, "all calls")
            GO.set()
            replies = [call.result(PATIENCE) for call in calls]
    found = [json.loads(bytes(reply.body)) for reply in replies]
    return [str(each.get("result", "failed")) for each in found]


GO = threading.Event()


def test_equal_calls_are_computed_once(tmp_path: Path) -> None:
    ran: list[None] = []

    def handle(_ctx: Context, _params: NoParams) -> int:
        GO.wait(PATIENCE)
        ran.append(None)
        return len(ran)

    GO.clear()
    assert results(tmp_path, handle) == ["1"] * CLIENTS
    assert len(ran) == 1


def test_a_call_that_fails_is_no_answer_to_others(tmp_path: Path) -> None:
    ran: list[None] = []

    def handle(_ctx: Context, _params: NoParams) -> int:
        GO.wait(PATIENCE)
        ran.append(None)
        if len(ran) == 1:
            raise ValueError("only the first")
        return 7

    GO.clear()
    assert sorted(results(tmp_path, handle)) == ["7"] * (CLIENTS - 1) + ["failed"]
