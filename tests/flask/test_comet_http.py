"""Tests of HTTP as by a CometBFT node: methods, statuses, headers, the index page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import create_environ, run_wsgi_app

from flask_noderpc import EmbeddedChain, MemoryChain, NodeRPC, get_backend
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.extension import mounts
from flask_noderpc.testing import make_chain
from tests.helpers.until import PATIENCE

from .conftest import MakeApp

CHAIN = make_chain(4)
FORM = "application/x-www-form-urlencoded"


def backend() -> ChainBackend:
    return ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))


@pytest.fixture
def client(make_app: MakeApp) -> FlaskClient:
    host = make_app()
    NodeRPC(host, backend=backend(), dialect="comet-0.38")
    return host.test_client()


def height_of(reply: Any) -> str:
    return str(reply["result"]["block"]["header"]["height"])


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_route_answers_every_method(client: FlaskClient, method: str) -> None:
    answer = client.open("/block?height=2", method=method)

    assert height_of(answer.get_json()) == "2"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Server-Time"].isdecimal()


def test_the_document_answers_get_alone(make_app: MakeApp) -> None:
    host = make_app()
    NodeRPC(host, backend=backend())
    client = host.test_client()

    assert client.post("/block?height=2").status_code == 405
    assert "X-Server-Time" not in client.get("/health").headers


@pytest.mark.parametrize(
    ("prefix", "path", "status", "is_ours"),
    [
        (None, "/nosuch", "404 NOT FOUND", True),
        (None, "/websocket", "400 Bad Request", True),
        ("/node", "/node/nosuch", "404 NOT FOUND", True),
        ("/node", "/nodes", "404 NOT FOUND", False),
    ],
)
def test_a_404_below_a_mount_has_x_server_time(
    make_app: MakeApp, prefix: str | None, path: str, status: str, is_ours: bool
) -> None:
    host = make_app()
    NodeRPC(host, backend=backend(), dialect="comet-0.38", url_prefix=prefix)
    answer = host.test_client().get(path)

    assert answer.status == status
    assert ("X-Server-Time" in answer.headers) == is_ours


def test_answers_have_the_phrases_of_their_statuses(client: FlaskClient) -> None:
    assert client.get("/tx").status == "500 Internal Server Error"


@pytest.mark.parametrize(
    ("path", "body", "height"),
    [("/block", "height=2", "2"), ("/block?height=3", "height=2", "3"), ("/block", "a=b", "5")],
)
def test_a_route_reads_a_form_behind_its_query(
    client: FlaskClient, path: str, body: str, height: str
) -> None:
    assert height_of(client.post(path, data=body, content_type=FORM).get_json()) == height


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
def test_no_form_is_read_with_other_methods(client: FlaskClient, method: str) -> None:
    answer = client.open("/block", method=method, data="height=x", content_type=FORM)

    assert answer.status_code == 200


@pytest.mark.parametrize("query", ["height=\xff", "height=\xc3%a9"])
@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_a_raw_query_that_is_no_text_is_refused(
    make_app: MakeApp, dialect: str, query: str
) -> None:
    host = make_app()
    NodeRPC(host, backend=backend(), dialect=dialect)
    # A server passes the bytes on without escaping them; the test client would escape them.
    environ = {**create_environ("/block"), "QUERY_STRING": query}

    body, status, _ = run_wsgi_app(host, environ)

    assert b"expected UTF-8" in b"".join(body)
    assert status[:3] == ("400" if dialect == "document" else "500")


def test_json_sent_to_a_route_is_not_read(client: FlaskClient) -> None:
    assert height_of(client.post("/block", json={"height": "2"}).get_json()) == "5"


def test_a_form_is_not_read_beyond_the_limit(make_app: MakeApp) -> None:
    host = make_app(NODERPC_MAX_BODY_BYTES=100)
    NodeRPC(host, backend=backend(), dialect="comet-0.38")

    answer = host.test_client().post("/block", data="height=" + "1" * 200, content_type=FORM)

    assert answer.status_code == 400
    assert "request body too large" in answer.get_json()["error"]["data"]


MULTIPART = "multipart/form-data; boundary=B"
FIELD = b'--B\r\nContent-Disposition: form-data; name="tx"\r\n\r\n"%s"\r\n--B--'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'tx="a=%ff"', FORM),
        (b'tx="a=\xff"', FORM),
        (FIELD % b"a=\xff", MULTIPART),
    ],
)
def test_a_form_that_is_no_text_is_refused(client: FlaskClient, body: bytes, kind: str) -> None:
    answer = client.post("/check_tx", data=body, content_type=kind)

    # Replaced characters would make another transaction.
    assert answer.status_code == 500
    assert "form: expected UTF-8" in answer.get_json()["error"]["data"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"a=1&" * 1_000, FORM), ((FIELD[:-4] + b"\r\n") * 1_001 + b"--B--", MULTIPART)],
)
def test_a_form_has_no_more_fields_than_flask_lets_it(
    client: FlaskClient, body: bytes, kind: str
) -> None:
    answer = client.post("/block", data=body, content_type=kind)

    assert answer.status_code == 400
    assert "request body too large" in answer.get_json()["error"]["data"]


def test_a_form_that_ends_early_is_refused_as_a_call_is(client: FlaskClient) -> None:
    answer = client.post(
        "/block", data=b"height=1", content_type=FORM, environ_overrides={"CONTENT_LENGTH": "9"}
    )

    assert answer.status_code == 400
    assert "ended before it was complete" in answer.get_json()["error"]["data"]


class BrokenChunks:
    """A body as gunicorn passes it; its error belongs to no class that other code knows."""

    def read(self, size: int = -1) -> bytes:
        raise Exception("Invalid chunk size: b'zz'")


@pytest.mark.parametrize("path", ["/", "/block"])
def test_a_body_that_the_server_can_t_read_is_refused(client: FlaskClient, path: str) -> None:
    broken = {"CONTENT_LENGTH": "9", "wsgi.input": BrokenChunks()}

    answer = client.post(path, content_type=FORM, environ_overrides=broken)

    assert answer.status_code == 400
    assert "ended before it was complete" in answer.get_json()["error"]["data"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_a_call_is_known_by_its_body(client: FlaskClient, method: str) -> None:
    answer = client.open("/", method=method, data='{"id":1,"method":"health"}')

    assert answer.get_json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_without_a_body_the_root_is_the_list_of_links(client: FlaskClient, method: str) -> None:
    answer = client.open("/", method=method, headers={"Host": "node.example"})

    assert answer.headers["Content-Type"] == "text/html"
    assert answer.text.startswith(
        "<html><body><br>Available endpoints:<br><br>Endpoints that require arguments:<br>"
        '<a href="//node.example/abci_info?">//node.example/abci_info?</a></br>'
    )
    link = "//node.example/blockchain?minHeight=_&maxHeight=_"
    assert f'<a href="{link}">{link}</a></br>' in answer.text
    assert "//node.example/unsubscribe_all?<" in answer.text


def test_a_host_header_is_no_markup(client: FlaskClient) -> None:
    assert "<script>" not in client.get("/", headers={"Host": "<script>"}).text


@pytest.mark.parametrize("name", ["subscribe", "unsubscribe", "unsubscribe_all"])
def test_methods_of_the_websocket_are_not_found_elsewhere(
    client: FlaskClient, name: str
) -> None:
    error = {"code": -32601, "message": "Method not found"}

    got = client.get(f"/{name}?query='x'")
    posted = client.post("/", json={"id": 1, "method": name})

    assert (got.status_code, got.get_json()["error"]) == (404, error)
    assert (posted.status_code, posted.get_json()["error"]) == (200, error)


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        ([("block", "2")], True),
        ([("block", "2"), ("commit", "1")], True),
        ([("block", "2"), ("status", None)], False),
        ([("block", "1000")], False),
        ([("block", None)], False),
    ],
)
def test_a_post_is_cacheable_when_all_its_calls_are(
    client: FlaskClient, calls: list[tuple[str, str | None]], kept: bool
) -> None:
    batch = [
        {"id": 1, "method": method, "params": {"height": height} if height else {}}
        for method, height in calls
    ]

    answer = client.post("/", data=json.dumps(batch))

    assert ("Cache-Control" in answer.headers) == kept


def test_blocks_that_are_not_there_are_null(make_app: MakeApp) -> None:
    host = make_app()
    NodeRPC(host, backend=ChainBackend(MemoryChain(CHAIN.genesis)), dialect="comet-0.38")
    client = host.test_client()

    def result(path: str) -> Any:
        return client.get(path).get_json()["result"]

    no_block = {"block_id": {"hash": "", "parts": {"total": 0, "hash": ""}}, "block": None}
    unknown = "?hash=0x" + "00" * 32
    assert result("/block") == no_block
    assert result("/header") == {"header": None}
    assert result("/commit") is None
    assert result("/block_by_hash" + unknown) == no_block
    assert result("/header_by_hash" + unknown) == {"header": None}
    assert "Cache-Control" not in client.get("/block_by_hash" + unknown).headers
    failed = client.get("/block_results")
    assert failed.status_code == 500
    assert failed.get_json()["error"]["data"] == "could not find results for height #0"


def test_two_dialects_serve_one_chain(make_app: MakeApp) -> None:
    host = make_app(NODERPC_PRODUCE=True, NODERPC_BLOCK_INTERVAL=0.01)
    NodeRPC(host)
    NodeRPC(host, name="comet", url_prefix="/comet", dialect="comet-0.38")
    client = host.test_client()

    assert chain_of(host).reads.wait_for_height(0, PATIENCE) == 1
    plain = client.get("/block?height=1").get_json()["result"]["block"]
    comet = client.get("/comet/block?height=1").get_json()["result"]["block"]

    assert plain["header"]["time"] == comet["header"]["time"]
    assert (plain["data"], comet["data"]) == ([], {"txs": []})


def chain_of(host: Flask) -> EmbeddedChain:
    with host.app_context():
        chain = get_backend()
        assert get_backend("comet") is chain
    assert isinstance(chain, EmbeddedChain)
    assert mounts(host).keys() == {"noderpc", "comet"}
    return chain


def test_the_document_dialect_has_no_proof_blocks(make_app: MakeApp) -> None:
    host = make_app(NODERPC_PRODUCE=True, NODERPC_BLOCK_INTERVAL=0.01)
    NodeRPC(host)

    with host.app_context():
        assert get_backend().reads.wait_for_height(0, 0.3) == 0


@pytest.mark.parametrize("path", ["/nets/5/node", "/nets/5/node/", "/nets/5/node/v1/"])
def test_the_links_of_a_mount_below_a_prefix_lead_to_it(make_app: MakeApp, path: str) -> None:
    host = make_app()
    NodeRPC(host, backend=backend(), dialect="comet-1.0", url_prefix="/nets/<net>/node")

    page = host.test_client().get(path).get_data(as_text=True)

    assert '<a href="//localhost/nets/5/node/health?">' in page
    assert '"//localhost/health?"' not in page
