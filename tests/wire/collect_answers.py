"""Results of the handlers of all routes, for dialects to encode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flask_noderpc import COMETBFT_ROUTES
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import ParamLoader
from flask_noderpc.jsonrpc.waiters import AsyncTxs, ScanLimit, WaiterLimit
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.settings import Settings
from flask_noderpc.wire.comet.v038_schemas import Evidence
from flask_noderpc.wire.dialect import Dialect
from flask_noderpc.wire.schema import WireSchema, compiled
from tests.http import chain

ARGUMENTS: dict[str, list[dict[str, str]]] = {
    "block": [{"height": str(height)} for height in range(1, 8)],
    "block_results": [{"height": str(height)} for height in range(1, 8)],
    "commit": [{"height": str(height)} for height in range(1, 8)],
    "tx": [{"hash": "{tx}"}, {"hash": "{tx}", "prove": "true"}],
    "block_by_hash": [{"hash": "{block}"}],
    "header_by_hash": [{"hash": "{block}"}],
    "check_tx": [{"tx": '"a=1"'}, {"tx": '"no"'}],
    "broadcast_tx_sync": [{"tx": '"sync=1"'}],
    "broadcast_tx_async": [{"tx": '"async=1"'}],
    # The application refuses this transaction, so the call returns at once.
    "broadcast_tx_commit": [{"tx": '"no"'}],
    "broadcast_evidence": [{"evidence": "{evidence}"}],
    "dial_seeds": [{"seeds": f'["{chain.PEER}"]'}],
    "dial_peers": [{"peers": f'["{chain.PEER}"]'}],
    "abci_query": [{"data": '"name"'}],
    "tx_search": [
        {"query": '"tx.height>0"'},
        {"query": '"tx.height>0"', "prove": "true"},
    ],
    "block_search": [{"query": '"block.height>0"'}],
}


def answers(backend: chain.PeeredBackend, dialect: Dialect) -> Iterator[Any]:
    """Yield the results of every route's handler, with several parameters."""
    ctx = Context(
        backend,
        Settings(),
        # A failed check is a result here, although some dialects return it as an error.
        replace(dialect.behaviours, failed_check_is_error=False),
        dialect.node_version,
        dialect.encode,
        WaiterLimit(1, "NODERPC_X"),
        ScanLimit(1),
        AsyncTxs(backend),
    )
    known = {
        "{tx}": tx_hash(chain.TX).hex(),
        # The evidence is already in a block.
        "{evidence}": json.dumps(
            compiled(Evidence)(backend.reads.block(chain.WITH_EVIDENCE)[1].evidence[0])
        ),
        "{block}": backend.reads.block_meta(2).block_id.hash.hex(),
    }
    for route in COMETBFT_ROUTES + UNSAFE_ROUTES:
        for values in ARGUMENTS.get(route.name, [{}]):
            given = {name: known.get(text, text) for name, text in values.items()}
            found = route.call(ctx, ParamLoader(route.params).from_uri(given))
            yield found.result() if route.waits else found
    yield backend.reads.genesis()


def schema_of(dialect: Dialect, answer: Any) -> type[WireSchema]:
    """Return the schema that a dialect chooses for a result."""
    choice = dialect.schemas[type(answer)]
    return choice if isinstance(choice, type) else choice(answer)
