"""Tests of IDs, method names and parameters of calls, in unusual forms."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

from ..helpers.http import client_call, client_post

LONG = "x" * 999_900


@pytest.mark.parametrize(
    "request_id",
    [
        "0",
        "-1",
        "1.5",
        "1e3",
        "-0",
        "1E400",
        "9223372036854775807",
        "9223372036854775808",
        "12345678901234567890123",
        '""',
        '"a"',
        '"\\u0041\\/\\n"',
        '"\\ud83d\\ude00"',
        '"😀"',
        '"</script>"',
        f'"{LONG}"',
    ],
    ids=lambda request_id: request_id[:30],
)
def test_an_id_is_echoed_byte_for_byte(client: FlaskClient, request_id: str) -> None:
    good = client_post(client, f'{{"id": {request_id} ,"method":"health"}}')
    bad = client_post(client, f'{{"id": {request_id} ,"method":"nosuch"}}')

    assert good.body == f'{{"jsonrpc":"2.0","id":{request_id},"result":{{}}}}'.encode()
    assert f'"id":{request_id},"error"'.encode() in bad.body


@pytest.mark.parametrize("request_id", ["true", "false", "[]", "[1]", "{}"])
def test_invalid_ids_are_refused(client: FlaskClient, request_id: str) -> None:
    answer = client_post(client, f'{{"id":{request_id},"method":"health"}}')

    reply = answer.json
    assert (answer.status, reply["id"], reply["error"]["code"]) == (400, None, -32600)
    assert reply["error"]["data"].startswith("id must be")


@pytest.mark.parametrize("body", ['{"method":"health"}', '{"id":null,"method":"health"}'])
def test_a_call_without_an_id_gets_no_reply(client: FlaskClient, body: str) -> None:
    answer = client_post(client, body)

    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    "method",
    [
        "",
        " ",
        "nosuch",
        "Health",
        "health ",
        "health/",
        "__class__",
        "../status",
        "a\x00b",
        "\n",
        "\u202e",
        LONG,
    ],
    ids=lambda method: repr(method[:20]),
)
def test_a_method_that_is_not_there_is_named_in_short(client: FlaskClient, method: str) -> None:
    answer = client_post(client, json.dumps({"id": 1, "method": method}))

    error = answer.json["error"]
    assert (answer.status, error["code"]) == (200, -32601)
    assert error["message"] == "Method not found"
    assert error["data"] == f"no method {method[:64]!r}"


@pytest.mark.parametrize("method", ["null", "1", "true", "[]", "{}", "1e400"])
def test_a_method_that_is_no_text_is_an_invalid_request(
    client: FlaskClient, method: str
) -> None:
    answer = client_post(client, f'{{"id":4,"method":{method}}}')

    assert (answer.status, answer.json["id"]) == (400, 4)
    assert answer.json["error"]["code"] == -32600


@pytest.mark.parametrize("params", ["null", "[]", "{}", "[null]", '{"height":null}'])
def test_a_null_parameter_counts_as_omitted(client: FlaskClient, params: str) -> None:
    answer = client_post(client, f'{{"id":1,"method":"block","params":{params}}}')

    assert answer.json["result"]["block"]["header"]["height"] == "7"


def test_params_may_be_absent(client: FlaskClient) -> None:
    answer = client_post(client, '{"id":1,"method":"block"}')

    assert answer.json["result"]["block"]["header"]["height"] == "7"


@pytest.mark.parametrize(
    "params", [{"height": "2", "bogus": [1]}, {"height": 2, "Height": 3}, ["2"], [2]]
)
def test_params_are_named_or_in_order(client: FlaskClient, params: object) -> None:
    result = client_call(client, "block", params)["result"]

    assert result["block"]["header"]["height"] == "2"


@pytest.mark.parametrize("method", ["block", "health"])
@pytest.mark.parametrize("params", ['"abc"', "5", "true", "1.5"])
def test_params_of_another_kind_are_refused(
    client: FlaskClient, method: str, params: str
) -> None:
    answer = client_post(client, f'{{"id":1,"method":"{method}","params":{params}}}')

    error = answer.json["error"]
    assert (answer.status, error["code"]) == (200, -32602)
    assert error["data"] == "params must be an object or an array"


@pytest.mark.parametrize(
    ("method", "params", "names"),
    [
        ("block", [1, 2], "expected at most 1 parameters (height), got 2"),
        ("validators", [1] * 9, "(height, page, per_page), got 9"),
        ("health", [1], "expected at most 0 parameters (), got 1"),
    ],
)
def test_too_many_params_are_refused_and_counted(
    client: FlaskClient, method: str, params: list[int], names: str
) -> None:
    error = client_call(client, method, params)["error"]

    assert error["code"] == -32602
    assert names in error["data"]


@pytest.mark.parametrize(
    "params", ['{"height":1e400}', '{"height":1' + "0" * 5000 + "}", '{"x":1e400}', "1e400"]
)
def test_a_number_beyond_every_range_is_a_bad_parameter(
    client: FlaskClient, params: str
) -> None:
    answer = client_post(client, f'{{"id":1,"method":"block","params":{params}}}')

    assert (answer.status, answer.json["error"]["code"]) == (200, -32602)


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("block", "height", "abc"),
        ("block", "height", 1.5),
        ("block", "height", "1.0"),
        ("block", "height", True),
        ("block", "height", [1]),
        ("block", "height", {}),
        ("block", "height", ""),
        ("block", "height", "0x5"),
        ("block", "height", "٣"),
        ("tx", "hash", 5),
        ("tx", "hash", "not base64!"),
        ("tx", "hash", "0xzz"),
        ("tx", "prove", "True"),
        ("tx", "prove", 1),
        ("genesis_chunked", "chunk", -1),
        ("broadcast_tx_sync", "tx", 5),
        ("broadcast_tx_sync", "tx", "a"),
        ("check_tx", "tx", "a=1"),
        ("abci_query", "path", 5),
        ("abci_query", "data", 5),
        ("abci_query", "prove", "yes"),
        ("block", "height", "9" * 5000),
        ("block", "height", [[[[]]]] * 500),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_name(
    client: FlaskClient, method: str, name: str, value: object
) -> None:
    error = client_call(client, method, {name: value})["error"]

    assert error["code"] == -32602
    assert error["data"].startswith(f"{name}: ")
    assert len(error["data"]) < 250


# Heights, from the lowest to the highest.

EDGES = [-(1 << 63), -(1 << 31), -1, 0, 8, 1 << 31, 1 << 53, (1 << 63) - 1]
BEYOND = [-(1 << 63) - 1, 1 << 63, 1 << 64, 10**23, -(10**40)]
BY_HEIGHT = ["block", "header", "commit", "block_results", "validators", "consensus_params"]


@pytest.mark.parametrize("method", BY_HEIGHT)
@pytest.mark.parametrize("height", [edge for edge in EDGES if edge != 8])
def test_a_height_that_is_not_there_is_refused_in_every_form(
    client: FlaskClient, method: str, height: int
) -> None:
    by_get = client.get(f"/{method}?height={height}")
    as_text, as_number = (
        client_call(client, method, {"height": form})["error"] for form in (str(height), height)
    )

    assert by_get.status_code == (400 if height <= 0 else 404)
    assert by_get.json is not None
    assert by_get.json["error"] == as_text == as_number
    assert as_text["code"] == -32603
    assert str(height) in as_text["data"]


@pytest.mark.parametrize("method", BY_HEIGHT)
@pytest.mark.parametrize("height", BEYOND)
def test_a_height_of_more_than_64_bits_is_a_bad_parameter(
    client: FlaskClient, method: str, height: int
) -> None:
    by_get = client.get(f"/{method}?height={height}")
    forms = [
        client_call(client, method, {"height": form})["error"] for form in (str(height), height)
    ]

    assert by_get.status_code == 400
    assert by_get.json is not None
    for error in (by_get.json["error"], *forms):
        assert error["code"] == -32602
        assert error["data"].startswith("height: ")


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("blockchain", "minHeight"),
        ("blockchain", "maxHeight"),
        ("validators", "page"),
        ("validators", "per_page"),
        ("unconfirmed_txs", "limit"),
        ("genesis_chunked", "chunk"),
        ("abci_query", "height"),
    ],
)
def test_other_numbers_at_their_edges_are_our_caller_s_business(
    client: FlaskClient, method: str, name: str, edge: int
) -> None:
    by_get = client.get(f"/{method}?{name}={edge}")

    assert by_get.status_code in (200, 400)
    assert client_call(client, method, {name: edge}).keys() & {"result", "error"}


@pytest.mark.parametrize("value", ["%22%ff=a%22", "%22a%c3=1%22", "%22%ed%a0%80=1%22"])
def test_a_query_string_that_is_no_utf_8_is_refused(client: FlaskClient, value: str) -> None:
    answer = client.get(f"/check_tx?tx={value}")

    assert answer.status_code == 400
    assert answer.get_json()["error"]["code"] == -32602
    assert "0x" in answer.get_json()["error"]["data"]


def test_a_query_string_of_utf_8_is_taken(client: FlaskClient) -> None:
    answer = client.get("/check_tx?tx=%22%C3%BC=%E2%82%AC%22")

    assert answer.get_json()["result"]["code"] == "0"
