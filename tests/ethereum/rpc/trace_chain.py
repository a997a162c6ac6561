"""A chain that runs code, with one rich account and two contracts."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base import location
from flask_noderpc.chain.from_settings import application_named
from flask_noderpc.ethereum.application.patches import app_state
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.lru import CacheMemory
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.settings import Settings
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, sender, signed
from tests.helpers.until import PATIENT

from .contract import CODE

RICH = 10**22
FIRST, SECOND = (created_address(sender(), nonce) for nonce in (0, 1))


@dataclass
class Node:
    """A chain, and its rich account that sends transactions."""

    chain: EmbeddedChain
    post: Callable[[str, tuple[Any, ...]], dict[str, Any]]
    nonce: int = 0

    def send(self, **fields: Any) -> str:
        """Send a transaction to the mempool; return its hash."""
        raw = transaction(self.nonce, **fields)
        self.nonce += 1
        assert self.chain.mempool.submit(raw).code == 0
        return f"0x{decode(raw).hash.hex()}"

    def block(self, *transactions: dict[str, Any]) -> list[str]:
        """Make a block of these transactions; return their hashes."""
        hashes = [self.send(**fields) for fields in transactions]
        self.chain.produce()
        return hashes

    def ask(self, method: str, *params: Any) -> Any:
        reply = self.post(method, params)
        return reply["result"] if "result" in reply else reply["error"]["message"]


def transaction(nonce: int, **fields: Any) -> bytes:
    """Return a signed transaction of the rich account."""
    if isinstance(fields.get("to"), bytes):
        fields["to"] = to_checksum(fields["to"])
    return signed(
        {
            "type": 2,
            "nonce": nonce,
            "gas": 1_000_000,
            "value": 0,
            "maxFeePerGas": 5 * 10**9,
            "maxPriorityFeePerGas": 10**9,
            "chainId": CHAIN_ID,
            **fields,
        }
    )


@contextmanager
def machine(folder: Path, **settings: Any) -> Iterator[Node]:
    """Yield a node whose first block has the two contracts."""
    path = folder / "noderpc.db"
    settings = {**PATIENT, **settings}
    own = Settings().changed(evm_chain_id=CHAIN_ID, **settings)
    chain = EmbeddedChain(
        path,
        application=application_named(
            "evm", own, location.location_of(path).path, CacheMemory()
        ),
        app_state=app_state({sender(ACCOUNT): RICH}),
        produce=False,
    )
    chain.start()
    try:
        apis = "eth", "net", "web3", "txpool", "debug", "trace"
        app = app_for(chain, json_rpc_enable=True, evm_api=apis, **settings)
        client = app.test_client()

        def post(method: str, params: tuple[Any, ...]) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return client.post("/evm", json=body).get_json()

        node = Node(chain, post)
        node.block({"data": CODE}, {"data": CODE})
        yield node
    finally:
        chain.close()


def recorded(path: Path) -> dict[str, Any]:
    """Return a recording of geth's traces."""
    text = gzip.decompress(path.read_bytes()).decode()
    # The engine's errors don't name the size of the stack.
    found: dict[str, Any] = json.loads(re.sub(r"(stack underflow) \(.*?\)", r"\1", text))
    return found


@contextmanager
def machine_with(transactions: Iterable[bytes], folder: Path) -> Iterator[Node]:
    """Yield a node with these transactions in block 2."""
    with machine(folder, max_response_bytes=5_000_000) as made:
        for raw in transactions:
            assert made.chain.mempool.submit(raw).code == 0
        made.chain.produce()
        yield made
