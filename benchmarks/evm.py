"""Requests of the EVM layer, compared with anvil and with eth-tester behind a Flask view."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from flask_noderpc.ethereum.testing import ACCOUNTS
from flask_noderpc.protocol.secp256k1eth import to_checksum

from .compare import Bench, Row, by_turns, rows
from .peers import anvil, eth_tester
from .peers.cometbft import call
from .peers.ours import COMMON, START_COMMAND, WAYS, ours
from .process import Server, until
from .table import Table, of_rows
from .wrk import Ask, load

PEERS = (anvil.NAME, eth_tester.NAME)
_CHAIN_ID = eth_tester.CHAIN_ID
_SENDER, _WARM_S = 1, 4
# PUSH1 42, PUSH1 0, MSTORE; PUSH1 7, PUSH1 32, PUSH1 0, LOG1; PUSH1 32, PUSH1 0, RETURN.
_RUNTIME = "602a600052" + "600760206000a1" + "60206000f3"
_CODE = f"0x70{_RUNTIME}6000526011600ff3"
_MANY, _BLOCKS = 10_000, 20


def _targets(of_anvil: float, of_eth_tester: float = 5.0) -> dict[str, dict[str, float]]:
    """Return the minimum ratios of noderpc start."""
    return {START_COMMAND: {anvil.NAME: of_anvil, eth_tester.NAME: of_eth_tester}}


_TARGET = {way: {anvil.NAME: 0.5, eth_tester.NAME: 5.0} for way in WAYS}


@dataclass(frozen=True, slots=True)
class Story:
    """The history of a chain: blocks of ten transactions, with a log each."""

    contract: str
    blocks: tuple[str, ...]
    txs: tuple[str, ...]

    @property
    def block(self) -> str:
        """The first block."""
        return self.blocks[0]

    @property
    def tx(self) -> str:
        """The first transaction."""
        return self.txs[0]


WORKLOADS: dict[str, tuple[Callable[[Story], tuple[Any, ...]], Any]] = {
    "eth_blockNumber": (lambda _: (), {}),
    "eth_getBlockByNumber": (lambda told: (told.block, True), _TARGET),
    "eth_getLogs": (
        lambda told: (
            {"fromBlock": told.block, "toBlock": told.block, "address": told.contract},
        ),
        _TARGET,
    ),
    "eth_getTransactionReceipt": (lambda told: (told.tx,), _TARGET),
    "eth_call": (lambda told: ({"to": told.contract, "gas": "0x186a0"}, "latest"), {}),
}


# The number of the request makes its parameters differ from all others.
UNCACHED: dict[str, tuple[Callable[[Story, int], tuple[Any, ...]], Any]] = {
    "eth_blockNumber": (lambda told, number: (), {}),
    "eth_getLogs": (
        lambda told, number: (
            {
                "fromBlock": told.blocks[number % len(told.blocks)],
                "toBlock": told.blocks[number % len(told.blocks)],
                "address": told.contract,
            },
        ),
        _targets(0.5),
    ),
    "eth_getTransactionReceipt": (
        lambda told, number: (told.txs[number % len(told.txs)],),
        _targets(0.5),
    ),
    "eth_call": (
        lambda told, number: (
            {"to": told.contract, "gas": "0x186a0", "data": f"0x{number:08x}"},
            "latest",
        ),
        _targets(0.4, 3.0),
    ),
}


def compare(bench: Bench) -> Table:
    """Return the table of all requests of the EVM layer."""
    with _servers(bench) as (servers, told):
        found = list(_rows(bench, servers, told))
    with _servers(bench, cache_bytes=0) as (servers, told):
        found += _uncached(bench, servers, told)
    return of_rows("evm", PEERS, found)


@contextmanager
def _servers(bench: Bench, **more: Any) -> Iterator[tuple[dict[str, Server], dict[str, Story]]]:
    """Yield our servers, with more settings, and their peers, with the history of each."""
    with ExitStack() as stack:
        servers = {way: stack.enter_context(chain(way, bench.scratch, **more)) for way in WAYS}
        with bench.may_miss(anvil.NAME):
            servers[anvil.NAME] = stack.enter_context(anvil.anvil(_CHAIN_ID))
        with bench.may_miss(eth_tester.NAME):
            servers[eth_tester.NAME] = stack.enter_context(eth_tester.eth_tester())
        told = {peer: _tell(server) for peer, server in servers.items()}
        for way in WAYS:
            # Executors start with the first calls, and take a while.
            with servers[way].awake():
                call_code = body("eth_call", *WORKLOADS["eth_call"][0](told[way]))
                load(servers[way].url, Ask(bodies=(call_code,)), _WARM_S)
        yield servers, told


def _uncached(
    bench: Bench, servers: dict[str, Server], told: dict[str, Story]
) -> Iterator[Row]:
    for method, (params, targets) in UNCACHED.items():

        def reading(peer: str, method: str = method, params: Any = params) -> Ask:
            numbers = range(_MANY)
            return Ask(
                bodies=tuple(body(method, *params(told[peer], number)) for number in numbers)
            )

        name = f"{method}, uncached"
        yield from rows(name, by_turns(bench, name, servers, reading), targets)


@contextmanager
def chain(way: str, scratch: Path, **more: Any) -> Iterator[Server]:
    """Run a new chain of ours that makes a block each second."""
    home = Path(mkdtemp(dir=scratch))
    settings = {
        **COMMON,
        "database": str(home / "noderpc.db"),
        "application": "evm",
        "dev": True,
        "json_rpc_enable": True,
        "evm_api": "eth,net,web3,txpool,debug",
        "evm_chain_id": _CHAIN_ID,
        "mempool_size": 1_000_000,
        **more,
    }
    with ours(way, home, settings) as server:
        yield server


def _rows(bench: Bench, servers: dict[str, Server], told: dict[str, Story]) -> Iterator[Row]:
    for method, (params, targets) in WORKLOADS.items():

        def reading(peer: str, method: str = method, params: Any = params) -> Ask:
            return Ask(bodies=(body(method, *params(told[peer])),))

        yield from rows(method, by_turns(bench, method, servers, reading), targets)
    if eth_tester.NAME in servers:
        with servers[eth_tester.NAME].awake():
            ask(servers[eth_tester.NAME], "evm_setAutomine", True)

    def sending(peer: str) -> Ask:
        own = ACCOUNTS[_SENDER].address
        first = int(ask(servers[peer], "eth_getTransactionCount", own, "pending"), 16)
        raw = [_transfer(first + number) for number in range(10_000 * bench.seconds)]
        bodies = tuple(body("eth_sendRawTransaction", one) for one in raw)
        # One connection, because each transaction must come after the one before.
        return Ask(bodies=bodies, connections=1, only_once=True)

    name = "eth_sendRawTransaction"
    yield from rows(name, by_turns(bench, name, servers, sending), _targets(0.6, 0.0))


def body(method: str, *params: Any) -> str:
    """Return the body of a JSON-RPC call."""
    return json.dumps({**call(method), "params": params})


def ask(server: Server, method: str, *params: Any) -> Any:
    """Return the result of a call."""
    told = reply(server, method, *params)
    if "result" not in told:
        raise click.ClickException(f"{method}: {told}")
    return told["result"]


def reply(server: Server, method: str, *params: Any) -> Any:
    """Return the response to a call, which may be an error."""
    return json.loads(server.ask(body=body(method, *params)))


def _tell(server: Server) -> Story:
    """Send the same transactions to each chain; return its history."""
    with server.awake():
        # `noderpc start --dev` mines each transaction; anvil with a block time does not.
        ask(server, "evm_setAutomine", False)
        (receipt,) = _mined(server, [_signed(0, 0, data=_CODE, to="")])
        contract = str(receipt["contractAddress"])
        # eth-account accepts only addresses with a checksum.
        to, turn = to_checksum(bytes.fromhex(contract[2:])), 0
        blocks, txs = list[str](), list[str]()
        while len(blocks) < _BLOCKS:
            # eth-tester accepts only one transaction of an account for a block.
            nonces = enumerate([turn + 1] + [turn] * (len(ACCOUNTS) - 1))
            turn += 1
            found = _mined(server, [_signed(who, nonce, to=to) for who, nonce in nonces])
            assert all(receipt["logs"] for receipt in found)
            # If the chain makes blocks by the clock, a block may come between two transactions.
            if len({receipt["blockNumber"] for receipt in found}) == 1:
                blocks.append(found[0]["blockNumber"])
                txs += [receipt["transactionHash"] for receipt in found]
        return Story(contract, tuple(blocks), tuple(txs))


def _mined(server: Server, raw: list[str]) -> list[Any]:
    """Send transactions; return their receipts."""
    hashes = [ask(server, "eth_sendRawTransaction", one) for one in raw]
    ask(server, "evm_mine")

    def receipts() -> list[Any]:
        return [ask(server, "eth_getTransactionReceipt", one) for one in hashes]

    until(lambda: None not in receipts(), "all transactions in blocks")
    return receipts()


@cache
def _transfer(nonce: int) -> str:
    return _signed(_SENDER, nonce, to="0x" + "22" * 20, value=1, gas=21_000)


def _signed(who: int, nonce: int, **fields: Any) -> str:
    from eth_account import Account

    tx = {
        "chainId": _CHAIN_ID,
        "nonce": nonce,
        "gas": 200_000,
        "value": 0,
        "maxFeePerGas": 5 * 10**9,
        "maxPriorityFeePerGas": 10**9,
        **fields,
    }
    signed = Account.from_key(ACCOUNTS[who].key).sign_transaction(tx)
    return "0x" + bytes(signed.raw_transaction).hex()
