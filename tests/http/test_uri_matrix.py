"""Tests of unusual GETs, compared with real nodes: the same ones are refused, with the same
code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from flask_noderpc import COMETBFT_ROUTES

from ..helpers.http import HttpResponse, client_get

MATRIX = Path(__file__).parents[1] / "golden" / "uri_error_matrix.txt"

OURS = COMETBFT_ROUTES.by_name()

# The document has 404 for an unknown hash, where nodes send 200 with a null block.
UNKNOWN_HASH = ("block_by_hash", "header_by_hash")


@dataclass(frozen=True)
class Row:
    """A request, and CometBFT 0.38's response."""

    target: str
    status: int
    code: int | None

    @property
    def route(self) -> str:
        return urlsplit(self.target).path.removeprefix("/")


def rows() -> list[Row]:
    found: list[Row] = []
    for line in MATRIX.read_text(encoding="utf-8").splitlines():
        if line.startswith(">> GET "):
            target = line.removeprefix(">> GET ").strip().removesuffix(" None")
        elif match := re.match(r" +([\d,]+) (\d{3}) ", line):
            versions, status = match[1].split(","), int(match[2])
            error = re.search(r'"error":\{"code":(-\d+)', line)
            if "38" in versions:
                found.append(Row(target, status, int(error[1]) if error else None))
    return found


# The document accepts more: a string needs no quotes, and a flag may have them.
LENIENT = (
    '/tx?hash=0x00&prove="true"',
    "/abci_query?path=/store",
    "/broadcast_tx_sync?tx=abc",
    "/tx_search?query=tx.height=1",
)

ROWS = [row for row in rows() if row.route in OURS and row.target not in LENIENT]


def test_the_matrix_is_read_whole() -> None:
    assert len(rows()) > 80
    assert len(ROWS) > 55
    assert {row.code for row in ROWS} == {None, -32602, -32603}


def asked(client: FlaskClient, row: Row) -> HttpResponse:
    # As with curl, quotes are sent unescaped, and blanks as %20.
    return client_get(client, row.target)


@pytest.mark.parametrize("row", [row for row in ROWS if row.code], ids=lambda row: row.target)
def test_uris_that_a_node_refuses_get_its_error_code(client: FlaskClient, row: Row) -> None:
    answer = asked(client, row)

    assert answer.status in (400, 404)
    assert answer.headers["Content-Type"] == "application/json"
    assert "Cache-Control" not in answer.headers
    assert answer.json["id"] == -1
    assert answer.json["error"]["code"] == row.code
    assert "result" not in answer.json


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.code == -32602], ids=lambda row: row.target
)
def test_a_parameter_that_can_t_be_read_is_named_with_its_value(
    client: FlaskClient, row: Row
) -> None:
    error = asked(client, row).json["error"]

    query = parse_qs(urlsplit(row.target).query)
    name, _, reason = error["data"].partition(": ")
    assert error["message"] == "Invalid params"
    assert name in query
    assert "expected " in reason


@pytest.mark.parametrize("target", LENIENT)
def test_strings_are_accepted_without_quotes(client: FlaskClient, target: str) -> None:
    assert target in {row.target for row in rows() if row.code == -32602}

    answer = client_get(client, target)

    assert "Invalid params" not in str(answer.json)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.code is None], ids=lambda row: row.target
)
def test_uris_that_a_node_accepts_are_accepted(client: FlaskClient, row: Row) -> None:
    answer = asked(client, row)

    if row.route in UNKNOWN_HASH:
        assert (answer.status, answer.json["error"]["code"]) == (404, -32603)
    else:
        assert (answer.status, row.status) == (200, 200)
        assert "result" in answer.json
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "row", [row for row in rows() if row.status == 404], ids=lambda row: row.target
)
def test_unknown_paths_are_404(client: FlaskClient, row: Row) -> None:
    assert asked(client, row).status == 404


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("/block?height=0", "height must be greater than 0, but got 0"),
        (
            "/block?height=99",
            "height 99 must be less than or equal to the current blockchain height 7",
        ),
        (
            "/validators?height=99",
            "height 99 must be less than or equal to the current blockchain height 8",
        ),
        ("/validators?page=2", "page should be within [1, 1] range, given 2"),
        ("/blockchain?minHeight=-1", "heights must be non-negative"),
        (
            "/blockchain?minHeight=5&maxHeight=2",
            "min height 5 can't be greater than max height 2",
        ),
        ("/tx", "transaction hash cannot be empty"),
        ("/tx?hash=0x00", "tx (00) not found"),
        ('/tx?hash="00"', "tx (3030) not found"),
        ("/genesis_chunked?chunk=1", "there are 1 chunks, 1 is invalid"),
    ],
)
def test_clients_find_the_sentences_they_match(
    client: FlaskClient, target: str, sentence: str
) -> None:
    assert client_get(client, target).json["error"]["data"] == sentence


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/block?height=0", 400),
        ("/block?height=99", 404),
        ("/tx?hash=0x00", 404),
        ("/tx", 400),
        ("/block_by_hash?hash=0x00", 404),
        ("/header_by_hash", 404),
        ("/block?height=abc", 400),
        ("/genesis_chunked?chunk=1", 400),
    ],
)
def test_status_is_400_for_bad_parameters_and_404_for_missing_data(
    client: FlaskClient, target: str, status: int
) -> None:
    assert client_get(client, target).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_route_is_read_and_never_written(client: FlaskClient, method: str) -> None:
    assert client.open("/status", method=method).status_code == 405


def test_head_is_get_without_the_body(client: FlaskClient) -> None:
    head, whole = client.head("/block?height=2"), client.get("/block?height=2")

    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.data))
    assert head.headers["Cache-Control"] == whole.headers["Cache-Control"]
