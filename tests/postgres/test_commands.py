"""Tests that commands accept a URL in place of a file."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from flask_noderpc.cli import main
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.testing.chains import ChainMaker


@pytest.fixture
def filled(host: PostgresBackend, maker: ChainMaker) -> None:
    host.append_block(*(maker.block(b"a=%d" % number) for number in range(5)))


@pytest.mark.usefixtures("filled")
def test_a_database_is_verified_and_pruned(url: str) -> None:
    run = CliRunner().invoke

    verified = run(main, ["verify", url])
    assert (verified.exit_code, "5 blocks verified" in verified.output) == (0, True)
    pruned = run(main, ["prune", url, "--retain", "2"])
    assert pruned.exit_code == 0, pruned.output
    assert "2 blocks verified" in run(main, ["verify", url]).output


@pytest.mark.usefixtures("filled")
def test_a_backup_is_refused_with_what_does_it(url: str, tmp_path: object) -> None:
    refused = CliRunner().invoke(main, ["backup", url, f"{tmp_path}/copy.db"])

    assert refused.exit_code
    assert "pg_dump" in refused.output


@pytest.mark.parametrize(
    ("database", "replica"),
    [("chain.db", "postgresql:///chain"), ("postgresql:///chain", "chain.db")],
)
def test_a_replica_of_a_file_is_refused(database: str, replica: str, tmp_path: object) -> None:
    stores = ["--database", database, "--read-database", replica]

    refused = CliRunner().invoke(main, ["start", "--home", f"{tmp_path}", *stores])

    assert refused.exit_code
    assert "NODERPC_READ_DATABASE" in refused.output


@pytest.mark.parametrize("command", ["verify", "start"])
def test_a_password_on_the_command_line_is_refused(command: str, tmp_path: object) -> None:
    secret = "postgresql://user:secret@127.0.0.1:1/chain"
    args = [secret] if command == "verify" else ["--database", secret, "--home", f"{tmp_path}"]

    refused = CliRunner().invoke(main, [command, *args])

    assert refused.exit_code
    assert "PGPASSFILE" in refused.output
    assert "secret" not in refused.output
