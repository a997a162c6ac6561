"""Example values for the parameters of EVM methods, for the page that sends trial calls."""

from __future__ import annotations

from typing import Any

from ...jsonrpc.describe import as_text
from ...web.layers import Ask, Example

Json = Any

_ZERO_HASH, _ZERO_ADDRESS = "0x" + "00" * 32, "0x" + "00" * 20


def examples_of(ask: Ask) -> Example:
    """Return a function that makes a parameter's example from the latest block and the node's
    accounts, or an empty string for other parameters."""
    block = ask("eth_getBlockByNumber", "latest", False).get("result") or {}
    accounts = ask("eth_accounts").get("result") or [_ZERO_ADDRESS]
    values = values_of(
        block.get("hash") or _ZERO_HASH,
        next(iter(block.get("transactions") or ()), _ZERO_HASH),
        accounts[0],
    )

    def example(method: str, param: Json) -> str:
        name, doc = param["name"], param["description"]
        if name == "hash":
            name = "transaction hash" if "transaction" in doc else "block hash"
        elif "RLP" in doc:
            name = "rlp"
        return as_text(values[name]) if name in values else ""

    return example


def values_of(block: str, tx: str, account: str) -> dict[str, Json]:
    """Return an example value for each parameter name of EVM methods.

    ``block`` and ``tx`` are hashes, ``account`` is an address; all in hex with the prefix 0x.
    """
    zero = "0x" + "00" * 32
    return {
        "address": account,
        "amount": "0x1",
        "args": {"from": account, "to": account, "value": "0x1"},
        "balance": "0xde0b6b3a7640000",
        "block": "latest",
        "block hash": block,
        "call": {"to": account},
        "calls": [[{"to": account}, ["trace"]]],
        "chain_id": "0x7a69",
        "code": "0x00",
        "count": "0x1",
        "data": "0x68656c6c6f",
        "depth": "0x0",
        "digest": {
            "types": {
                "EIP712Domain": [{"name": "name", "type": "string"}],
                "Greeting": [{"name": "text", "type": "string"}],
            },
            "primaryType": "Greeting",
            "domain": {"name": "example"},
            "message": {"text": "hello"},
        },
        "dump": "0x",
        "fee": "0x3b9aca00",
        "filter": {"fromBlock": "latest"},
        "full_transactions": False,
        "height": 1,
        "id": "0x1",
        "index": "0x0",
        "indices": ["0x0"],
        "key": zero,
        "keys": ["0x0"],
        "limit": "0x1c9c380",
        "message": "0x68656c6c6f",
        "newest": "latest",
        "nonce": "0x10",
        "number": "0x1",
        "on": True,
        "owner": account,
        "page": "0x0",
        "payload": {"blockStateCalls": [{"calls": [{"to": account}]}]},
        "prev_randao": zero,
        "query": {"fromBlock": "latest"},
        "raw": "0x",
        "rlp": "0xc0",
        "seconds": "0x1",
        "sender": account,
        "size": "0x19",
        "slots": {account: ["0x0"]},
        "spender": account,
        "token": account,
        "transaction hash": tx,
        "types": ["trace"],
        "url": "http://localhost:8545",
        "word": zero,
    }
