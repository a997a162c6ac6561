"""A dialect's answers: compiled, they are what its marshmallow schemas say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flask_noderpc import NODE_ROUTES, ConfigurationError
from flask_noderpc.domain.abci import ProofOp, QueryResult
from flask_noderpc.domain.answers import HeaderAnswer, QueryAnswer
from flask_noderpc.errors import (
    InternalError,
    InvalidParams,
    MempoolFull,
    MethodNotFound,
    NodeRPCError,
    StoreError,
    TxInCache,
    TxNotFound,
)
from flask_noderpc.rpc.context import Context, Seats, Turns
from flask_noderpc.rpc.params import ParamLoader
from flask_noderpc.settings import Settings
from flask_noderpc.wire.dialects import DIALECTS, dialect_named
from flask_noderpc.wire.document import DOCUMENT
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
    # What the application refuses is answered at once.
    "broadcast_tx_commit": [{"tx": '"no"'}],
    "abci_query": [{"data": '"name"'}],
    "tx_search": [
        {"query": '"tx.height>0"'},
        {"query": '"tx.height>0"', "prove": "true"},
    ],
    "block_search": [{"query": '"block.height>0"'}],
}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


def answers(backend: chain.PeeredBackend) -> Iterator[Any]:
    """What every route's handler gives, in several forms."""
    ctx = Context(
        backend,
        Settings(),
        DOCUMENT.rules,
        "",
        DOCUMENT.encode,
        Seats(1, "NODERPC_X"),
        Turns(1),
    )
    from flask_noderpc.canonical.hashes import tx_hash

    known = {
        "{tx}": tx_hash(chain.TX).hex(),
        "{block}": backend.block_meta(2).block_id.hash.hex(),
    }
    for route in NODE_ROUTES:
        for values in ARGUMENTS.get(route.name, [{}]):
            given = {name: known.get(text, text) for name, text in values.items()}
            yield route.call(ctx, ParamLoader(route.params).from_uri(given))
    yield backend.genesis()


def schema_of(answer: Any) -> type[WireSchema]:
    choice = DOCUMENT.schemas[type(answer)]
    return choice if isinstance(choice, type) else choice(answer)


def test_every_answer_is_dumped_as_its_schema_says(backend: chain.PeeredBackend) -> None:
    seen = set()
    for answer in answers(backend):
        schema = schema_of(answer)
        by_marshmallow = msgspec.json.encode(schema().dump(answer))
        assert DOCUMENT.encode(answer) == by_marshmallow
        seen.add(type(answer))

    assert seen == DOCUMENT.schemas.keys()


@pytest.mark.parametrize("answer", [HeaderAnswer(None)])
def test_what_is_not_there_may_be_null(answer: object) -> None:
    assert compiled(schema_of(answer))(answer) == schema_of(answer)().dump(answer)


def test_the_proof_of_a_query_is_hex_of_its_protobuf() -> None:
    answer = QueryAnswer(QueryResult(proof_ops=(ProofOp("t", b"k", b"d"),)))

    encoded = json.loads(DOCUMENT.encode(answer))

    assert encoded["response"]["proof"] == "0A09" + "0A0174" + "12016B" + "1A0164"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidParams("height"), 400),
        (TxInCache(), 400),
        (TxNotFound(b""), 404),
        (MethodNotFound(), 404),
        (MempoolFull(1, 1, 1, 1), 500),
        (StoreError("x"), 500),
        (InternalError("x"), 500),
    ],
)
def test_a_status_says_whose_fault_it_is(error: NodeRPCError, status: int) -> None:
    assert DOCUMENT.status_of(error) == status


def test_a_dialect_is_found_by_its_name() -> None:
    assert dialect_named("document") is DOCUMENT
    assert DIALECTS["document"] is DOCUMENT
    with pytest.raises(ConfigurationError, match="known are document"):
        dialect_named("latin")


def test_a_result_without_a_shape_is_named_with_its_route() -> None:
    with pytest.raises(ConfigurationError, match="no shape for int of odd"):
        DOCUMENT.require({"odd": int})
