"""Tests that random raw requests get the same bytes from the node's server and through Flask,
while blocks are made, and never an internal error."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from flask_noderpc.ethereum.rpc.examples import values_of
from flask_noderpc.server.app import PrefixMiddleware
from flask_noderpc.server.direct import ResponseCache
from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules import render
from tests.helpers.until import PATIENCE, PATIENT

from ..ethereum.rpc.evm_node import Running, tx
from ..http.test_result_cache import DIALECTS
from .raw_requests import Mutator, calls
from .test_response_cache import serving, without_clocks

pytestmark = pytest.mark.sqlite  # the chain's file is copied

IS_LONG = os.environ.get("NODERPC_CAMPAIGN") == "long"
# Number of connections, each with one to three requests.
CONNECTIONS = 10_000 if IS_LONG else 100
EACH_BLOCK = 15
# The EVM layer's own address is the same in each dialect.
SURFACES = [*((dialect, "node") for dialect in DIALECTS), (DIALECTS[-1], "evm")]
SETTINGS = {
    "evm_api": "eth,net,web3,txpool,debug",
    **PATIENT,
    "json_rpc_enable": True,
    "rpc_unsafe": True,
    "cors_origins": "https://page.example",
    "read_origins": "https://page.example",
    "allowed_hosts": "localhost",
    # No blocks are made while a call waits.
    "broadcast_timeout": 0.01,
}


@contextmanager
def opened(folder: Path) -> Iterator[Running]:
    node = Running(folder)
    try:
        yield node
    finally:
        node.chain.close()


def received(port: int, request: bytes) -> bytes:
    """Send a request and close the sending side; return everything that the server sends."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        parts = []
        while part := sock.recv(65_536):
            parts.append(part)
    return without_clocks(b"".join(parts))


@pytest.mark.parametrize(("dialect", "surface"), SURFACES)
def test_raw_requests_are_answered_as_by_flask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, surface: str
) -> None:
    monkeypatch.setattr(render, "MIN_BYTES", 300)
    seed = int.from_bytes(os.urandom(4)) if IS_LONG else SURFACES.index((dialect, surface))
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    with opened(one) as made:
        receipt = made.mine(tx(0), tx(1))[0]
    shutil.copytree(one, other)
    with opened(one) as first, opened(other) as second:
        apps = [app_for(node.chain, dialect=dialect, **SETTINGS) for node in (first, second)]
        values = values_of(receipt["blockHash"], receipt["transactionHash"], receipt["from"])
        raws = [tx(nonce) for nonce in range(2, 12)]
        corpus = calls(apps[0].test_client(), first.chain, values, raws)
        if surface == "evm":
            corpus = [replace(raw, target=b"/") for raw in corpus if raw.target == b"/evm"]
            for app in apps:
                app.wsgi_app = PrefixMiddleware(app.wsgi_app, "/evm")  # type: ignore[method-assign]
        mutator = Mutator(corpus, Random(seed))
        response_cache = ResponseCache(10_000_000)
        with (
            serving(apps[0], None, proxies=1) as flask,
            serving(apps[1], response_cache, proxies=1, surface=surface) as direct,
        ):
            for count in range(CONNECTIONS):
                if count % EACH_BLOCK == 0:
                    for node in (first, second):
                        node.clock.advance(1)
                        node.chain.produce()
                request = mutator.next()
                expected = received(flask.port, request)
                assert received(direct.port, request) == expected, (seed, count, request)
                assert b"the server's log" not in expected, (seed, count, request)
    assert direct.computed
