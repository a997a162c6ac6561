"""Tests that ``noderpc verify`` computes the app hash of each application from its state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc.backends.sql.packed.blocks import key_checksum
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.from_settings import chain_from_settings
from flask_noderpc.cli import main
from flask_noderpc.settings import Settings

from ..cosmos.bank.bank_txs import Draft

pytestmark = pytest.mark.sqlite


def fill(chain: EmbeddedChain, application: str) -> None:
    """Produce three blocks; for some applications they have a transaction."""
    chain.start()
    for number in range(3):
        if application in ("kvstore", "merkle"):
            chain.mempool.submit(b"key%d=value%d" % (number, number))
        if application == "bank":
            chain.mempool.submit(Draft(sequence=number, chain_id="state").signed())
        chain.produce()


def make(application: str, folder: Path) -> Path:
    settings = Settings(
        database=str(folder / "chain.db"),
        application=application,
        chain_id="state",
        dev=application in ("bank", "evm"),
        produce=False,
    )
    if application == "evm":
        # Without the history contract, whose former values are records that no block needs.
        settings = settings.changed(evm_hardfork="cancun")
    with closing(chain_from_settings(settings, folder)) as chain:
        fill(chain, application)
    return folder / "chain.db"


def verify(path: Path) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["verify", str(path)])
    return found.exit_code, found.output


def forge(path: Path, where: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change or remove a row of the state, with a checksum that fits."""
    with closing(sqlite3.connect(path)) as at, at:
        key, content = at.execute(
            f"SELECT key, content FROM app_state WHERE {where} ORDER BY key DESC LIMIT 1"
        ).fetchone()
        changed = change(content)
        if changed is None:
            at.execute("DELETE FROM app_state WHERE key = ?", (key,))
        else:
            at.execute(
                "UPDATE app_state SET content = ?, checksum = ? WHERE key = ?",
                (changed, key_checksum(key, changed), key),
            )


def other(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


def removed(content: bytes) -> None:
    return None


@pytest.mark.parametrize("application", ["kvstore", "merkle", "bank", "evm"])
def test_an_untouched_state_is_verified(application: str, tmp_path: Path) -> None:
    code, output = verify(make(application, tmp_path))

    assert (code, output) == (0, "3 blocks verified\n")


def begins(column: str, text: str) -> str:
    return f"substr({column}, 1, {len(text)}) = CAST('{text}' AS BLOB)"


_NODE, _VALUE = begins("key", "node:"), begins("content", "value")
_IS_WRITTEN = (
    "EXISTS (SELECT 1 FROM app_state AS o"
    f" WHERE {begins('o.key', 'old/')} AND instr(o.key, app_state.key))"
)
STATES = (
    ("kvstore", "key = CAST('size' AS BLOB)", lambda _: b"77", "the state after block 3"),
    ("merkle", f"{_NODE} AND {_VALUE}", other, "does not prove the value of key"),
    ("merkle", f"{_NODE} AND NOT {_VALUE}", removed, "does not prove the value of key"),
    ("merkle", begins("key", "place:"), removed, "got 2: restore"),
    (
        "bank",
        f"{begins('key', 'bank/')} AND {_IS_WRITTEN}",
        other,
        "the stored writes of block ",
    ),
    ("evm", "length(key) = 32", other, "of the state of block 3"),
    ("evm", "length(key) = 32", removed, "of the state of block 3"),
)


@pytest.mark.parametrize(("application", "where", "change", "message"), STATES)
def test_a_forged_state_is_noticed_by_the_app_hash(
    application: str,
    where: str,
    change: Callable[[bytes], bytes | None],
    message: str,
    tmp_path: Path,
) -> None:
    path = make(application, tmp_path)
    forge(path, where, change)

    code, output = verify(path)

    assert code == 1
    assert "blocks verified" not in output
    assert "app_state" in output or application == "kvstore"
    assert message in output


def test_an_application_that_is_not_known_here_is_named(tmp_path: Path) -> None:
    path = make("kvstore", tmp_path)
    with closing(sqlite3.connect(path)) as at, at:
        at.execute("UPDATE chain SET application = 'mine'")

    code, output = verify(path)

    assert code == 0
    assert "not verified: the app hash of the state, as the application 'mine' is not" in output
