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
    """The blocks after the first one and after a transaction's prove their states; no empty
    block follows these."""
    mount = {"application": "bank", "dialect": "comet-0.38", "dev": True}
    settings = read_settings({}, {**mount, "block_interval": 0.1})
    chain = chain_from_settings(settings, tmp_path)
    app_for(chain, **mount)
    try:
        chain.start()
        assert chain.reads.wait_for_height(1, PATIENCE) == 2
        assert chain.reads.wait_for_height(2, 0.3) == 2

        send(chain, dev_addresses()[1], "1stake")
        assert chain.reads.wait_for_height(3, PATIENCE) == 4
        assert chain.reads.wait_for_height(4, 0.3) == 4
        assert [len(chain.reads.block(height)[1].txs) for height in (2, 3, 4)] == [0, 1, 0]
        assert chain.reads.block(4)[1].header.app_hash == chain.reads.results(3).app_hash
    finally:
        chain.close()
