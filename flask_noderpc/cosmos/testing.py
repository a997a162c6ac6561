"""Development node with a chain like the Cosmos SDK's, on a free port of the loopback
interface."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..chain.embedded import EmbeddedChain
from ..chain.from_settings import chain_from_settings
from ..domain.abci import ExecTxResult
from ..errors import TxRejected
from ..protocol.comet import hashes
from ..settings import read_settings
from ..testing.node import app_for, serve
from .bank.dev import MNEMONIC, accounts_of
from .bank.faucet import send
from .protocol import bech32
from .staking import faults

_SETTINGS = {
    "application": "bank",
    "dev": True,
    "dialect": "comet-0.38",
    "rest": True,
    # Seconds: make a block as soon as a transaction is pending.
    "block_interval": 0.001,
    # A test may make many blocks before its snapshot is reverted to.
    "bank_heights": 100_000,
}

_FIRST_BLOCK_S = 30.0


@dataclass(frozen=True, slots=True)
class BankNode:
    """A running node: its URL for clients, and control of its chain."""

    url: str
    """URL for CosmJS and other clients, with the node RPC and REST."""
    mnemonic: str
    """Mnemonic of the accounts at ``m/44'/118'/0'/0/0`` to 9."""
    accounts: tuple[str, ...]
    """Addresses of ten accounts, each with 1,000,000,000,000 stake and token."""
    validator: str
    """Address of the operator of the chain's validator, which is the first account."""
    chain: EmbeddedChain

    def mine(self, blocks: int = 1, time: int | None = None) -> int:
        """Make blocks now; return the last height. ``time`` is the first block's, in seconds
        since 1970."""
        return self.chain.control.mine(blocks, time)

    def increase_time(self, seconds: int) -> None:
        """Advance the clock for later blocks."""
        self.chain.control.shift(seconds)

    def fail_next_tx(
        self, code: int, codespace: str = "sdk", log: str = "", *, check: bool = False
    ) -> None:
        """Let the next transaction fail with a code in its block; with ``check``, when it is
        sent."""
        result = ExecTxResult(code=code, log=log, codespace=codespace)
        self.chain.control.fail_next_tx(result, in_check=check)

    def miss_blocks(self, validator: str, blocks: int) -> None:
        """Let the validator with this address, such as :attr:`validator`, miss the next
        blocks."""
        faults.change(self.chain, lambda known: known.miss_blocks(validator, blocks))

    def equivocate(self, validator: str) -> None:
        """Let the next block have evidence that a validator signed two blocks."""
        faults.change(self.chain, lambda known: known.equivocate(validator))

    def freeze(self, on: bool = True) -> None:
        """Keep all transactions pending and make empty blocks, until called with
        ``on=False``."""
        self.chain.control.freeze(on)

    def faucet(self, address: str, coins: str) -> str:
        """Send coins such as ``10token`` from the first account; return the transaction's hash
        in hex."""
        raw, check = send(self.chain, address, coins)
        if check.code:
            raise TxRejected(check.log)
        return hashes.tx_hash(raw).hex().upper()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Take a snapshot of the chain, and revert the chain to it on exit."""
        number = self.chain.control.snapshot()
        try:
            yield
        finally:
            self.chain.control.revert(number)


@contextmanager
def run_bank_node(folder: Path | None = None, **settings: Any) -> Iterator[BankNode]:
    """Run a node that immediately makes a block for each transaction.

    ``settings`` are settings of the mount and the chain, such as ``block_interval`` and
    ``empty_blocks`` to make blocks at an interval.
    """
    given = {**_SETTINGS, **settings}
    with tempfile.TemporaryDirectory() as scratch:
        chosen = read_settings({}, given)
        chain = chain_from_settings(chosen, folder or Path(scratch))
        try:
            chain.start()
            # CosmJS does not connect to a chain without a block.
            chain.reads.wait_for_height(0, _FIRST_BLOCK_S)
            with serve(app_for(chain, **given)) as url:
                accounts = tuple(accounts_of(chain.reads.genesis()))
                prefix, operator = bech32.decode(accounts[0])
                validator = bech32.encode(f"{prefix}valoper", operator)
                yield BankNode(url, MNEMONIC, accounts, validator, chain)
        finally:
            chain.close()
