"""Blocks of a development chain whose modules change the state in each block."""

from __future__ import annotations

from pathlib import Path

from flask_noderpc.chain.from_settings import chain_from_settings
from flask_noderpc.cosmos.bank.dev import dev_addresses
from flask_noderpc.cosmos.bank.faucet import send
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import app_for

from ...helpers.until import PATIENCE


def test_only_transactions_trigger_blocks(tmp_path: Path) -> None:
    """The block after a transaction's proves its state; no empty block follows it."""
    mount = {"application": "bank", "dialect": "comet-0.38", "dev": True}
    settings = read_settings({}, {**mount, "block_interval": 0.1})
    chain = chain_from_settings(settings, tmp_path)
    app_for(chain, **mount)
    try:
        chain.start()
        assert chain.reads.wait_for_height(0, PATIENCE) == 1
        assert chain.reads.wait_for_height(1, 0.3) == 1

        send(chain, dev_addresses()[1], "1stake")
        assert chain.reads.wait_for_height(2, PATIENCE) == 3
        assert chain.reads.wait_for_height(3, 0.3) == 3
        assert [len(chain.reads.block(height)[1].txs) for height in (1, 2, 3)] == [0, 1, 0]
        assert chain.reads.block(3)[1].header.app_hash == chain.reads.results(2).app_hash
    finally:
        chain.close()
