"""Tests of ``noderpc start``: the home of each chain, and homes of other chains."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from web3 import HTTPProvider, Web3

from flask_noderpc import ConfigurationError, EmbeddedChain
from flask_noderpc.backends.sql.packed.blocks import key_checksum
from flask_noderpc.chain import home
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore

from .node_process import ANY_PORTS, COMMAND, Node, refusal, run_start, started

PORTS = ("--rpc.laddr", "--api.address", "--json-rpc.address", "--json-rpc.ws-address")
ANYWHERE = [word for flag in PORTS for word in (flag, "127.0.0.1:0")]


def run_once(folder: Path, *flags: str) -> None:
    """Let a node make its home, and end it."""
    with started(folder, *flags) as node:
        node.until_up()
        assert node.end() == 0


def test_a_development_chain_uses_a_separate_folder(tmp_path: Path) -> None:
    command = ["env", f"HOME={tmp_path}", *COMMAND, *ANYWHERE]

    def chain_id(node: Node) -> str:
        node.until_up()
        found: str = node.get("/status")["node_info"]["network"]
        return found

    with started(tmp_path, "--json-rpc.enable", command=command, log="1") as node:
        first = chain_id(node)
        node.end()
    with started(tmp_path, "--dev", command=command, log="2") as node:
        assert chain_id(node) != first
        w3 = Web3(HTTPProvider(node.url("EVM JSON-RPC")))
        assert len(w3.eth.accounts) == 10
        node.end()
    with started(tmp_path, "--json-rpc.enable", command=command, log="3") as node:
        assert chain_id(node) == first
    assert (tmp_path / ".noderpc" / "dev-evm" / "data" / "noderpc.db").is_file()


def test_a_chain_of_the_bank_has_a_folder_and_a_dialect_of_its_own(tmp_path: Path) -> None:
    command = ["env", f"HOME={tmp_path}", *COMMAND, *ANYWHERE]
    bank = ("--application", "bank", "--dev")
    versions = []
    for log, more in enumerate([(), ("--dialect", "comet-0.37")]):
        with started(tmp_path, *bank, *more, command=command, log=str(log)) as node:
            node.until_up()
            versions.append(node.get("/status")["node_info"]["version"])
            node.end()

    assert [version.rpartition(".")[0] for version in versions] == ["0.38", "0.37"]
    assert (tmp_path / ".noderpc" / "dev-bank" / "data" / "noderpc.db").is_file()


@pytest.mark.parametrize(
    ("made_with", "asked", "words"),
    [
        ((), ("--dev",), "NODERPC_APPLICATION: expected 'kvstore', the application"),
        (("--dev",), (), "NODERPC_APPLICATION: expected 'evm', the application"),
        ((), ("--chain-id", "other"), "got 'other'; remove it to continue"),
    ],
)
def test_the_chain_of_another_is_refused_before_anything_listens(
    tmp_path: Path, made_with: tuple[str, ...], asked: tuple[str, ...], words: str
) -> None:
    run_once(tmp_path, *made_with)

    # An address that can't be bound would otherwise be the first error.
    nowhere = ("--rpc.laddr", "tcp://192.0.2.1:1")
    message = refusal("--home", str(tmp_path), *nowhere, *asked)

    assert str(tmp_path / "data" / "noderpc.db") in message
    assert words in message
    assert "--home" in message
    assert "\n" not in message


def test_a_version_of_the_application_that_is_not_known_is_refused(tmp_path: Path) -> None:
    run_once(tmp_path)
    with closing(sqlite3.connect(tmp_path / "data" / "noderpc.db")) as at, at:
        at.execute(
            "UPDATE app_state SET content = X'392E39', checksum = ?"
            " WHERE key = CAST('version' AS BLOB)",
            (key_checksum(b"version", b"9.9"),),
        )
        assert at.execute("SELECT changes()").fetchone() == (1,)

    (message,) = refusal("--home", str(tmp_path)).splitlines()

    assert "expected a kvstore of version 0.34, 0.37, 0.38, 1.0, got '9.9'" in message


def test_a_hosts_app_is_refused_the_chain_of_another(tmp_path: Path) -> None:
    run_once(tmp_path)
    (tmp_path / "hosts.py").write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, database={str(tmp_path / 'data' / 'noderpc.db')!r},"
        " application='merkle', rpc_laddr='tcp://192.0.2.1:1')\n"
    )
    app = str(tmp_path / "hosts.py")
    command = [sys.executable, "-m", "flask", "--app", app, "noderpc", "start"]

    message = refusal(command=command)

    assert "NODERPC_APPLICATION: expected 'kvstore', the application" in message


def made_by_hand(database: Path) -> None:
    chain = EmbeddedChain(database, application=KVStore, produce=False)
    chain.start()
    chain.close()


def test_a_chain_opens_only_with_its_application(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    made_by_hand(database)

    with (
        closing(EmbeddedChain(database, application=MerkleKVStore, produce=False)) as other,
        pytest.raises(ConfigurationError, match="NODERPC_APPLICATION: expected 'kvstore'"),
    ):
        other.start()
    with closing(EmbeddedChain(database, application=KVStore, produce=False)) as same:
        same.start()


def test_a_store_without_recorded_application_is_opened(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    made_by_hand(database)
    with closing(sqlite3.connect(database)) as at, at:
        at.execute("UPDATE chain SET application = ''")

    run_once(tmp_path, "--database", str(database), "--home", str(tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        "config/noderpc.toml",
        "config/config.toml",
        "config/genesis.json",
        "config/node_key.json",
        "config/priv_validator_key.json",
        "data/priv_validator_state.json",
    ],
)
def test_a_fifo_in_the_place_of_a_file_is_refused_with_its_path(
    tmp_path: Path, name: str
) -> None:
    home.create(tmp_path, "a-chain", 0)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)

    done = run_start("--home", str(tmp_path), *ANY_PORTS)

    assert f"{tmp_path / name}: expected a regular file, got a FIFO" in done.stderr
    assert done.returncode == 78
    assert "Traceback" not in done.stderr


def test_a_fifo_in_the_place_of_a_certificate_is_refused(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    os.mkfifo(certificate)
    key.touch()
    flags = "--rpc.tls_cert_file", str(certificate), "--rpc.tls_key_file", str(key)

    done = run_start("--home", str(tmp_path), *ANY_PORTS, *flags)

    assert "expected a regular file, got a FIFO" in done.stderr
    assert (str(certificate) in done.stderr, done.returncode) == (True, 78)
