"""Tests that ``verify`` names a changed value in a table of PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest
from click.testing import CliRunner

from flask_noderpc.backends.sql import values
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main
from flask_noderpc.errors import StoreError
from flask_noderpc.testing.chains import ChainMaker

from .conftest import Open

CHANGES = (
    (
        "app_state",
        "content = '\\x00' WHERE key = '\\x0102'",
        "app_state: the row of key 0x0102",
    ),
    ("app_state", "checksum = 7 WHERE key = '\\x0102'", "app_state: the row of key 0x0102"),
    ("metadata", "content = '\\x00'", "metadata: the row of key 0x6e6f7465"),
    ("mempool", "tx = '\\x00'", "mempool: transaction 1"),
    ("txs", "gas_used = gas_used + 1", "block 1"),
    ("tx_values", "event = event + 9", "block 1"),
    ("tx_values", "place = NULL, event = NULL", "block 1"),
    ("block_hashes", "hash = '\\x00' WHERE height = 2", "block 2"),
    ("tx_hashes", "place = place + 1 WHERE place >> 20 = 2", "height 2"),
)


@pytest.mark.parametrize(("table", "change", "message"), CHANGES)
def test_verify_names_what_has_changed(
    url: str, open_host: Open, maker: ChainMaker, table: str, change: str, message: str
) -> None:
    host = open_host(application=KVStore)
    host.init_chain(maker.genesis, maker.state)
    host.append_block(maker.block(b"a=1"), maker.block(b"b=1"))
    host._open().writer.run(lambda at: values.write_changes(at, {b"\1\2": b"value"}))
    host.set_metadata("note", b"left by a process")
    host.mempool.submit(b"waits=1")
    assert CliRunner().invoke(main, ["verify", url]).exit_code == 0
    with psycopg.connect(url) as at:
        assert at.execute(f"UPDATE {table} SET {change}".encode()).rowcount > 0

    found = CliRunner().invoke(main, ["verify", url])

    assert found.exit_code == 1
    assert message in found.output
    if table == "app_state":
        with pytest.raises(StoreError, match="0x0102 is damaged"):
            host.app_state.get(b"\1\2")
