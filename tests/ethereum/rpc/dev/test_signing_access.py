"""Tests of access to development accounts."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_noderpc import ConfigurationError
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES
from tests.helpers.websocket import WebSocketClient

from .fixtures import FIRST, TYPED, asked, chain_of, dev_app

SIGNING: tuple[tuple[str, list[Any]], ...] = (
    ("eth_sendTransaction", [{"from": FIRST, "to": FIRST}]),
    ("eth_signTransaction", [{"from": FIRST, "to": FIRST}]),
    ("eth_requestAccounts", []),
    ("eth_sign", [FIRST, "0x00"]),
    ("personal_sign", ["0x00", FIRST]),
    ("eth_signTypedData", [FIRST, TYPED]),
    ("eth_signTypedData_v4", [FIRST, TYPED]),
    ("anvil_impersonateAccount", [FIRST]),
    ("anvil_stopImpersonatingAccount", [FIRST]),
    ("hardhat_impersonateAccount", [FIRST]),
    ("hardhat_stopImpersonatingAccount", [FIRST]),
    ("anvil_autoImpersonateAccount", [True]),
)


@pytest.mark.parametrize(("method", "params"), SIGNING)
def test_signing_is_limited_to_loopback(app: Flask, url: str, method: str, params: Any) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    client: Any = app.test_client()
    elsewhere = client.post("/evm", json=call, environ_base={"REMOTE_ADDR": "192.0.2.1"})
    batch = client.post("/evm", json=[call], headers={"X-Forwarded-For": "192.0.2.1"})
    page = client.post("/evm", json=call, headers={"Sec-Fetch-Site": "cross-site"})
    websocket = WebSocketClient(url, path="/evm/ws", headers={"Host": "node.example"})
    received = websocket.asked(method, params)
    websocket.close()

    for error in (elsewhere.json["error"], batch.json[0]["error"], received["error"]):
        assert error["message"].startswith("only callers on this machine may sign here (")
    assert "pages of another site may not change state" in page.json["error"]["message"]


@pytest.mark.parametrize("method", [route.name for route in DEV_ROUTES])
def test_no_method_of_development_answers_elsewhere(app: Flask, method: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": []}
    client: Any = app.test_client()
    answer = client.post("/evm", json=call, environ_base={"REMOTE_ADDR": "192.0.2.1"})
    assert "only callers on this machine" in answer.json["error"]["message"]


@pytest.mark.parametrize(("method", "params"), SIGNING)
def test_without_the_setting_nothing_signs(tmp_path: Path, method: str, params: Any) -> None:
    app = dev_app(tmp_path, dev=False)
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    client: Any = app.test_client()
    try:
        error = client.post("/evm", json=call).json["error"]
        accounts = client.post(
            "/evm", json={**call, "method": "eth_accounts", "params": []}
        ).json
    finally:
        chain_of(app).close()

    assert error["code"] == -32601
    assert error["message"].endswith("is not available (NODERPC_DEV enables it)")
    assert accounts["result"] == []


def test_rpc_modules_lists_the_development_namespaces(w3: Any) -> None:
    found = asked(w3, "rpc_modules")["result"]
    assert {"evm", "anvil", "hardhat", "eth"} <= set(found)


def test_another_application_has_no_such_accounts(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="expected an application with funded accounts"
    ):
        dev_app(tmp_path, application="kvstore")


def test_start_prints_the_development_accounts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "flask_noderpc.dev")
    made = dev_app(tmp_path, dev=False)
    chain_of(made).start()
    chain_of(made).close()
    assert not caplog.records

    again = dev_app(tmp_path)
    chain_of(again).start()
    chain_of(again).close()
    without, received = (record.getMessage() for record in caplog.records)
    assert "expected a chain with the development accounts in its genesis" in without
    assert "the keys of these accounts are public" in received
    for key in DEV_KEYS:
        assert key.secret.hex() in received
