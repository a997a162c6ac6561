"""Tests that the kvstore has the version of the dialect in which its chain began."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.chain import home
from flask_noderpc.chain.applications.kvstore import VERSIONS, KVStore
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.extension import mounts
from flask_noderpc.testing.node import run_node

_UPDATE_038 = "0a220a20{key}100a"
# Records of a validator with the power 10, by `kvstore.go` of each CometBFT release.
RECORDS = {
    # This version's length is a signed varint.
    "0.34": "4c" + _UPDATE_038,
    "0.37": "26" + _UPDATE_038,
    "0.38": "26" + _UPDATE_038,
    "1.0": "2d100a1a20{key}2207" + b"ed25519".hex(),
}
FIRST_HASHES = {"0.34": "", "0.37": "", "0.38": "0" * 16, "1.0": "0" * 16}
ABCI = {"0.34": "0.17.0", "0.37": "1.0.0", "0.38": "2.0.0", "1.0": "2.1.0"}


@contextmanager
def served(folder: Path, dialect: str) -> Iterator[FlaskClient]:
    """Run the chain of a folder, with its first block."""
    app = Flask("host")
    NodeRPC(app, database=str(folder / "chain.db"), dialect=dialect, produce=False)
    (mount,) = mounts(app).values()
    chain = mount.backend
    assert isinstance(chain, EmbeddedChain)
    chain.start()
    if not chain.reads.latest_height():
        chain.produce()
    try:
        yield app.test_client()
    finally:
        chain.close()


def shown(client: FlaskClient, folder: Path) -> tuple[Any, Any, Any]:
    """Return the validator's entry, the first app hash, and the version in ``abci_info``."""
    key = home.load(folder, 0).validator_keys[0].public.value.hex()
    query = _result(client, f'/abci_query?path="/val"&data=0x{key}')["response"]
    header = _result(client, "/block?height=1")["block"]["header"]
    info = _result(client, "/abci_info")["response"]
    return query["value"], header["app_hash"], info["version"]


def _result(client: FlaskClient, path: str) -> Any:
    return json.loads(client.get(path).data)["result"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chain_has_the_kvstore_of_its_first_dialect(tmp_path: Path, version: str) -> None:
    with served(tmp_path, f"comet-{version}") as client:
        found = shown(client, tmp_path)

    key = home.load(tmp_path, 0).validator_keys[0].public.value.hex()
    record = base64.b64encode(bytes.fromhex(RECORDS[version].format(key=key))).decode()
    assert found == (record, FIRST_HASHES[version], ABCI[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_another_dialect_shows_the_bytes_that_the_chain_has(
    tmp_path: Path, version: str
) -> None:
    with served(tmp_path, f"comet-{version}") as client:
        before = shown(client, tmp_path)
    for other in VERSIONS:
        with served(tmp_path, f"comet-{other}") as client:
            assert shown(client, tmp_path) == before


def test_the_document_has_that_of_0_38(tmp_path: Path) -> None:
    with served(tmp_path, "document") as client:
        _, first_hash, abci = shown(client, tmp_path)

    assert (first_hash, abci) == (FIRST_HASHES["0.38"], ABCI["0.38"])


def test_the_fixtures_chain_has_that_of_their_dialect(tmp_path: Path) -> None:
    with run_node(tmp_path, dialect="comet-0.34") as node:
        node.produce()

        assert node.chain.application.info().version == ABCI["0.34"]
        assert node.chain.reads.block_meta(1).header.app_hash == b""


def test_a_version_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"expected one of 0\.34"):
        EmbeddedChain(
            tmp_path / "chain.db", application=lambda state: KVStore(state, version="0.33")
        )
