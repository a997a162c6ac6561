"""Tests of ``/openapi.json`` and ``rpc.discover``: they are valid documents, and live responses
match them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from flask_noderpc import COMETBFT_ROUTES, DIALECTS
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.ethereum.api import NAMESPACES
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES
from flask_noderpc.ethereum.settings import EthereumSettings
from flask_noderpc.extension import NodeRPC
from flask_noderpc.jsonrpc import describe
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.settings import all_settings
from flask_noderpc.testing.node import app_for
from flask_noderpc.web import pages as service_pages
from flask_noderpc.wire.comet.v038_schemas import Evidence
from flask_noderpc.wire.schema import compiled
from tests.ethereum.rpc.chain import ethereum_chain
from tests.helpers.http import client_call
from tests.http import chain
from tests.wire.collect_answers import ARGUMENTS

ALL_API = ",".join(NAMESPACES)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


def validator(schema: Any, document: Any) -> Draft202012Validator:
    """Return a validator for one schema of a document, which may refer to the document's
    components."""
    whole = {**schema, "components": document["components"]}
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator(whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_openapi_document_is_valid(backend: chain.PeeredBackend, dialect: str) -> None:
    app = app_for(backend, dialect=dialect, rpc_unsafe=True)
    document = app.test_client().get("/openapi.json").get_json()

    OpenAPIV31SpecValidator(document).validate()

    omits_routes = DIALECTS[dialect].omits_routes
    names = [
        route.name
        for route in COMETBFT_ROUTES + UNSAFE_ROUTES
        if route.name not in omits_routes
    ]
    assert list(document["paths"]) == [f"/{name}" for name in names]
    assert {} not in document["components"]["schemas"].values()


def test_openapi_is_built_once_per_location(
    backend: chain.PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(routes: Any, dialect: Any, base: str) -> Any:
        made.append(base)
        return describe.openapi(routes, dialect, base)

    monkeypatch.setattr(service_pages, "openapi", counted)
    client = app_for(backend).test_client()
    for _ in range(3):
        for root in ("", "/node"):
            answer = client.get("/openapi.json", base_url=f"http://localhost{root}")
            assert answer.get_json()["servers"] == [{"url": root or "/"}]
    assert made == ["", "/node"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_live_answers_of_every_route_fit_the_document(tmp_path: Path, dialect: str) -> None:
    # Each dialect has a separate chain, as each run sends the same transactions.
    backend = chain.backend(tmp_path)
    client = app_for(backend, dialect=dialect, rpc_unsafe=True).test_client()
    document = client.get("/openapi.json").get_json()
    for schema in document["components"]["schemas"].values():
        # Clients must ignore members that they don't know; here every member must be described.
        schema["additionalProperties"] = False
    known = {
        "{tx}": "0x" + tx_hash(chain.TX).hex(),
        "{block}": "0x" + backend.reads.block_meta(2).block_id.hash.hex(),
        "{evidence}": json.dumps(
            compiled(Evidence)(backend.reads.block(chain.WITH_EVIDENCE)[1].evidence[0])
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
        # Some dialects return an error for a transaction that the chain already has, or that
        # its application refuses.
        assert accepted or path in ("/broadcast_evidence", "/broadcast_tx_commit"), path
    backend.close()


def test_parameters_have_types_and_defaults_in_openapi(
    backend: chain.PeeredBackend,
) -> None:
    paths = app_for(backend).test_client().get("/openapi.json").get_json()["paths"]

    parameters = {each["name"]: each for each in paths["/tx_search"]["get"]["parameters"]}
    assert parameters["query"]["schema"]["type"] == "string"
    assert parameters["prove"]["schema"] == {"type": "boolean", "default": False}
    assert not parameters["prove"]["required"]


def test_openapi_lists_the_routes_of_its_mount_at_their_paths(
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
def test_rpc_discover_lists_every_method(backend: chain.PeeredBackend, dialect: str) -> None:
    client = app_for(backend, dialect=dialect).test_client()
    found = client_call(client, "rpc.discover")["result"]

    assert found["openrpc"] == "1.2.6"
    omits_routes = DIALECTS[dialect].omits_routes
    served = [route.name for route in COMETBFT_ROUTES if route.name not in omits_routes]
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


def test_rpc_discover_of_the_evm_layer_lists_every_method(evm: FlaskClient) -> None:
    found = asked(evm, "rpc.discover")["result"]

    assert [method["name"] for method in found["methods"]] == [
        *(route.name for route in EVM_ROUTES),
        "rpc.discover",
    ]


CANARY = "c4n4ry"


def everything(client: FlaskClient, path: str) -> str:
    """Return everything that a mount says about itself to machines."""
    pages = [client.get(f"{path}/openapi.json").text]
    for where in (f"{path}/", f"{path}/evm"):
        call = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover", "params": []}
        pages.append(client.post(where, json=call).text)
    return "".join(pages)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_openapi_states_if_strings_need_quotes(
    backend: chain.PeeredBackend, dialect: str
) -> None:
    client = app_for(backend, dialect=dialect).test_client()
    answers: list[Any] = [
        client.get(f"/tx_search?query={query}").json for query in ('"a=1"', "a=1")
    ]
    message = client.get("/openapi.json").get_json()["info"]["description"]

    assert "result" in answers[0]
    needs_quotes = "result" not in answers[1]
    assert ("Write text in double quotes, or" in message) == needs_quotes
    assert ("Write text as it is, in double quotes, or" in message) != needs_quotes


def test_descriptions_contain_no_setting_values(backend: chain.PeeredBackend) -> None:
    app = Flask("host")
    app.secret_key = CANARY
    texts: dict[str, Any] = {
        row.name: f"/{CANARY}/{row.name}"
        for row in all_settings()
        if row.value_type.startswith("str") and not row.kind.choices
    }
    texts["upstream_header"] = f"x-api-key: {CANARY}"
    ethereum = EthereumSettings(json_rpc_enable=True)
    NodeRPC(app, name="plain", backend=backend, url_prefix="/node", settings=[ethereum])
    NodeRPC(
        app,
        name="secret",
        backend=backend,
        url_prefix="/edon",
        settings=[ethereum],
        authorize=lambda request, method: True,
        allowed_hosts=["localhost", CANARY],
        write_origins=[f"https://{CANARY}"],
        **texts,
    )
    received = everything(app.test_client(), "/edon")

    assert "openrpc" in received
    assert CANARY not in received
    assert received.replace("/edon", "/node") == everything(app.test_client(), "/node")


def document_of(client: FlaskClient, path: str = "/openapi.json", **options: Any) -> Any:
    return client.get(path, **options).get_json()


def told_of(client: FlaskClient) -> set[str]:
    """Return the methods that a mount lists anywhere."""
    found = {path.removeprefix("/") for path in document_of(client)["paths"]}
    for path, name in (("/", r">(\w+)</a>"), ("/try", r'data-call="(\w+)"')):
        found.update(re.findall(name, client.get(path).text))
    return found | methods_told(client)


def methods_told(client: FlaskClient) -> set[str]:
    methods = client_call(client, "rpc.discover")["result"]["methods"]
    return {method["name"] for method in methods}


def test_unsafe_routes_are_described_only_when_enabled(backend: chain.PeeredBackend) -> None:
    unsafe = {route.name for route in UNSAFE_ROUTES}

    assert not told_of(app_for(backend).test_client()) & unsafe
    assert told_of(app_for(backend, rpc_unsafe=True).test_client()) >= unsafe


@pytest.mark.parametrize(
    "guards",
    [{"deny_methods": ["status", "dial_*"]}, {"allow_methods": ["rpc.discover", "health"]}],
)
def test_denied_methods_are_not_described(backend: chain.PeeredBackend, guards: Any) -> None:
    client = app_for(backend, rpc_unsafe=True, **guards).test_client()
    received = told_of(client)

    assert "health" in received
    assert not {"status", "dial_seeds", "dial_peers"} & received
    for name in received - {"rpc.discover"}:
        assert "-32601" not in client.get(f"/{name}").text


def test_denied_evm_methods_are_not_described(
    backend: chain.PeeredBackend,
) -> None:
    app = app_for(backend, json_rpc_enable=True, deny_methods=["eth_get*"])
    received = {
        method["name"]
        for method in asked(app.test_client(), "rpc.discover")["result"]["methods"]
    }

    assert "eth_chainId" in received
    assert not any(name.startswith("eth_get") for name in received)


def test_a_method_without_a_path_is_described_as_a_method(
    backend: chain.PeeredBackend,
) -> None:
    client = app_for(backend, exclude_routes=["genesis"]).test_client()

    assert "/genesis" not in document_of(client)["paths"]
    assert "genesis" in methods_told(client)


def test_all_mounts_of_a_version_are_servers(backend: chain.PeeredBackend) -> None:
    app = Flask("host")
    NodeRPC(app, backend=backend, url_prefix="/<chain>/node", dialect="comet-1.0")
    client = app.test_client()
    behind = {"SCRIPT_NAME": "/host"}
    servers = document_of(client, "/main/node/openapi.json", environ_overrides=behind)[
        "servers"
    ]

    assert servers == [{"url": "/host/main/node"}, {"url": "/host/main/node/v1"}]
    assert all(
        client.get(f"{each['url'].removeprefix('/host')}/health").status_code == 200
        for each in servers
    )


def test_errors_are_described_as_they_are(backend: chain.PeeredBackend) -> None:
    app = app_for(backend, allowed_hosts=["node.example"], read_origins=["https://a.example"])
    client = app.test_client()
    here: dict[str, Any] = {"base_url": "http://node.example"}
    document = document_of(client, **here)
    responses = document["paths"]["/block"]["get"]["responses"]
    assert list(responses) == ["200", "400", "403", "404", "500"]

    stranger = {"Origin": "https://b.example", "Sec-Fetch-Site": "cross-site"}
    failed = [
        (client.get("/block?height=x", **here), 400),
        (client.get("/block?height=99", **here), 404),
        (client.get("/block", headers=stranger, **here), 403),
        (client.get("/block"), 403),
    ]
    for answer, status in failed:
        assert answer.status_code == status
        described = responses[str(status)]["$ref"].rpartition("/")[2]
        content = document["components"]["responses"][described]["content"][answer.mimetype]
        received = answer.json if answer.is_json else answer.text
        validator(content["schema"], document).validate(received)
