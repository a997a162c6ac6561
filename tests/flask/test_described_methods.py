"""Every JSON-RPC method is called, and what it takes and gives is what ``rpc.discover`` says."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from flask_noderpc import DIALECTS, NODE_ROUTES, EmbeddedChain
from flask_noderpc.canonical.hashes import tx_hash
from flask_noderpc.canonical.keys import PrivateKey
from flask_noderpc.chain.producer import Pace
from flask_noderpc.evm.dev.refusals import REASONS
from flask_noderpc.evm.dev.table import DEV_ROUTES
from flask_noderpc.evm.table import EVM_ROUTES
from flask_noderpc.node.table import UNSAFE_ROUTES
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.comet.v038_shapes import Evidence
from flask_noderpc.wire.schema import compiled
from tests.chain.offences import double_vote
from tests.ethereum.signing import TO, signed
from tests.evm.dev.kit import FIRST, TYPED, chain_of, dev_app
from tests.http import chain
from tests.http.talk import called

Example = tuple[str, Any]


def base64(text: bytes) -> str:
    return b64encode(text).decode()


# What is sent is seen among what waits. Texts with a $ stand for what the chain has.
NODE_CALLS: dict[str, list[Any]] = {
    "health": [{}, [], None],
    "status": [{}],
    "net_info": [{}],
    "blockchain": [{}, {"minHeight": "2", "maxHeight": "3"}],
    "block": [{}, *({"height": str(height)} for height in range(1, 8))],
    "block_by_hash": [{"hash": "$block64"}],
    "block_results": [{"height": str(height)} for height in range(1, 8)],
    "commit": [{"height": str(height)} for height in range(1, 8)],
    "validators": [{"height": "1", "page": "1", "per_page": "2"}],
    "genesis": [{}],
    "genesis_chunked": [{"chunk": "0"}],
    "consensus_params": [{"height": "2"}],
    "broadcast_tx_sync": [{"tx": base64(b"sync=1")}],
    "broadcast_tx_async": [{"tx": base64(b"async=1")}],
    "unconfirmed_txs": [{"limit": "1"}],
    "num_unconfirmed_txs": [{}],
    "tx": [{"hash": "$tx64"}, {"hash": "$tx64", "prove": True}],
    "check_tx": [{"tx": base64(b"a=1")}],
    "abci_info": [{}],
    "abci_query": [{"path": "", "data": "6e616d65", "height": "0", "prove": False}],
    "header": [{}, {"height": "2"}],
    "header_by_hash": [{"hash": "$block"}],
    "broadcast_tx_commit": [{"tx": base64(b"commit=1")}],
    "broadcast_evidence": [{"evidence": "$evidence"}],
    "consensus_state": [{}],
    "dump_consensus_state": [{}],
    "tx_search": [{"query": "tx.height>0", "prove": True, "page": "1", "order_by": "asc"}],
    "block_search": [{"query": "block.height>0", "per_page": "2"}],
    "events": [{"filter": {"query": "tm.event='Tx'"}, "wait_time": "1ms"}],
    "dial_seeds": [{"seeds": [chain.PEER]}],
    "dial_peers": [{"peers": [chain.PEER], "persistent": True}],
    "unsafe_flush_mempool": [{}],
    "rpc.discover": [{}],
}


def strict(document: Any) -> Any:
    """The document, by which no member may be forgotten."""
    for schema in document["components"]["schemas"].values():
        schema["additionalProperties"] = False
    return document


def assert_fits(value: Any, schema: Any, document: Any) -> None:
    Draft202012Validator(
        {"allOf": [schema], "components": document["components"]}
    ).validate(value)


def assert_described(method: Any, params: Any, result: Any, document: Any) -> None:
    """That the parameters and the result are as the document says of the method."""
    specs = method["params"]
    given = (
        params
        if isinstance(params, dict)
        else dict(zip((spec["name"] for spec in specs), params or [], strict=False))
    )
    assert given.keys() <= {spec["name"] for spec in specs}
    assert given.keys() >= {spec["name"] for spec in specs if spec["required"]}
    for spec in specs:
        if spec["name"] in given:
            assert_fits(given[spec["name"]], spec["schema"], document)
    assert_fits(result, method["result"]["schema"], document)


def evidence_of(backend: chain.PeeredBackend, dialect: str) -> Any:
    """Of an offence that no block has; in 1.0 its members have other names."""
    shown = compiled(Evidence)(double_vote(backend, PrivateKey(b"\x02" * 32), height=2))
    if dialect == "comet-1.0":
        for name in ("TotalVotingPower", "ValidatorPower", "Timestamp"):
            own = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
            shown["value"][own] = shown["value"].pop(name)
    return shown


def filled(params: Any, known: dict[str, Any]) -> Any:
    if not isinstance(params, dict):
        return params
    return {
        name: known.get(value, value) if isinstance(value, str) else value
        for name, value in params.items()
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_method_of_the_node_is_as_described(tmp_path: Path, dialect: str) -> None:
    with (
        closing(chain.backend(tmp_path)) as backend,
        closing(EmbeddedChain(tmp_path / "making.db", pace=Pace(interval_s=0.05))) as making,
    ):
        client = app_for(backend, dialect=dialect, unsafe=True).test_client()
        # The chain that has everything makes no blocks.
        maker = app_for(making, dialect=dialect).test_client()
        document = strict(called(client, "rpc.discover")["result"])
        methods = {method["name"]: method for method in document["methods"]}
        lacks = DIALECTS[dialect].lacks
        assert methods.keys() == {
            *(route.name for route in NODE_ROUTES + UNSAFE_ROUTES if route.name not in lacks),
            "rpc.discover",
        }
        own_hash = backend.block_meta(2).block_id.hash
        known = {
            "$block": own_hash.hex(),
            "$block64": base64(own_hash),
            "$tx64": base64(tx_hash(chain.TX)),
            "$evidence": evidence_of(backend, dialect),
        }
        for name in [name for name in NODE_CALLS if name in methods]:
            for params in NODE_CALLS[name]:
                given = filled(params, known)
                asked = maker if name == "broadcast_tx_commit" else client
                reply = called(asked, name, given)
                assert "result" in reply, (name, given, reply)
                assert_described(methods[name], given, reply["result"], document)


def test_no_method_of_the_node_is_forgotten_here() -> None:
    served = {route.name for route in NODE_ROUTES + UNSAFE_ROUTES}
    assert NODE_CALLS.keys() == served | {"rpc.discover"}
