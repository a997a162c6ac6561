"""Cost of recording internal calls: ``python -m benchmarks.evm_history``.

Two chains in one process make the same blocks in turns; one of them records the internal calls
of its transactions. Prints the time of a block of each, and their ratio, for blocks of 100
transfers, and for blocks of 100 calls of a contract that sends ether to two accounts. At the
end it reads the history of the busiest account, page by page.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from flask_noderpc import EmbeddedChain, jsoncodec
from flask_noderpc.backends.base.location import location_of
from flask_noderpc.chain.from_settings import application_named
from flask_noderpc.lru import CacheMemory
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.settings import Settings
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import CHAIN_ID, TO, sender, signed

_TXS = 100
_RICH = 10**30
_TARGETS = (b"\xa1" * 20, b"\xa2" * 20)
_PAYER = b"\xc0" * 20
# CALL with 1 wei for each target: PUSH1 0 four times, PUSH1 1, PUSH20, GAS, CALL, POP.
_CODE = b"".join(
    bytes.fromhex("60006000600060006001") + b"\x73" + target + b"\x5a\xf1\x50"
    for target in _TARGETS
)


def _chain(path: Path, *, records: bool) -> EmbeddedChain:
    own = Settings().changed(
        evm_record_calls=records, evm_chain_id=CHAIN_ID, evm_enable_tx_gas_limit=False
    )
    alloc = {
        f"0x{sender().hex()}": {"balance": hex(_RICH)},
        f"0x{_PAYER.hex()}": {"balance": hex(_RICH), "code": f"0x{_CODE.hex()}"},
    }
    chain = EmbeddedChain(
        path,
        application=application_named("evm", own, location_of(path).path, CacheMemory()),
        app_state=jsoncodec.encode({"alloc": alloc}),
        produce=False,
    )
    chain.start()
    return chain


def _tx(nonce: int, to: str) -> bytes:
    return signed(
        {
            "type": 2,
            "nonce": nonce,
            "to": to,
            "gas": 140_000,
            "value": 1,
            "maxFeePerGas": 10**15,
            "maxPriorityFeePerGas": 0,
            "chainId": CHAIN_ID,
        }
    )


def _seconds(chain: EmbeddedChain, txs: list[bytes]) -> float:
    for tx in txs:
        check = chain.mempool.submit(tx)
        assert check.code == 0, check.log
    started = time.perf_counter()
    height = chain.produce()
    took = time.perf_counter() - started
    assert len(chain.reads.block(height)[1].txs) == _TXS
    return took


def _pages(chain: EmbeddedChain, address: bytes) -> tuple[int, float]:
    """Return the number of transactions of an address, and the seconds for each page of 25."""
    client = app_for(chain, json_rpc_enable=True, evm_api=("noderpc",)).test_client()
    cursor, count, times = None, 0, list[float]()
    while True:
        params: list[Any] = [f"0x{address.hex()}", {"cursor": cursor}]
        call = {"jsonrpc": "2.0", "id": 1, "method": "noderpc_getTransactionsByAddress"}
        started = time.perf_counter()
        reply = client.post("/evm", json={**call, "params": params}).get_json()["result"]
        times.append(time.perf_counter() - started)
        count, cursor = count + len(reply["transactions"]), reply["cursor"]
        if cursor is None:
            return count, statistics.median(times)


@click.command(help=__doc__)
@click.option("--blocks", default=20, show_default=True, help="Blocks of each kind.")
def main(blocks: int) -> None:
    """Print the cost of recording internal calls."""
    kinds: dict[str, Callable[[int], bytes]] = {
        "transfers": lambda nonce: _tx(nonce, TO),
        "calls": lambda nonce: _tx(nonce, to_checksum(_PAYER)),
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        chains = [
            stack.enter_context(
                closing(_chain(Path(folder) / f"{records}.db", records=records))
            )
            for records in (False, True)
        ]
        nonce = 0
        for name, make in kinds.items():
            times: list[list[float]] = [[], []]
            for number in range(blocks + 2):
                txs = [make(nonce + each) for each in range(_TXS)]
                nonce += _TXS
                # The order changes, so that neither chain is always the first.
                for which in (0, 1) if number % 2 else (1, 0):
                    times[which].append(_seconds(chains[which], txs))
            # The first blocks fill caches.
            without, recorded = (statistics.median(each[2:]) for each in times)
            click.echo(
                f"a block of {_TXS} {name}: {without * 1000:.1f} ms, {recorded * 1000:.1f} ms"
                f" with internal calls recorded: {recorded / without:.2f}"
            )
        count, seconds = _pages(chains[1], _TARGETS[0])
        click.echo(f"{count} transactions of one account: {seconds * 1000:.1f} ms for a page")


if __name__ == "__main__":
    main()
