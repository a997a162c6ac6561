"""Tests of the core without I/O: from a call to its response, by the rules of a dialect."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flask_noderpc import COMETBFT_ROUTES, MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.cometbft import blocks
from flask_noderpc.cometbft.blocks import AtHeight
from flask_noderpc.domain.block import Commit
from flask_noderpc.errors import ConfigurationError, StoreError
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.dispatch import Dispatcher
from flask_noderpc.jsonrpc.waiters import AsyncTxs, ScanLimit, WaiterLimit
from flask_noderpc.settings import Settings
from flask_noderpc.testing import make_chain
from flask_noderpc.wire.dialect import Dialect
from flask_noderpc.wire.dialects import DOCUMENT
from flask_noderpc.wire.envelope import Envelope


class ListsEnvelope(Envelope):
    """An envelope that answers every batch with a list, however short."""

    lone_reply_is_bare = False


NODES = replace(DOCUMENT, envelope=ListsEnvelope())


def context(dialect: Dialect) -> Context:
    backend = ChainBackend(MemoryChain(make_chain(5).genesis))
    return Context(
        backend,
        Settings(),
        dialect.behaviours,
        dialect.node_version,
        dialect.encode,
        WaiterLimit(1, "NODERPC_X"),
        ScanLimit(1),
        AsyncTxs(backend),
    )


def nothing() -> None:
    pass


def dispatcher(dialect: Dialect = DOCUMENT, ready: Callable[[], None] = nothing) -> Dispatcher:
    return Dispatcher(COMETBFT_ROUTES, dialect, context(dialect), ready)


@pytest.mark.parametrize(("dialect", "kind"), [(DOCUMENT, dict), (NODES, list)])
def test_a_batch_of_one_is_unwrapped_where_the_dialect_does(
    dialect: Dialect, kind: type
) -> None:
    reply = dispatcher(dialect).post(b'[{"id":1,"method":"health"}]')

    assert isinstance(json.loads(bytes(reply.body)), kind)


def test_a_get_of_a_route_that_is_not_there_is_not_found() -> None:
    reply = dispatcher().get("nosuch", {})

    assert (reply.status, reply.cacheable) == (404, False)
    assert json.loads(bytes(reply.body))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (StoreError("the disk is full"), "the disk is full"),
        (ConfigurationError("/home/me"), "the node can't start; the server's log says why"),
        (StoreError("is corrupt", "/home/me"), "is corrupt"),
        (OSError("/home/me"), "the call failed; the server's log says why"),
    ],
)
def test_every_call_fails_while_the_node_is_not_ready(error: Exception, data: str) -> None:
    def fail() -> None:
        raise error

    core = dispatcher(ready=fail)
    by_get, by_post = core.get("net_info", {}), core.post(b'{"id":5,"method":"net_info"}')

    expected: dict[str, Any] = {"code": -32603, "message": "Internal error", "data": data}
    assert (by_get.status, by_post.status) == (500, 200)
    assert json.loads(bytes(by_get.body)) == {"jsonrpc": "2.0", "id": -1, "error": expected}
    assert json.loads(bytes(by_post.body)) == {"jsonrpc": "2.0", "id": 5, "error": expected}


def test_readiness_is_checked_before_each_call_but_not_for_notifications() -> None:
    asked: list[int] = []
    core = dispatcher(ready=lambda: asked.append(1))

    core.post(
        b'[{"id":1,"method":"net_info"},{"method":"net_info"},{"id":2,"method":"net_info"}]'
    )
    core.post(b"no json")

    assert len(asked) == 2


def test_a_commit_is_not_canonical_when_a_block_arrives_while_it_is_read() -> None:
    chain = make_chain(6)

    class Growing(MemoryChain):
        def commit(self, height: int) -> Commit:
            found = super().commit(height)
            if self.latest_height() < len(chain.blocks):
                self.append_block(chain.blocks[self.latest_height()])
            return found

    growing = ChainBackend(Growing(chain.genesis, chain.blocks[:-1], state=chain.state))
    ctx = replace(context(DOCUMENT), backend=growing)

    first = blocks.commit(ctx, AtHeight(5))
    second = blocks.commit(ctx, AtHeight(5))

    assert first is not None
    assert second is not None
    assert (first.canonical, second.canonical) == (False, True)


def test_nothing_more_is_worked_out_once_a_batch_is_too_large() -> None:
    asked: list[int] = []
    small = replace(context(DOCUMENT), settings=replace(Settings(), max_response_bytes=100))
    core = Dispatcher(COMETBFT_ROUTES, DOCUMENT, small, lambda: asked.append(1))

    reply = core.post(b"[" + b",".join([b'{"id":1,"method":"genesis"}'] * 5) + b"]")

    assert len(asked) == 1
    assert bytes(reply.body).count(b"NODERPC_MAX_RESPONSE_BYTES") == 5
