"""Cost of reading a block as an Ethereum block: ``python -m benchmarks.ethereum``.

The block has a hundred transactions, each with a dynamic fee and a log, either bare or in
Cosmos SDK transactions. Prints milliseconds for its logs alone, its header, and its
transactions with their senders.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat

from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.protocol.blocks import Block, ethereum_block
from flask_noderpc.ethereum.protocol.trie import ordered_root
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.testing.chains import ChainMaker
from tests.ethereum.protocol.cosmos_txs import ethermint_message, wrapped
from tests.ethereum.protocol.signing import transfer

TXS = 100
_ROUNDS = 10


def _txs() -> list[bytes]:
    log = EmittedLog((b"\x11" * 32, b"\x22" * 32, b"\x33" * 32), bytes(32))
    data = log_calldata(log)
    return [transfer(nonce, to=log_contract(), value=0, data=data) for nonce in range(TXS)]


def _milliseconds(work: Callable[[], object]) -> float:
    return min(repeat(work, number=_ROUNDS, repeat=3)) / _ROUNDS * 1000


def _measure(name: str, txs: list[bytes]) -> None:
    maker = ChainMaker(application=EthermintDouble)
    made = maker.block(*txs)
    block_id, _ = hashes.block_id(made.block)
    params = maker.genesis.consensus_params

    def block() -> Block:
        return ethereum_block(
            block_id.hash, made.block.header, made.block.txs, made.results, params
        )

    logs = _milliseconds(lambda: block().logs)
    header = _milliseconds(lambda: block().header)
    transactions = _milliseconds(lambda: block().transactions)
    root = _milliseconds(lambda: ordered_root(txs))
    print(f"{name}: one root {root:.2f} ms")
    print(f"{name}: logs {logs:.1f} ms, header {header:.1f} ms, full {transactions:.1f} ms")


def main() -> None:
    """Measure bare and wrapped transactions."""
    txs = _txs()
    _measure("bare", txs)
    _measure("in Cosmos SDK transactions", [wrapped(ethermint_message(tx)) for tx in txs])


if __name__ == "__main__":
    main()
