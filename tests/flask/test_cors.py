"""Tests of CORS headers for pages of other sites."""

from __future__ import annotations

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from flask_noderpc import NodeRPC

from .conftest import MakeApp

WALLET = "https://wallet.example"
HEALTH = '{"id":1,"method":"health"}'


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    host = make_app(NODERPC_CORS_ORIGINS=[WALLET, "https://*.example.org"])
    NodeRPC(host)
    return host


def preflight(app: Flask, origin: str = WALLET, **headers: str) -> TestResponse:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", **headers}
    return app.test_client().options("/", headers=asked)


def test_without_origins_no_cors_headers_are_sent(make_app: MakeApp) -> None:
    host = make_app()
    NodeRPC(host)

    answer = host.test_client().get("/health", headers={"Origin": WALLET})

    assert answer.status_code == 200
    assert "Vary" not in answer.headers
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("origin", [WALLET, "https://a.example.org", "HTTPS://A.EXAMPLE.ORG"])
def test_a_listed_origin_may_read(app: Flask, origin: str) -> None:
    client = app.test_client()
    for answer in (
        client.get("/health", headers={"Origin": origin}),
        client.post("/", data=HEALTH, headers={"Origin": origin}),
        client.get("/block?height=x", headers={"Origin": origin}),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert answer.headers["Vary"] == "Origin"
        exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
        assert {"ETag", "X-Cosmos-Block-Height", "X-NodeRPC-Provenance"} <= set(exposed)


@pytest.mark.parametrize("origin", ["", "https://evil.example", "null", WALLET + ".evil"])
def test_a_foreign_origin_gets_no_cors_headers(app: Flask, origin: str) -> None:
    headers = {"Origin": origin} if origin else {}

    answer = app.test_client().get("/health", headers=headers)

    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Access-Control-Expose-Headers" not in answer.headers
    assert answer.headers["Vary"] == "Origin"


def test_any_origin_is_named_by_a_star(make_app: MakeApp) -> None:
    host = make_app(NODERPC_CORS_ORIGINS="*")
    NodeRPC(host)

    answer = host.test_client().get("/health", headers={"Origin": WALLET})

    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_a_preflight_lists_allowed_methods_and_headers(app: Flask) -> None:
    answer = preflight(app, **{"Access-Control-Request-Headers": "content-type,accept"})

    assert (answer.status_code, answer.data) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == WALLET
    assert answer.headers["Access-Control-Allow-Methods"] == "POST"
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type,accept"
    assert set(answer.headers["Vary"].split(", ")) == {
        "Origin",
        "Access-Control-Request-Method",
        "Access-Control-Request-Headers",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"Access-Control-Request-Method": "DELETE"},
        {"Access-Control-Request-Headers": "x-secret"},
    ],
)
def test_a_preflight_for_anything_else_gets_no_leave(
    app: Flask, headers: dict[str, str]
) -> None:
    answer = preflight(app, **headers)

    assert answer.status_code == 204
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


def test_a_page_that_may_read_may_still_not_write(app: Flask) -> None:
    headers = {"Origin": WALLET, "Sec-Fetch-Site": "cross-site"}

    answer = app.test_client().get('/broadcast_tx_sync?tx="a=b"', headers=headers)

    assert answer.status_code == 403
    assert answer.headers["Access-Control-Allow-Origin"] == WALLET


def test_pages_outside_the_mount_are_not_touched(make_app: MakeApp) -> None:
    host = make_app(NODERPC_CORS_ORIGINS="*")
    host.add_url_rule("/own", view_func=lambda: "own")
    NodeRPC(host, url_prefix="/node")

    answer = host.test_client().get("/own", headers={"Origin": WALLET})

    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("listed", "origin", "is_admitted"),
    [
        ("http://[::1]:8080", "http://[::1]:8080", True),
        ("http://[::1]:*", "http://[::1]:8080", True),
        ("http://[::1]:8080", "http://:", False),
        ("https://?.example", "https://a.example", False),
        ("https://a*a.example", "https://a.example", False),
        ("https://a*a.example", "https://aa.example", True),
    ],
)
def test_only_a_star_stands_for_anything(
    make_app: MakeApp, listed: str, origin: str, is_admitted: bool
) -> None:
    host = make_app(NODERPC_CORS_ORIGINS=[listed])
    NodeRPC(host)

    answer = host.test_client().get("/health", headers={"Origin": origin})

    assert ("Access-Control-Allow-Origin" in answer.headers) is is_admitted


def test_a_preflight_is_answered_in_a_host_without_options(make_app: MakeApp) -> None:
    host = make_app(NODERPC_CORS_ORIGINS=[WALLET], PROVIDE_AUTOMATIC_OPTIONS=False)
    NodeRPC(host)
    host.add_url_rule("/own", "own", lambda: "own")

    assert preflight(host).headers["Access-Control-Allow-Origin"] == WALLET
    assert host.test_client().options("/own").status_code == 405


@pytest.mark.parametrize("origin", [WALLET, "https://evil.example", ""])
def test_read_origins_responses_vary_by_origin(make_app: MakeApp, origin: str) -> None:
    host = make_app(NODERPC_READ_ORIGINS=[WALLET])
    NodeRPC(host)
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"} if origin else {}

    answer = host.test_client().get("/health", headers=headers)

    assert answer.status_code == (403 if "evil" in origin else 200)
    assert set(answer.vary) == {"Origin", "Referer", "Sec-Fetch-Site"}
