"""How fast does the EVM answer? ``python -m benchmarks.evm``.

Sends transactions and calls over one connection to our embedded chain, once with a block a
second and once with one for each transaction, and to eth-tester behind a Flask view; all
under gevent's pywsgi on the first core, the load on the second. Prints milliseconds for each
and ratios.
Needs eth-tester (``pip install --pre eth-tester``).
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .servers import free_port, serve_with_pywsgi, wait_for

SENDS, CALLS, ROUNDS = 200, 200, 3
NAMES = ("ours", "at-once", "eth-tester")
CHAIN_ID = 131277322940537
KEY = (1).to_bytes(32)
# Returns the word 42.
CODE = bytes.fromhex("69602a60005260206000f3600052600a6016f3")


class Client:
    """One connection that asks one thing after the other."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def ask(self, method: str, *params: Any) -> Any:
        """The result."""
        reply = self._reply(method, params)
        assert "error" not in reply, reply
        return reply["result"]

    def error(self, method: str, *params: Any) -> str:
        """The text of the error."""
        text: str = self._reply(method, params)["error"]["message"]
        return text

    def _reply(self, method: str, params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", self._path, body, headers)
        return json.loads(self._connection.getresponse().read())


def _signed(nonce: int, **fields: Any) -> str:
    from eth_account import Account

    tx: dict[str, Any] = {
        "maxFeePerGas": 2 * 10**9,
        "maxPriorityFeePerGas": 10**9,
        "chainId": CHAIN_ID,
    }
    tx |= {"nonce": nonce, "gas": 21_000, "to": "0x" + "22" * 20, "value": 1, **fields}
    return "0x" + bytes(Account.from_key(KEY).sign_transaction(tx).raw_transaction).hex()


def _measure(client: Client, nonce: int, contract: str) -> tuple[list[float], list[float]]:
    sends, calls = [], []
    for raw in [_signed(nonce + n) for n in range(SENDS)]:
        begun = time.perf_counter()
        client.ask("eth_sendRawTransaction", raw)
        sends.append(time.perf_counter() - begun)
    for _ in range(CALLS):
        begun = time.perf_counter()
        result = client.ask("eth_call", {"to": contract, "gas": "0x186a0"}, "latest")
        calls.append(time.perf_counter() - begun)
        assert int(result, 16) == 42
    return sends, calls


def _deployed(client: Client) -> str:
    data = "0x" + CODE.hex()
    tx_hash = client.ask(
        "eth_sendRawTransaction", _signed(0, to="", data=data, gas=200_000, value=0)
    )
    deadline = time.monotonic() + 30
    while (receipt := client.ask("eth_getTransactionReceipt", tx_hash)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    address: str = receipt["contractAddress"]
    return address


def main() -> None:
    """Measure both, by turns."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in NAMES}
    with tempfile.TemporaryDirectory() as folder:
        servers = {name: start(name, Path(folder)) for name in NAMES}
        try:
            os.sched_setaffinity(0, {1})
            clients = {name: Client(url) for name, (url, _) in servers.items()}
            contracts = {name: _deployed(client) for name, client in clients.items()}
            for turn in range(ROUNDS):
                for name in NAMES:
                    found = _measure(clients[name], 1 + turn * SENDS, contracts[name])
                    times[name][0].extend(found[0])
                    times[name][1].extend(found[1])
        finally:
            for _, process in servers.values():
                process.kill()
                process.wait()
    for place, method in enumerate(("eth_sendRawTransaction", "eth_call")):
        peer = statistics.median(times["eth-tester"][place])
        for name in NAMES:
            taken = times[name][place]
            own, worst = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
            print(
                f"{method} {name}: {own * 1000:.2f} ms, p99 {worst * 1000:.2f};"
                f" {peer / own:.1f} times as fast as eth-tester"
            )


def start(name: str, folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """A server on the first core: its address and its process."""
    port = free_port()
    command = ["taskset", "-c", "0", sys.executable, "-m", "benchmarks.evm"]
    process = subprocess.Popen([*command, name, str(port), str(folder)])
    wait_for(port)
    return f"http://127.0.0.1:{port}/evm", process


def _ours(folder: Path, interval_s: float) -> Any:
    from flask_noderpc import EmbeddedChain
    from flask_noderpc.chain.evm.application import EvmApplication
    from flask_noderpc.chain.evm.genesis import app_state
    from flask_noderpc.chain.evm.machine import ExecutionLimits, Machine
    from flask_noderpc.chain.producer import Pace
    from flask_noderpc.testing.node import app_for

    path = folder / f"{interval_s}.db"
    funded = bytes.fromhex("7e5f4552091a69125d5dfcb7b8c2659029395bdf")
    chain = EmbeddedChain(
        path,
        application=lambda state: EvmApplication(
            state, Machine(state, str(path), ExecutionLimits()), CHAIN_ID
        ),
        app_state=app_state({funded: 10**24}),
        pace=Pace(interval_s=interval_s),
    )
    return app_for(chain, json_rpc_enable=True, evm_chain_id=CHAIN_ID)


def _eth_tester() -> Any:
    from eth_tester import EthereumTester, PyEVMBackend
    from flask import Flask, request

    tester = EthereumTester(PyEVMBackend())
    app = Flask("eth-tester")

    def call(transaction: Any, _: str) -> Any:
        account = tester.get_accounts()[0]
        return tester.call({"from": account, "to": transaction["to"], "gas": 100_000})

    def receipt(tx_hash: str) -> Any:
        found = tester.get_transaction_receipt(tx_hash)
        return {"contractAddress": found["contract_address"]}

    methods = {
        "eth_sendRawTransaction": tester.send_raw_transaction,
        "eth_call": call,
        "eth_getTransactionReceipt": receipt,
    }

    @app.post("/evm")
    def answer() -> dict[str, Any]:
        asked = request.get_json()
        result = methods[asked["method"]](*asked["params"])
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result}

    return app


def _serve(name: str, port: int, folder: Path) -> None:
    make = {
        "ours": lambda: _ours(folder, 1.0),
        "at-once": lambda: _ours(folder, 0.001),
        "eth-tester": _eth_tester,
    }
    serve_with_pywsgi(make[name], port)


if __name__ == "__main__":
    if sys.argv[1:]:
        _serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
