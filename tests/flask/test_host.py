"""Tests of the app around the node: its routes, hooks, error handlers and limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from threading import Barrier
from typing import Any

import pytest
from flask import Blueprint, Flask, Response, abort, g, request
from flask.testing import FlaskClient
from flask_wtf import CSRFProtect
from werkzeug.test import create_environ, run_wsgi_app

from flask_noderpc import (
    COMETBFT_ROUTES,
    ConfigurationError,
    MemoryChain,
    NodeRPC,
    Route,
    RouteTable,
    noderpc_bp,
)
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.responses import Empty
from flask_noderpc.jsonrpc.params import NoParams
from flask_noderpc.testing import make_chain

from .conftest import MakeApp

HEALTH = {"jsonrpc": "2.0", "id": 1, "method": "health"}


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    """A host with a chain of five blocks in it."""
    chain = make_chain(5)
    host = make_app()
    NodeRPC(
        host, backend=ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    )
    return host


def test_routes_of_the_host_still_work(app: Flask) -> None:
    app.add_url_rule("/hello", view_func=lambda: "hello")

    assert app.test_client().get("/hello").text == "hello"
    assert app.test_client().get("/nosuch").status_code == 404


def test_hooks_of_the_host_see_every_call(app: Flask) -> None:
    seen: list[str] = []
    app.before_request(lambda: seen.append(f"before {request.endpoint}"))

    @app.after_request
    def stamp(response: Response) -> Response:
        seen.append(f"after {response.status_code}")
        response.headers["X-Host"] = "here"
        return response

    client = app.test_client()
    answers = [
        client.get("/health"),
        client.get("/block?height=x"),
        client.post("/", json=HEALTH),
    ]

    assert seen == [
        "before noderpc.health",
        "after 200",
        "before noderpc.block",
        "after 400",
        "before noderpc.rpc",
        "after 200",
    ]
    assert all(answer.headers["X-Host"] == "here" for answer in answers)


def test_a_before_request_hook_may_refuse_a_call(app: Flask) -> None:
    @app.before_request
    def guard() -> None:
        g.user = request.headers.get("X-User")
        if g.user is None:
            abort(401)

    client = app.test_client()

    assert client.get("/health").status_code == 401
    assert client.get("/health", headers={"X-User": "me"}).status_code == 200


def test_a_hook_may_read_the_body_first(app: Flask) -> None:
    bodies: list[bytes] = []
    app.before_request(lambda: bodies.append(request.get_data()))

    answer = app.test_client().post("/", json=HEALTH)

    assert b"health" in bodies[0]
    assert answer.get_json()["result"] == {}


class _Line(BytesIO):
    """Bytes that a client has sent, and whether the server tried to read more."""

    waits = False

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.waits = self.waits or (not found and size != 0)
        return found


@pytest.mark.parametrize("reads", [True, False])
def test_of_a_body_that_is_refused_no_more_is_waited_for(app: Flask, *, reads: bool) -> None:
    if reads:
        app.before_request(lambda: request.get_data() and None)
    body = json.dumps(HEALTH).encode()
    environ = create_environ(
        "/", method="POST", data=body, headers={"Content-Encoding": "gzip"}
    )
    environ["wsgi.input"] = line = _Line(body)

    _, status, _ = run_wsgi_app(app, environ)

    assert status[:3] == "415"
    assert line.tell() == len(body)
    assert not line.waits


def test_html_error_handlers_of_the_host_leave_our_errors_as_they_are(app: Flask) -> None:
    def page(error: Any) -> tuple[str, int]:
        return "<h1>host</h1>", getattr(error, "code", 500)

    for kind in (400, 404, 413, 415, 500, Exception):
        app.register_error_handler(kind, page)
    client = app.test_client()

    answers = {
        client.get("/block?height=x"): (400, -32602),
        client.get("/block?height=99"): (404, -32603),
        client.post("/", data="x"): (400, -32700),
        client.post("/", data=b"x" * 1_000_001): (413, -32600),
        client.post("/", data="x", headers={"Content-Encoding": "gzip"}): (415, -32600),
    }

    for answer, (status, code) in answers.items():
        assert (answer.status_code, answer.content_type) == (status, "application/json")
        assert answer.get_json()["error"]["code"] == code
    # Paths that are not the extension's belong to the app.
    assert client.get("/nosuch").text == "<h1>host</h1>"


@pytest.mark.features
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_error_handlers_of_the_host_leave_a_request_without_a_handshake_refused(
    make_app: MakeApp, dialect: str, method: str
) -> None:
    app = make_app(NODERPC_DIALECT=dialect, NODERPC_JSON_RPC_ENABLE=True)
    NodeRPC(app)
    app.register_error_handler(Exception, lambda error: ("<h1>host</h1>", 200))

    for path in ("/websocket", "/evm/ws"):
        answer = app.test_client().open(path, method=method)
        assert answer.status == "400 Bad Request"
        assert answer.content_type == "text/plain; charset=utf-8"
        assert answer.text == ("" if method == "HEAD" else "Bad Request\n")


def test_a_page_of_the_host_at_a_websocket_s_path_is_served_beside_it(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    client = mounted(make_app(), lambda app: add_mine(app, "/websocket"), first=False)

    assert client.get("/websocket").text == "mine"
    # A handshake without a version.
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert client.get("/websocket", headers=upgrade).status_code == 426
    assert caplog.messages == []


def test_csrf_protection_is_lifted_by_exempting_the_blueprint(make_app: MakeApp) -> None:
    app = make_app(SECRET_KEY="x")
    csrf = CSRFProtect(app)
    app.register_blueprint(noderpc_bp)
    app.add_url_rule("/form", view_func=lambda: "", methods=["POST"])
    client = app.test_client()
    assert client.post("/", json=HEALTH).status_code == 400

    csrf.exempt(noderpc_bp)

    assert client.post("/", json=HEALTH).get_json()["result"] == {}
    # curl -d sends a form's content type, which is ignored, too.
    curl = client.post("/", data=b'{"id":1,"method":"health"}', content_type=FORM)
    assert curl.get_json()["result"] == {}
    assert client.post("/form").status_code == 400


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(("ours", "host", "limit"), [(500, 100, 100), (100, 500, 100)])
def test_the_lower_of_two_body_limits_counts(
    make_app: MakeApp, ours: int, host: int, limit: int
) -> None:
    app = make_app(NODERPC_MAX_BODY_BYTES=ours, MAX_CONTENT_LENGTH=host)
    app.register_blueprint(noderpc_bp)
    client = app.test_client()
    body = b'{"id":1,"method":"health"}'

    fits = client.post("/", data=body.ljust(limit))
    over = client.post("/", data=body.ljust(limit + 1))

    assert fits.status_code == 200
    assert (over.status_code, over.content_type) == (413, "application/json")
    assert f"at most {limit} bytes" in over.get_json()["error"]["data"]
    assert "MAX_CONTENT_LENGTH" in over.get_json()["error"]["data"]


# Tests of two rules for one request.


def add_mine(app: Flask, path: str, **options: Any) -> None:
    """Add a rule of the app, which responds with its name."""
    app.add_url_rule(path, "mine", lambda **_: "mine", **options)


def mounted(app: Flask, add: Callable[[Flask], None], *, first: bool) -> FlaskClient:
    """Return a client of an app whose host added something before the node, or after it."""
    steps = [add, lambda app: app.register_blueprint(noderpc_bp)]
    for step in steps if first else reversed(steps):
        step(app)
    return app.test_client()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("path", ["/", "/health", "/health/"])
@pytest.mark.parametrize("dialect", ["document", "comet-1.0"])
def test_an_index_or_health_page_of_the_app_wins(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, path: str, dialect: str, *, first: bool
) -> None:
    app = make_app(NODERPC_DIALECT=dialect)
    client = mounted(app, lambda app: add_mine(app, path), first=first)

    assert client.get(path).text == "mine"
    assert client.head(path).status_code == 200
    assert client.post("/", json=HEALTH).get_json()["result"] == {}
    assert "result" in client.get("/status").get_json()
    assert caplog.messages == []


def test_a_single_page_app_serves_its_index(make_app: MakeApp) -> None:
    def add(app: Flask) -> None:
        app.add_url_rule("/", "page", lambda path: path or "home", defaults={"path": ""})
        app.add_url_rule("/<path:path>", "page")

    client = mounted(make_app(), add, first=False)

    assert [client.get(path).text for path in ("/", "/a/b")] == ["home", "a/b"]
    assert "result" in client.get("/status").get_json()


def test_routes_of_the_host_are_neither_listed_nor_described(make_app: MakeApp) -> None:
    client = mounted(make_app(), lambda app: add_mine(app, "/health"), first=False)

    assert 'href="/health"' not in client.get("/").text
    paths = client.get("/openapi.json").get_json()["paths"]
    assert "/health" not in paths
    assert "/status" in paths


def test_the_host_s_hooks_see_the_first_request_too(make_app: MakeApp) -> None:
    pages = Blueprint("pages", __name__)
    pages.before_request(lambda: abort(401))
    pages.add_url_rule("/health", "health", lambda: "mine")

    client = mounted(make_app(), lambda app: app.register_blueprint(pages), first=False)

    assert [client.get("/health").status_code for _ in range(2)] == [401, 401]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("path", "methods"),
    [("/status", ["GET"]), ("/status/", ["GET"]), ("/", ["POST"]), ("/readyz", ["GET"])],
)
def test_any_other_rule_of_the_host_wins_too_and_is_logged_once(
    make_app: MakeApp,
    caplog: pytest.LogCaptureFixture,
    path: str,
    methods: list[str],
    *,
    first: bool,
) -> None:
    client = mounted(make_app(), lambda app: add_mine(app, path, methods=methods), first=first)

    answers = [client.open(path, method=methods[0]).text for _ in range(2)]

    assert answers == ["mine", "mine"]
    assert client.get("/health").get_json()["result"] == {}
    (said,) = (message for message in caplog.messages if "'mine'" in message)
    assert f"{methods[0]} {path.rstrip('/') or '/'} is served by" in said
    assert "NODERPC_EXCLUDE_ROUTES" in said


@pytest.mark.parametrize("prefix", ["/<tenant>/node", "/node"])
def test_below_a_prefix_the_host_s_rules_win_as_well(make_app: MakeApp, prefix: str) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, url_prefix=prefix)
    add_mine(app, prefix.replace("tenant", "who") + "/health")
    client = app.test_client()
    base = prefix.replace("<tenant>", "me")

    assert client.get(f"{base}/health").text == "mine"
    assert "result" in client.get(f"{base}/status").get_json()


def test_threads_that_are_first_together_all_reach_the_host(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)
    add_mine(app, "/health")
    begin = Barrier(8)

    def ask() -> str:
        client = app.test_client()
        begin.wait(60)
        return client.get("/health").text

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask) for _ in range(8)]

    assert [each.result() for each in asked] == ["mine"] * 8


def test_two_mounts_at_one_place_are_a_collision(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)

    with pytest.raises(ConfigurationError, match=r"'noderpc\.\w+' and by 'second\.\w+'"):
        app.register_blueprint(noderpc_bp, name="second")


def test_conflicts_among_host_rules_are_ignored(make_app: MakeApp) -> None:
    app = make_app()
    app.add_url_rule("/own", "first", lambda: "1")
    app.add_url_rule("/own", "second", lambda: "2")

    app.register_blueprint(noderpc_bp)

    assert app.test_client().get("/own").text == "1"


def test_other_methods_and_converters_are_no_collision(make_app: MakeApp) -> None:
    app = make_app()
    app.add_url_rule("/status", "put", lambda: "put", methods=["PUT"])
    app.add_url_rule("/<path:rest>", "pages", lambda rest: rest)
    app.register_blueprint(noderpc_bp)
    client = app.test_client()

    assert client.put("/status").text == "put"
    assert client.get("/some/page").text == "some/page"
    assert client.get("/status").content_type == "application/json"


def test_the_index_can_be_left_to_the_host(make_app: MakeApp) -> None:
    app = make_app(NODERPC_EXCLUDE_ROUTES=["index"])
    app.add_url_rule("/", "home", lambda: "mine")
    app.register_blueprint(noderpc_bp)
    client = app.test_client()

    assert client.get("/").text == "mine"
    assert client.post("/", json=HEALTH).get_json()["result"] == {}


def test_single_routes_can_be_left_to_the_host(make_app: MakeApp) -> None:
    app = make_app(NODERPC_EXCLUDE_ROUTES=["status", "block"])
    app.add_url_rule("/status", "own_status", lambda: "mine")
    app.register_blueprint(noderpc_bp)
    client = app.test_client()

    assert client.get("/status").text == "mine"
    assert client.get("/block").status_code == 404
    assert "result" in client.post("/", json={**HEALTH, "method": "status"}).get_json()
    page = client.get("/").text
    assert 'href="/health"' in page
    assert ">status<" not in page


@pytest.mark.features
def test_the_health_check_of_the_evm_layer_can_be_left_to_the_host(make_app: MakeApp) -> None:
    app = make_app(NODERPC_JSON_RPC_ENABLE=True, NODERPC_EXCLUDE_ROUTES=["evm"])
    app.add_url_rule("/evm", "page", lambda: "mine")
    app.register_blueprint(noderpc_bp)
    client = app.test_client()

    assert client.get("/evm").text == "mine"
    assert client.post("/evm", json={**HEALTH, "method": "eth_chainId"}).get_json()["result"]
    assert client.put("/evm").status_code == 405


def test_without_the_evm_layer_there_is_nothing_of_it_to_leave(make_app: MakeApp) -> None:
    app = make_app(NODERPC_EXCLUDE_ROUTES=["evm"])

    with pytest.raises(ConfigurationError, match="expected names of routes, got 'evm'"):
        app.register_blueprint(noderpc_bp)


def route_called(name: str) -> RouteTable:
    """Return the node's table with a route of the app."""
    return COMETBFT_ROUTES + RouteTable([Route(name, lambda ctx, _: Empty(), NoParams, Empty)])


@pytest.mark.features
@pytest.mark.parametrize("name", ["websocket", "rpc", "index", "rpc_bare", "evm"])
def test_a_route_called_as_something_of_the_node_s_is_refused(
    make_app: MakeApp, name: str
) -> None:
    from flask_noderpc.ethereum.settings import EthereumSettings

    ethereum = EthereumSettings(json_rpc_enable=True)
    mounted = NodeRPC(routes=route_called(name), settings=[ethereum], url_prefix="/node")

    with pytest.raises(ConfigurationError) as caught:
        mounted.init_app(make_app())

    assert f"your route {name!r} has the name" in str(caught.value)
    assert f"NODERPC_EXCLUDE_ROUTES = [{name!r}]" in str(caught.value)


def test_it_may_have_that_name_in_json_rpc(make_app: MakeApp) -> None:
    app = make_app()
    NodeRPC(app, routes=route_called("websocket"), exclude_routes=["websocket"])

    answer = app.test_client().post("/", json={**HEALTH, "method": "websocket"})

    assert answer.get_json()["result"] == {}
