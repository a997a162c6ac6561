"""eth-tester behind a Flask view: ``python -m benchmarks.peers.eth_tester PORT``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ..process import Server, free_port, served
from . import MissingError
from .bare import serve_with_pywsgi

NAME = "eth-tester"
# Mnemonic and path of anvil's accounts and ours.
_MNEMONIC, _PATH = "test " * 11 + "junk", "m/44'/60'/0'/0"
CHAIN_ID = 131277322940537
"""The only chain ID of eth-tester."""


@contextmanager
def eth_tester() -> Iterator[Server]:
    """Run eth-tester with a new chain; raise :exc:`MissingError`."""
    if find_spec("eth_tester") is None:
        raise MissingError("it is not installed (the extra benchmarks)")
    port = free_port()
    with served([sys.executable, "-m", __name__, str(port)], port) as server:
        yield server


def _shown(value: Any) -> Any:
    """Return a value in the form of the RPC."""
    match value:
        case bool() | str() | None:
            return value
        case int():
            return hex(value)
        case dict():
            return {_camel(name): _shown(member) for name, member in value.items()}
        case _:
            return [_shown(member) for member in value]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _methods() -> dict[str, Callable[..., Any]]:
    from eth_tester import EthereumTester, PyEVMBackend

    tester = EthereumTester(PyEVMBackend.from_mnemonic(_MNEMONIC, hd_path=_PATH))
    tester.disable_auto_mine_transactions()
    caller = tester.get_accounts()[0]

    def logs(wanted: dict[str, str]) -> Any:
        first, last = (int(wanted[name], 16) for name in ("fromBlock", "toBlock"))
        return tester.get_logs(from_block=first, to_block=last, address=wanted["address"])

    def set_automine(enabled: bool) -> None:
        # eth-tester can't make blocks by the clock.
        if enabled:
            tester.enable_auto_mine_transactions()
        else:
            tester.disable_auto_mine_transactions()

    return {
        "eth_blockNumber": lambda: tester.get_block_by_number("latest")["number"],
        "eth_getBlockByNumber": lambda number, full: tester.get_block_by_number(
            int(number, 16), full_transactions=full
        ),
        "eth_getLogs": logs,
        "eth_getTransactionReceipt": tester.get_transaction_receipt,
        "eth_call": lambda tx, _: tester.call({"from": caller, "to": tx["to"], "gas": 100_000}),
        "eth_getTransactionCount": lambda account, _: tester.get_nonce(account),
        "eth_sendRawTransaction": tester.send_raw_transaction,
        "evm_mine": tester.mine_block,
        "evm_setAutomine": set_automine,
    }


def _app() -> Any:
    from flask import Flask, request

    methods, app = _methods(), Flask(NAME)

    @app.post("/")
    def answer() -> dict[str, Any]:
        asked = request.get_json()
        result = methods[asked["method"]](*asked["params"])
        return {"jsonrpc": "2.0", "id": asked["id"], "result": _shown(result)}

    return app


if __name__ == "__main__":
    serve_with_pywsgi(_app, int(sys.argv[1]))
