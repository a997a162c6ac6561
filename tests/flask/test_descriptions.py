"""``/openapi.json`` and ``rpc.discover``: valid documents, and live answers fit them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from flask_noderpc import DIALECTS, NODE_ROUTES
from flask_noderpc.canonical.hashes import tx_hash
from flask_noderpc.evm.table import EVM_ROUTES
from flask_noderpc.extension import NodeRPC
from flask_noderpc.node.table import UNSAFE_ROUTES
from flask_noderpc.rpc import describe
from flask_noderpc.testing.node import app_for
from flask_noderpc.transports import pages
from flask_noderpc.wire.comet.v038_shapes import Evidence
from flask_noderpc.wire.schema import compiled
from tests.evm.chain import ethereum_chain
from tests.http import chain
from tests.http.talk import called
from tests.wire.gather import ARGUMENTS

ALL_API = "eth,net,web3,txpool,debug"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


def validator(schema: Any, document: Any) -> Draft202012Validator:
    """Of one schema of a document, with whose components it may refer."""
    whole = {**schema, "components": document["components"]}
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator(whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_openapi_document_is_valid(backend: chain.PeeredBackend, dialect: str) -> None:
    app = app_for(backend, dialect=dialect, unsafe=True)
    document = app.test_client().get("/openapi.json").get_json()

    OpenAPIV31SpecValidator(document).validate()

    lacks = DIALECTS[dialect].lacks
    names = [route.name for route in NODE_ROUTES + UNSAFE_ROUTES if route.name not in lacks]
    assert list(document["paths"]) == [f"/{name}" for name in names]
    assert {} not in document["components"]["schemas"].values()


def test_the_document_is_made_once_for_each_place(
    backend: chain.PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(routes: Any, dialect: Any, base: str) -> Any:
        made.append(base)
        return describe.openapi(routes, dialect, base)

    monkeypatch.setattr(pages, "openapi", counted)
    client = app_for(backend).test_client()
    for _ in range(3):
        for root in ("", "/node"):
            answer = client.get("/openapi.json", base_url=f"http://localhost{root}")
            assert answer.get_json()["servers"] == [{"url": root or "/"}]
    assert made == ["", "/node"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_live_answers_of_every_route_fit_the_document(tmp_path: Path, dialect: str) -> None:
    # Their own chain, as each of them sends the same transactions.
    backend = chain.backend(tmp_path)
    client = app_for(backend, dialect=dialect, unsafe=True).test_client()
    document = client.get("/openapi.json").get_json()
    for schema in document["components"]["schemas"].values():
        # Clients must bear more members than they know; here none may be forgotten.
        schema["additionalProperties"] = False
    known = {
        "{tx}": "0x" + tx_hash(chain.TX).hex(),
        "{block}": "0x" + backend.block_meta(2).block_id.hash.hex(),
        "{evidence}": json.dumps(
            compiled(Evidence)(backend.block(chain.WITH_EVIDENCE)[1].evidence[0])
        ),
    }
    for path, item in document["paths"].items():
        content = item["get"]["responses"]["200"]["content"]["application/json"]
        accepted = 0
        for values in ARGUMENTS.get(path[1:], [{}]):
            given = {name: known.get(text, text) for name, text in values.items()}
            answer = client.get(path, query_string=given)
            if answer.status_code == 200:
                accepted += 1
                validator(content["schema"], document).validate(answer.get_json())
            else:
                failure = document["components"]["responses"]["Error"]["content"]
                schema = failure["application/json"]["schema"]
                validator(schema, document).validate(answer.get_json())
        # What the chain has already, or its application refuses, is an error in some.
        assert accepted or path in ("/broadcast_evidence", "/broadcast_tx_commit"), path
    backend.close()


def test_parameters_say_what_they_are_and_what_holds_without_them(
    backend: chain.PeeredBackend,
) -> None:
    paths = app_for(backend).test_client().get("/openapi.json").get_json()["paths"]

    parameters = {each["name"]: each for each in paths["/tx_search"]["get"]["parameters"]}
    assert parameters["query"]["schema"]["type"] == "string"
    assert parameters["prove"]["schema"] == {"type": "boolean", "default": False}
    assert not parameters["prove"]["required"]


def test_a_mount_describes_what_it_serves_where_it_serves_it(
    backend: chain.PeeredBackend,
) -> None:
    app = Flask("host")
    NodeRPC(app, backend=backend, url_prefix="/node", exclude_routes=["genesis"])
    document = app.test_client().get("/node/openapi.json").get_json()

    assert document["servers"] == [{"url": "/node"}]
    assert "/genesis" not in document["paths"]
    assert "/health" in document["paths"]


def test_the_host_may_have_the_path_of_the_document(backend: chain.PeeredBackend) -> None:
    app = app_for(backend, exclude_routes=["openapi"])

    assert app.test_client().get("/openapi.json").status_code == 404


@pytest.mark.parametrize("dialect", DIALECTS)
def test_discover_tells_of_every_method(backend: chain.PeeredBackend, dialect: str) -> None:
    client = app_for(backend, dialect=dialect).test_client()
    found = called(client, "rpc.discover")["result"]

    assert found["openrpc"] == "1.2.6"
    lacks = DIALECTS[dialect].lacks
    served = [route.name for route in NODE_ROUTES if route.name not in lacks]
    assert [method["name"] for method in found["methods"]] == [*served, "rpc.discover"]
    for method in found["methods"]:
        validator(method["result"]["schema"], found)


@pytest.fixture
def evm(tmp_path: Path) -> Iterator[FlaskClient]:
    made = ethereum_chain(tmp_path)
    yield app_for(made, json_rpc_enable=True, evm_api=ALL_API).test_client()
    made.close()


def asked(client: FlaskClient, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/evm", json=body).get_json()


def test_discover_of_the_evm_layer_tells_of_every_method(evm: FlaskClient) -> None:
    found = asked(evm, "rpc.discover")["result"]

    assert [method["name"] for method in found["methods"]] == [
        *(route.name for route in EVM_ROUTES),
        "rpc.discover",
    ]


def test_live_answers_of_the_evm_layer_fit_what_discover_tells(evm: FlaskClient) -> None:
    document = asked(evm, "rpc.discover")["result"]
    block = asked(evm, "eth_getBlockByNumber", "latest", True)["result"]
    own_hash = block["hash"]
    sent = next(
        tx["hash"]
        for height in range(1, int(block["number"], 16) + 1)
        for tx in asked(evm, "eth_getBlockByNumber", hex(height), True)["result"][
            "transactions"
        ]
    )
    answered = set()
    for method in document["methods"]:
        names = [param["name"] for param in method["params"]]
        for values in (
            [],
            ["latest"],
            ["latest", True],
            [own_hash],
            [own_hash, True],
            [own_hash, "0x0"],
            ["latest", "0x0"],
            [sent],
            ["0x4", "latest", [50]],
            [{"fromBlock": "earliest"}],
            [1],
        ):
            reply = asked(evm, method["name"], *values[: len(names)])
            if "result" in reply:
                answered.add(method["name"])
                validator(method["result"]["schema"], document).validate(reply["result"])
    assert len(answered) > 50, sorted(answered)
