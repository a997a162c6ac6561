"""Chains with filters, a manual clock, and polls."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.filters import Clock, Filters, MemoryFilters
from flask_noderpc.ethereum.ethermint_double import EmittedLog, EthermintDouble
from flask_noderpc.testing.node import app_for

from ..chain import emitting
from ..transports import Say, posting

Ask = Callable[..., Any]

NOT_FOUND = {"code": -32000, "message": "filter not found"}
MINUTE = 60 * 10**9


class InMemory(EmbeddedChain):
    """A chain with the filters of a backend that can't store them."""

    @cached_property
    def filters(self) -> Filters:
        return MemoryFilters()


class Time:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def opened(folder: Path, kind: type[EmbeddedChain], clock: Clock) -> EmbeddedChain:
    """Open a chain on the folder's store; several stand for several workers."""
    chain = kind(folder / "noderpc.db", application=EthermintDouble, produce=False)
    chain.filters.clock = clock
    chain.start()
    return chain


def asking(chain: EmbeddedChain, address: str = "127.0.0.1", **settings: Any) -> Ask:
    """Return a function that calls the chain through a separate worker, from an address."""
    return partial(asked, posting(app_for(chain, json_rpc_enable=True, **settings), address))


def asked(say: Say, method: str, *params: Any) -> Any:
    """Return the result of a call, or its error."""
    call = {"jsonrpc": "2.0", "id": 1, "method": f"eth_{method}", "params": list(params)}
    reply = json.loads(say(json.dumps(call)))
    return reply["result"] if "result" in reply else reply["error"]


def emit(chain: EmbeddedChain, nonce: int, *topics: bytes) -> None:
    """Make a block with a log."""
    chain.mempool.submit(emitting(nonce, EmittedLog(topics)))
    chain.produce()


def data(value: bytes) -> str:
    return "0x" + value.hex()
