"""Tests with calls that Schemathesis generates from ``/openapi.json``: responses match the
document."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from flask_noderpc import COMETBFT_ROUTES, DIALECTS
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.jsonrpc.params import specs
from flask_noderpc.testing.node import app_for
from tests.http import chain

IS_LONG = os.environ.get("NODERPC_CAMPAIGN") == "long"
INVALID_PARAMS = -32602

made_up = settings(
    max_examples=200 if IS_LONG else 5,
    derandomize=not IS_LONG,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ROUTES = [
    (dialect.name, route)
    for dialect in DIALECTS.values()
    for route in COMETBFT_ROUTES + UNSAFE_ROUTES
    if route.name not in dialect.omits_routes
]
EVERY = [(dialect, route.name) for dialect, route in ROUTES]
WITH_PARAMETERS = [(dialect, route.name) for dialect, route in ROUTES if specs(route.params)]
# Otherwise the generated value would decide how long the call waits.
FIXED = {"events": {"wait_time": "1ms"}}


def envelopes(document: Any) -> Iterator[Any]:
    """Yield the schemas of the envelopes around results and errors."""
    responses = [path["get"]["responses"]["200"] for path in document["paths"].values()]
    for response in (*responses, *document["components"]["responses"].values()):
        yield response["content"]["application/json"]["schema"]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Yield the documents of the dialects, each of a mount whose chain has everything."""
    with ExitStack() as stack:

        @cache
        def document_of(dialect: str) -> Any:
            folder = Path(tmp_path_factory.mktemp("chain"))
            backend = stack.enter_context(closing(chain.backend(folder)))
            # No blocks are made, so calls that wait for one time out.
            app = app_for(backend, dialect=dialect, rpc_unsafe=True, broadcast_timeout=0.01)
            document: Any = app.test_client().get("/openapi.json").json
            for schema in (*document["components"]["schemas"].values(), *envelopes(document)):
                # Clients must ignore members that they don't know; here every member must be
                # described.
                schema["additionalProperties"] = False
            found = schemathesis.openapi.from_dict(document)
            found.app = app
            return found

        yield document_of


@pytest.fixture
def operation(described: Callable[[str], Any], dialect: str, name: str) -> Any:
    return described(dialect)[f"/{name}"]["GET"]


def answered(case: Any) -> Any:
    """Return the response, which must match the document and not be an internal error."""
    response: Response = case.call()
    case.validate_response(
        response,
        checks=[
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )
    reply = response.json()
    assert "the server's log" not in str(reply.get("error")), reply
    return reply


@pytest.mark.parametrize(("dialect", "name"), EVERY)
def test_calls_from_openapi_are_answered_as_described(operation: Any, name: str) -> None:
    @made_up
    @given(case=operation.as_strategy(query=FIXED.get(name)))
    def run(case: Any) -> None:
        reply = answered(case)
        # The document does not describe all rules for the value of a piece of evidence.
        if "result" not in reply and name != "broadcast_evidence":
            assert reply["error"]["code"] != INVALID_PARAMS, (case.query, reply)

    run()


@pytest.mark.parametrize(("dialect", "name"), WITH_PARAMETERS)
def test_invalid_calls_are_answered_as_described(operation: Any, name: str) -> None:
    mode = GenerationMode.NEGATIVE

    @made_up
    @given(case=operation.as_strategy(mode, query=FIXED.get(name)))
    def run(case: Any) -> None:
        answered(case)

    run()
