"""The recorded chain, made again from the same genesis, key and transactions."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import Client

from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.validator_keys import LastSigned, validator_key_document
from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.cosmos.rest.view import RestMiddleware
from flask_noderpc.domain.time import from_text
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.node import app_for

from ...clients.record_bank import RECORDING as BANK
from ...clients.record_bank_rest import RECORDING

LAST = 7


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def _write_home(home: Path, genesis: dict[str, Any]) -> None:
    # CometBFT: ed25519.GenPrivKeyFromSecret.
    key = PrivateKey(sha256(genesis["chain_id"].encode()).digest())
    validator = json.loads(validator_key_document(key))
    config = home / "config"
    config.mkdir(parents=True)
    (config / "priv_validator_key.json").write_bytes(validator_key_document(key))
    # The key has not signed anything yet.
    (home / "data").mkdir()
    (home / "data" / "priv_validator_state.json").write_bytes(LastSigned().document())
    (config / "genesis.json").write_text(
        json.dumps(
            {
                **genesis,
                "validators": [{"pub_key": validator["pub_key"], "power": "100"}],
            }
        )
    )


def _chain(folder: Path) -> EmbeddedChain:
    recorded = _read(BANK)
    genesis = recorded["genesis"]
    _write_home(folder, genesis)
    clock = ManualClock(from_text(genesis["genesis_time"]))
    chain = EmbeddedChain(folder / "chain.db", application=Bank, clock=clock, produce=False)
    chain.start()
    (history,) = (each for each in recorded["scenarios"] if each["name"] == "queries")
    for block in history["blocks"]:
        for tx in block["txs"]:
            chain.mempool.submit(b64decode(tx["bytes"]))
        clock.advance(1)
        chain.produce()
    while chain.reads.latest_height() < LAST:
        clock.advance(1)
        chain.produce()
    return chain


@pytest.fixture(scope="session")
def recording() -> dict[str, Any]:
    return _read(RECORDING)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    made = _chain(tmp_path_factory.mktemp("chain"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def app(chain: EmbeddedChain) -> Flask:
    return app_for(chain, rest=True, dialect="comet-0.38")


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the app, which serves both REST and the node RPC."""
    return app.test_client()


@pytest.fixture
def rest(app: Flask) -> Client:
    """A client of the address that only serves REST."""
    (rule,) = app.url_map.iter_rules("noderpc.rest_cosmos")
    return Client(RestMiddleware(app, rule.rule))
