"""Tests that compiled dumps of a dialect equal the dumps of its marshmallow schemas."""

from __future__ import annotations

import json

import msgspec
import pytest

from flask_noderpc import ConfigurationError
from flask_noderpc.domain.abci import ProofOp, QueryResult
from flask_noderpc.domain.responses import ResultABCIQuery, ResultHeader
from flask_noderpc.errors import (
    InternalError,
    InvalidParams,
    MempoolFull,
    MethodNotFound,
    NodeRPCError,
    OriginRefused,
    StoreError,
    TxInCache,
    TxNotFound,
)
from flask_noderpc.events.messages import messages_at
from flask_noderpc.wire.comet.v038 import COMET_038
from flask_noderpc.wire.dialect import Dialect
from flask_noderpc.wire.dialects import DIALECTS, DOCUMENT, dialect_named
from flask_noderpc.wire.schema import compiled
from tests.http import chain

from .collect_answers import answers, schema_of

EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@EVERY_DIALECT
def test_every_answer_is_dumped_like_its_schema(
    backend: chain.PeeredBackend, dialect: Dialect
) -> None:
    seen = set()
    for answer in answers(backend, dialect):
        schema = schema_of(dialect, answer)
        by_marshmallow = msgspec.json.encode(schema().dump(answer))
        assert dialect.encode(answer) == by_marshmallow
        seen.add(type(answer))

    assert seen == dialect.schemas.keys()


@EVERY_DIALECT
def test_every_event_is_dumped_like_its_schema(
    backend: chain.PeeredBackend, dialect: Dialect
) -> None:
    seen = set()
    for height in range(1, chain.LATEST + 1):
        for message in dialect.behaviours.filter_events(messages_at(backend.reads, height)):
            schema = dialect.events[type(message.value)]
            assert compiled(schema)(message.value) == schema().dump(message.value)
            seen.add(type(message.value))

    assert seen == dialect.events.keys()


@EVERY_DIALECT
def test_optional_fields_may_be_null(dialect: Dialect) -> None:
    answer = ResultHeader(None)
    schema = schema_of(dialect, answer)

    assert compiled(schema)(answer) == schema().dump(answer) == {"header": None}


def test_the_proof_of_a_query_is_hex_of_its_protobuf() -> None:
    answer = ResultABCIQuery(QueryResult(proof_ops=(ProofOp("t", b"k", b"d"),)))

    encoded = json.loads(DOCUMENT.encode(answer))

    assert encoded["response"]["proof"] == "0A09" + "0A0174" + "12016B" + "1A0164"


@pytest.mark.parametrize(
    ("error", "document", "comet"),
    [
        (OriginRefused(), 403, 403),
        (InvalidParams("height"), 400, 500),
        (TxInCache(), 400, 500),
        (TxNotFound(b""), 404, 500),
        (MethodNotFound(), 404, 404),
        (MempoolFull(1, 1, 1, 1), 500, 500),
        (StoreError("x"), 500, 500),
        (InternalError("x"), 500, 500),
    ],
)
def test_http_status_of_errors_depends_on_the_dialect(
    error: NodeRPCError, document: int, comet: int
) -> None:
    assert DOCUMENT.status_of(error) == document
    assert COMET_038.status_of(error) == comet


def test_a_dialect_is_found_by_its_name() -> None:
    assert dialect_named("document") is DOCUMENT
    assert dialect_named("comet-0.38") is COMET_038
    assert DIALECTS["document"] is DOCUMENT
    with pytest.raises(ConfigurationError, match="expected one of document"):
        dialect_named("latin")


def test_a_result_without_a_shape_is_named_with_its_route() -> None:
    with pytest.raises(ConfigurationError, match="no schema for object of odd"):
        DOCUMENT.require({"odd": object})
