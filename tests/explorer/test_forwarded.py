"""Tests of pages that call another node for the state, which can respond with anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import MemoryChain, explorer_bp
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.capabilities import (
    FORWARDED_CALLS,
    Capability,
    ForwardedCalls,
)
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.errors import ForwardedCallFailed, UpstreamUnavailable
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for

from ..ethereum.protocol.signing import TO, transfer
from .abi_forms import entry
from .html import Html

RAW = transfer(0, to=TO, data="0x01020304", gas=100_000)
READ = keccak(b"f()")[:4].hex()
FORM = {"abi": json.dumps([entry("function", "f") | {"stateMutability": "view"}]), "read": READ}

Respond = Callable[[str], bytes]


class OtherNode(ForwardedCalls):
    """A node that responds to all calls as ``respond`` says."""

    respond: Respond = staticmethod(lambda method: b"null")

    def call(self, method: str, params: bytes) -> bytes:
        return self.respond(method)

    def close(self) -> None:
        pass


class Forwarding(ChainBackend):
    """A chain with an Ethereum transaction, whose state another node has."""

    def __init__(self, node: OtherNode) -> None:
        maker = ChainMaker()
        block = maker.block(RAW)
        values = {
            b"ethereumTxHash": f"0x{keccak(RAW).hex()}".encode(),
            b"txIndex": b"0",
            b"txGasUsed": b"50000",
        }
        event = Event("ethereum_tx", tuple(EventAttribute(k, v) for k, v in values.items()))
        results = tuple(replace(each, events=(event,)) for each in block.results.tx_results)
        block = replace(block, results=replace(block.results, tx_results=results))
        super().__init__(MemoryChain(maker.genesis, [block, maker.block()], state=maker.state))
        self._node = node

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        return {FORWARDED_CALLS: self._node}


NODE = OtherNode()
# One app is enough, as each app compiles its templates.
APP = app_for(Forwarding(NODE), json_rpc_enable=True, evm_api=("eth", "net", "debug"))
APP.register_blueprint(explorer_bp)


@pytest.fixture
def client() -> FlaskClient:
    return APP.test_client()


def respond_with(body: bytes | Exception, code: bytes | None = None) -> Respond:
    def respond(method: str) -> bytes:
        found = code if method == "eth_getCode" and code is not None else body
        if isinstance(found, Exception):
            raise found
        return found

    return respond


MALFORMED = (
    *(b"null", b"1", b"true", b"{}", b"[]", b'""', b'"zz"', b'"0x1"', b'"0xzz"'),
    *(b'"0x' + b"f" * 5_000 + b'"', b'{"calls":null}', b'{"calls":[{}]}', b'{"calls":[1]}'),
    # A trace of 600 calls in one another.
    b'{"calls":[' * 600 + b"]}" * 600,
)
FAILURES = (
    UpstreamUnavailable("http://node", "connection refused"),
    ForwardedCallFailed({"code": -32601, "message": "the method does not exist"}),
    ForwardedCallFailed({"code": "x", "message": None, "data": {"a": 1}}),
    ForwardedCallFailed({"code": 3, "message": "execution reverted", "data": "0xzz"}),
    ForwardedCallFailed({}),
)


@pytest.mark.parametrize("code", [None, b'"0x6001"'], ids=["no code", "code"])
@pytest.mark.parametrize("body", [*MALFORMED, *FAILURES], ids=lambda body: repr(body)[:30])
def test_pages_bear_any_response_of_another_node(
    client: FlaskClient,
    body: bytes | Exception,
    code: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(NODE, "respond", respond_with(body, code))
    contract = f"/explorer/contract/{TO}"

    assert client.get(contract).status_code in (200, 404)
    assert client.post(contract, data=FORM).status_code in (200, 404)
    assert client.get(f"/explorer/account/{TO}").status_code == 200
    found = client.get(f"/explorer/tx/{sha256(RAW).hexdigest()}")
    assert "Gas used 50,000" in Html(found.text).text
    assert [each for each in caplog.records if each.exc_info] == []


def test_a_malformed_response_is_named(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NODE, "respond", respond_with(b"null", b'"0x6001"'))

    called = client.post(f"/explorer/contract/{TO}", data=FORM)
    account = client.get(f"/explorer/account/{TO}")

    assert "eth_call: expected hex digits, got None" in Html(called.text).text
    assert "eth_getBalance: expected hex digits, got None" in Html(account.text).text
