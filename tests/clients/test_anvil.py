"""Send the same signed transactions to anvil and to this node, and compare the members of
responses and their kinds.

Every difference is explained below, and each explained difference must exist.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from threading import Thread
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import FUNDS, EmittedLog, EthermintDouble
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.node import app_for, serve
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, LISTED, TO, signed
from tests.ethereum.rpc.chain import CONTRACT, TOPIC_A, emitting, transfer
from tests.helpers.websocket import WebSocketClient

from ..helpers.http import call
from ..helpers.require import skip_or_fail
from . import ANVIL

_PRICED = {"gas": 100_000, "gasPrice": 2 * 10**9, "value": 0, "chainId": CHAIN_ID, "to": TO}
TRANSACTIONS = [
    transfer(0),
    signed({**_PRICED, "nonce": 1}),
    signed({**_PRICED, "nonce": 2, "type": 1, "accessList": LISTED}),
    signed({**_PRICED, "nonce": 3, "to": ""}),
    emitting(4, EmittedLog(topics=(TOPIC_A,))),
]
WAITING = transfer(5)
# PUSH32 topic, PUSH1 0, PUSH1 0, LOG1, STOP.
CODE = f"0x7f{TOPIC_A.hex()}60006000a100"

_LATER = (
    "of forks after London, which an Ethermint chain has not: no blobs, no beacon chain",
    (
        "blobGasUsed",
        "excessBlobGas",
        "parentBeaconBlockRoot",
        "requestsHash",
        "withdrawals",
        "withdrawalsRoot",
    ),
)
_PENDING = "execution-apis and geth: null while the block is pending"
EXPLAINED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "genesis": (
        _LATER,
        (
            "events of the fee market belong to blocks, and this is a transaction",
            ("baseFeePerGas",),
        ),
    ),
    "block": (_LATER,),
    "pending block": (
        _LATER,
        (_PENDING, ("hash", "miner", "nonce")),
        (
            _PENDING,
            tuple(
                f"transactions[].{name}"
                for name in ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
            ),
        ),
    ),
    "receipts": (
        ("geth: of transactions with blobs alone", ("[].blobGasPrice",)),
        ("anvil alone has it, as a number", ("[].blockTimestamp",)),
    ),
    "newHeads": (
        _LATER,
        (
            "geth: a header has no more",
            ("size", "totalDifficulty", "transactions", "transactions[]", "uncles"),
        ),
    ),
    "waiting transaction": (("geth: null while it waits", ("blockTimestamp",)),),
    "newPendingTransactions": (("geth: null while it waits", ("blockTimestamp",)),),
    "transactions": (),
    "logs": (),
    "told logs": (),
}


@contextmanager
def anvil(*more: str) -> Iterator[str]:
    """Run anvil on a free port; it mines on request."""
    if not ANVIL.exists():
        skip_or_fail("no anvil for Linux: run `npm ci` in tests/clients/ethereum")
    words = [str(ANVIL), "--port", "0", "--chain-id", str(CHAIN_ID), "--no-mining", *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = next(line for line in process.stdout if line.startswith("Listening on"))
            # anvil logs each request, and would wait when the pipe is full.
            Thread(target=process.stdout.read, daemon=True).start()
            yield f"http://{found.split()[-1]}"
        finally:
            process.kill()


def ask(url: str, method: str, *params: Any) -> Any:
    return call(url, method, params).result


def hash_of(raw: bytes) -> str:
    return f"0x{decode(raw).hash.hex()}"


def read(url: str, client: WebSocketClient, mine: Any) -> dict[str, Any]:
    """Return what a node shows of the scenario."""
    kinds = {
        client.asked("eth_subscribe", params)["result"]: name
        for name, params in (
            ("newHeads", ["newHeads"]),
            ("told logs", ["logs", {}]),
            ("newPendingTransactions", ["newPendingTransactions", True]),
        )
    }
    for raw in TRANSACTIONS:
        assert ask(url, "eth_sendRawTransaction", f"0x{raw.hex()}") == hash_of(raw)
    mine()
    ask(url, "eth_sendRawTransaction", f"0x{WAITING.hex()}")
    received: dict[str, Any] = {}
    while len(received) < len(kinds):
        message = client.json()["params"]
        received.setdefault(kinds[message["subscription"]], message["result"])
    hashes = [hash_of(raw) for raw in TRANSACTIONS]
    return {
        **received,
        "genesis": ask(url, "eth_getBlockByNumber", "0x0", False),
        "block": ask(url, "eth_getBlockByNumber", "0x1", True),
        "pending block": ask(url, "eth_getBlockByNumber", "pending", True),
        "transactions": [ask(url, "eth_getTransactionByHash", own) for own in hashes],
        "waiting transaction": ask(url, "eth_getTransactionByHash", hash_of(WAITING)),
        "receipts": [ask(url, "eth_getTransactionReceipt", own) for own in hashes],
        "logs": ask(url, "eth_getLogs", {"fromBlock": "0x0"}),
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the responses of anvil, and ours."""
    with ExitStack() as stack:
        theirs = stack.enter_context(anvil())
        ask(theirs, "anvil_setCode", to_checksum(CONTRACT), CODE)
        ask(theirs, "anvil_setBalance", ACCOUNT.address, hex(FUNDS))
        path = tmp_path_factory.mktemp("anvil") / "noderpc.db"
        chain = EmbeddedChain(path, application=EthermintDouble, produce=False)
        chain.start()
        stack.callback(chain.close)
        base = stack.enter_context(serve(app_for(chain, json_rpc_enable=True)))
        their_client = stack.enter_context(closing(WebSocketClient(theirs, path="/")))
        our_client = stack.enter_context(closing(WebSocketClient(base, path="/evm/ws")))
        return (
            read(theirs, their_client, lambda: ask(theirs, "evm_mine")),
            read(f"{base}/evm", our_client, chain.produce),
        )


@pytest.mark.parametrize("name", EXPLAINED)
def test_members_and_their_kinds_are_those_of_anvil(
    shown: tuple[dict[str, Any], dict[str, Any]], name: str
) -> None:
    theirs, ours = (_kinds(side[name]) for side in shown)
    assert theirs
    differ = {path for path in theirs | ours if theirs.get(path) != ours.get(path)}

    assert differ == {path for _, paths in EXPLAINED[name] for path in paths}


def _kinds(value: Any) -> dict[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for path, kind in _members(value, ""):
        kinds.setdefault(path.lstrip("."), set()).add(kind)
    return kinds


def _members(value: Any, path: str) -> Iterable[tuple[str, str]]:
    match value:
        case dict():
            for name, member in value.items():
                yield from _members(member, f"{path}.{name}")
        case list():
            yield path, "list"
            for member in value:
                yield from _members(member, f"{path}[]")
        case str() if value.startswith("0x"):
            digits = len(value) - 2
            # Nonces, addresses, hashes and blooms have a fixed length.
            yield path, f"{digits} digits" if digits in (16, 40, 64, 512) else "hex"
        case _:
            yield path, type(value).__name__
