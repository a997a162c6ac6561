"""Tests of calls that ask for too much, or are malformed in unusual ways."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for

from ..faults.processes import check_duration
from ..helpers.raw_http import answers, post
from ..server.node_process import Node, client_seconds, started

# Far more than any of these calls takes, and far less than a walk over 2^63 heights.
SOON_S = 2.0


@pytest.fixture(scope="module", params=["document", "comet-0.38"])
def client(request: pytest.FixtureRequest) -> FlaskClient:
    chain = make_chain()
    backend = ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    app = app_for(backend, dialect=request.param, json_rpc_enable=True)
    return app.test_client()


@pytest.fixture
def soon() -> Iterator[None]:
    began = time.monotonic()
    yield
    check_duration(time.monotonic() - began, SOON_S)


def asked(client: FlaskClient, body: Any, path: str = "/") -> Any:
    answer = client.post(path, data=json.dumps(body), content_type="application/json")
    assert answer.status_code in (200, 400, 500), answer.text[:200]
    return answer.get_json()


EDGES = [-(2**63), -1, 0, 1, 2**63 - 1]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("low", "high"), list(product(EDGES, EDGES)))
def test_a_range_of_headers_is_short_whatever_its_ends(
    client: FlaskClient, low: int, high: int
) -> None:
    # tendermint#2049: a walk from the smallest height to the largest.
    params = {"minHeight": str(low), "maxHeight": str(high)}
    answer = asked(
        client, {"jsonrpc": "2.0", "id": 1, "method": "blockchain", "params": params}
    )
    assert len(answer.get("result", {}).get("block_metas", [])) <= 20


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("path", ["/", "/evm"])
def test_a_batch_of_a_hundred_thousand_is_refused_in_short(
    client: FlaskClient, path: str
) -> None:
    body = b"[" + b"{}," * 99_999 + b"{}]"
    answer = client.post(path, data=body, content_type="application/json")
    assert len(answer.data) < 2000
    assert b'"error"' in answer.data
    assert b'"result"' not in answer.data


@pytest.mark.parametrize("path", ["/", "/evm"])
def test_arrays_in_a_batch_are_no_calls(client: FlaskClient, path: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "health"}
    found = asked(client, [[call], [[call]]], path)
    assert "result" not in json.dumps(found)


def test_an_id_of_a_megabyte_is_echoed_or_refused(client: FlaskClient) -> None:
    own = "x" * 900_000
    answer = asked(client, {"jsonrpc": "2.0", "id": own, "method": "health"})
    assert answer["id"] == own or "error" in answer


@pytest.mark.parametrize("own", [2**53 + 1, 2**63 - 1])
def test_large_ids_do_not_collide(client: FlaskClient, own: int) -> None:
    # cometbft#5861
    for number in (own, own - 1):
        assert (
            asked(client, {"jsonrpc": "2.0", "id": number, "method": "health"})["id"] == number
        )


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("path", ["/", "/evm"])
def test_a_method_of_a_megabyte_is_not_sent_back(client: FlaskClient, path: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m" * 900_000})
    answer = client.post(path, data=body, content_type="application/json")
    assert b'"error"' in answer.data
    assert len(answer.data) < 3000


@pytest.mark.parametrize(
    "height",
    ["1_000", "１", "٣", "0x", "0b1", "1e0", "%00", "%ff", "1%00", "true", '"1', "+1 "],
)
def test_malformed_numbers_are_invalid_params(client: FlaskClient, height: str) -> None:
    raw = height if height.startswith("%") or "%" in height else quote(height)
    answer = client.get(f"/block?height={raw}")
    assert "error" in answer.get_json()
    assert answer.get_json()["error"]["code"] == -32602


def test_of_a_parameter_that_is_there_twice_one_counts(client: FlaskClient) -> None:
    found = client.get("/block?height=1&height=2").get_json()["result"]
    assert found["block"]["header"]["height"] in ("1", "2")


@pytest.mark.usefixtures("soon")
def test_ten_thousand_parts_of_a_form_are_not_read(client: FlaskClient) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    answer = client.post(
        "/", data=part * 10_000 + b"--x--", content_type="multipart/form-data; boundary=x"
    )
    assert answer.get_json()["error"]["code"] == -32700


@pytest.mark.parametrize(("dialect", "status"), [("document", 413), ("comet-0.38", 400)])
def test_a_body_over_the_limit_has_the_status_of_the_dialect(
    tmp_path: Path, dialect: str, status: int
) -> None:
    with started(tmp_path, "--dialect", dialect, limits=client_seconds(1)) as node:
        node.until_up()
        _refuses_large_bodies(node, status)


def _refuses_large_bodies(node: Node, status: int) -> None:
    large = b" " * 1_000_001
    chunked = b"%x\r\n" % len(large) + large + b"\r\n0\r\n\r\n"
    for request in (
        post(f"Content-Length: {len(large)}", "Connection: close", body=large),
        post("Transfer-Encoding: chunked", "Connection: close", body=chunked),
        post("Content-Length: 1000000000000"),
    ):
        assert answers(node, request) == [status]
