"""Tests of hosts, methods and authorisation, which are the same by GET, POST, in batches and
over websockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from flask import Blueprint, Flask, Request, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from flask_noderpc import ConfigurationError, Denied, MemoryChain, NodeRPC, request_cost
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import serve

from ..helpers.websocket import WebSocketClient

RawRequest = tuple[int, str]


@dataclass
class Ways:
    """Every way to call a method; each returns a status or a code, and a text."""

    app: Flask
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, method: str) -> tuple[int, str]:
        answer = self.app.test_client().get(f"/{method}", headers=self.headers)
        return answer.status_code, answer.text

    def post(self, method: str, path: str = "/") -> str:
        return self._post({"jsonrpc": "2.0", "id": 1, "method": method}, path)

    def batch(self, method: str, path: str = "/") -> str:
        one = {"jsonrpc": "2.0", "id": 1, "method": method}
        return self._post([one, {**one, "id": 2}], path)

    def _post(self, body: Any, path: str) -> str:
        client: Any = self.app.test_client()
        answer = client.post(path, json=body, headers=self.headers)
        text: str = answer.text
        return text

    def websocket(self, method: str, path: str = "/websocket") -> str:
        client = WebSocketClient(self.url, path=path, headers=self.headers)
        try:
            return str(client.asked(method))
        finally:
            client.close()


def ways(app: Flask, **options: Any) -> Iterator[Ways]:
    chain = make_chain()
    backend = ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    NodeRPC(app, backend=backend, **{"json_rpc_enable": True, **options})
    with serve(app) as url:
        yield Ways(app, url)


@pytest.fixture
def app() -> Flask:
    return Flask("guarded")


@pytest.fixture
def denied(app: Flask) -> Iterator[Ways]:
    yield from ways(app, deny_methods=["status", "eth_get*", "subscribe", "eth_subscribe"])


@pytest.mark.features
def test_a_denied_method_does_not_exist_on_any_transport(denied: Ways) -> None:
    received = "NODERPC_DENY_METHODS"
    status, text = denied.get("status")
    assert status == 404
    for answer in (
        text,
        denied.post("status"),
        denied.batch("status"),
        denied.websocket("status"),
        denied.websocket("subscribe"),
        denied.post("eth_getBlockByNumber", "/evm"),
        denied.batch("eth_getBlockByNumber", "/evm"),
        denied.websocket("eth_getBlockByNumber", "/evm/ws"),
        denied.websocket("eth_subscribe", "/evm/ws"),
    ):
        assert "-32601" in answer
        assert received in answer
        assert "result" not in answer
    assert denied.get("health")[0] == 200
    assert '"result"' in denied.post("eth_chainId", "/evm")


@pytest.mark.features
def test_only_allowed_methods_exist(app: Flask) -> None:
    for found in ways(app, allow_methods=["health", "eth_chainId"]):
        assert found.get("health")[0] == 200
        assert '"result"' in found.post("eth_chainId", "/evm")
        assert "-32601" in found.post("status")
        assert "-32601" in found.post("eth_blockNumber", "/evm")


@pytest.mark.features
@pytest.mark.parametrize("setting", ["deny_methods", "allow_methods"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("broadcast_tx_cmmit", "did you mean 'broadcast_tx_commit'?"),
        ("Status", "did you mean 'status'?"),
        ("eth_sendTransactoin", "did you mean 'eth_sendTransaction'?"),
        ("made_up_*", ""),
    ],
)
def test_a_name_that_is_of_no_method_is_refused(
    app: Flask, setting: str, name: str, hint: str
) -> None:
    names: Any = {setting: ["status", name], "json_rpc_enable": True}
    with pytest.raises(ConfigurationError) as caught:
        NodeRPC(app, **names)

    assert str(caught.value).startswith(f"NODERPC_{setting.upper()}: no method {name!r}")
    assert str(caught.value).endswith(hint)


@pytest.mark.features
@pytest.mark.parametrize(
    "name",
    [
        "dial_seeds",
        "subscribe",
        "rpc.discover",
        "eth_getLogs",
        "debug_*",
        "personal_*",
        "*_tx_*",
    ],
)
def test_methods_that_are_not_served_now_may_be_denied(app: Flask, name: str) -> None:
    NodeRPC(app, deny_methods=[name])
    NodeRPC(app, name="second", url_prefix="/2", deny_methods=name, dialect="comet-0.34")


def by_token(request: Request, method: str) -> bool:
    return method == "health" or request.headers.get("Authorization") == "Bearer right"


@pytest.fixture
def authorized(app: Flask) -> Iterator[Ways]:
    yield from ways(app, authorize=by_token)


@pytest.mark.features
def test_unauthorized_calls_are_refused_on_every_transport(authorized: Ways) -> None:
    status, text = authorized.get("status")
    assert status == 403
    for answer in (
        text,
        authorized.post("status"),
        authorized.batch("status"),
        authorized.post("eth_chainId", "/evm"),
        authorized.batch("eth_chainId", "/evm"),
    ):
        assert "not authorized to call" in answer
        assert '"result"' not in answer
    for path in ("/websocket", "/evm/ws"):
        with pytest.raises(ConnectionRefusedError, match="403"):
            authorized.websocket("status", path)
    assert authorized.get("health")[0] == 200


@pytest.mark.features
def test_authorized_calls_are_served(authorized: Ways) -> None:
    authorized.headers["Authorization"] = "Bearer right"
    assert authorized.get("status")[0] == 200
    assert authorized.batch("status").count('"result"') == 2
    assert "result" in authorized.websocket("status")
    assert "result" in authorized.websocket("eth_chainId", "/evm/ws")


@pytest.mark.features
def test_authorized_responses_are_private_to_caches(app: Flask) -> None:
    for found in ways(app, authorize=by_token, dialect="comet-0.38"):
        headers = {"Authorization": "Bearer right"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "block", "params": {"height": "1"}}
        client = found.app.test_client()
        for read in (
            client.get("/block?height=1", headers=headers),
            client.post("/", json=body, headers=headers),
            client.post("/", json=[body, body], headers=headers),
        ):
            assert read.text.count('"result"') > 0
            assert "Cache-Control" not in read.headers


@pytest.mark.features
def test_each_message_of_a_websocket_is_authorized(app: Flask) -> None:
    seen: list[str] = []

    def only_health(_request: Request, method: str) -> bool:
        seen.append(method)
        return method == "websocket"

    for found in ways(app, authorize=only_health):
        assert "result" in found.websocket("health")
        assert "not authorized to call status" in found.websocket("status")
        assert "not authorized to call subscribe" in found.websocket("subscribe")
        assert "not authorized to call eth_subscribe" in found.websocket(
            "eth_subscribe", "/evm/ws"
        )
    # health is open to all callers, so authorize is not called for it.
    assert "health" not in seen
    assert {"websocket", "status", "subscribe", "eth_subscribe"} <= set(seen)


@pytest.mark.features
@pytest.mark.parametrize("answer", [None, 1, "yes", ValueError("broken")])
def test_only_a_plain_yes_lets_a_call_go_on(app: Flask, answer: Any) -> None:
    def authorize(_request: Request, _method: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    for found in ways(app, authorize=authorize):
        assert found.get("status")[0] == 403
        error = found.app.test_client().get("/status").get_json()["error"]
        assert (error["code"], error["message"]) == (-32001, "Forbidden")
        assert "not authorized" in found.post("status")


CHALLENGE = {"WWW-Authenticate": "Bearer"}


def denies_status(_request: Request, method: str) -> bool | Denied:
    """Deny two methods, in two ways."""
    if method in ("status", "eth_chainId"):
        return Denied(401, CHALLENGE)
    if method == "genesis":
        return Denied(429, {"Retry-After": "7"}, "too many calls")
    return True


@pytest.mark.features
@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_a_denied_call_has_its_status_and_headers(app: Flask, dialect: str) -> None:
    for found in ways(app, authorize=denies_status, dialect=dialect):
        client = found.app.test_client()
        for method, path, status, header in (
            ("status", "/", 401, ("WWW-Authenticate", "Bearer")),
            ("genesis", "/", 429, ("Retry-After", "7")),
            ("eth_chainId", "/evm", 401, ("WWW-Authenticate", "Bearer")),
        ):
            call = {"jsonrpc": "2.0", "id": 1, "method": method}
            answers = [client.post(path, json=body) for body in (call, [call], [call, call])]
            if path == "/":
                answers.append(client.get(f"/{method}"))
            for answer in answers:
                assert (answer.status_code, answer.headers[header[0]]) == (status, header[1])
                assert '"error"' in answer.text
        assert "too many calls" in client.get("/genesis").text


@pytest.mark.features
def test_a_batch_with_a_call_that_is_not_denied_is_200(app: Flask) -> None:
    for found in ways(app, authorize=denies_status):
        calls = [{"jsonrpc": "2.0", "id": 1, "method": m} for m in ("status", "health")]
        answer = found.app.test_client().post("/", json=calls)
        assert answer.status_code == 200
        assert "WWW-Authenticate" not in answer.headers
        assert ["result" in one for one in answer.get_json()] == [False, True]


@pytest.mark.features
def test_a_denied_message_of_a_websocket_is_an_error(app: Flask) -> None:
    for found in ways(app, authorize=denies_status):
        assert "not authorized to call status" in found.websocket("status")
        assert "too many calls" in found.websocket("genesis")
        assert "result" in found.websocket("health")


@pytest.mark.features
def test_a_denied_handshake_has_the_status_and_headers(app: Flask) -> None:
    requests: list[Request] = []

    def authorize(request: Request, method: str) -> Denied:
        requests.append(request)
        return Denied(401, CHALLENGE)

    for found in ways(app, authorize=authorize):
        for path in ("/websocket", "/evm/ws"):
            with pytest.raises(ConnectionRefusedError, match="401 Unauthorized"):
                found.websocket("status", path)
        assert [request.path for request in requests] == ["/websocket", "/evm/ws"]


@pytest.mark.parametrize(
    "made",
    [
        lambda: Denied(200),
        lambda: Denied(600),
        lambda: Denied(401, {"WWW-Authenticate": "a\r\nSet-Cookie: b"}),
        lambda: Denied(401, {"X": cast(str, 7)}),
        lambda: Denied(401, {"A B: c": "x"}),
        lambda: Denied(401, {"": "x"}),
        lambda: Denied(401, {"Transfer-Encoding": "chunked"}),
        lambda: Denied(401, message=cast(str, 5)),
        lambda: Denied(401, message="\ud800"),
    ],
)
def test_a_denial_that_no_response_can_have_is_refused(made: Callable[[], Denied]) -> None:
    with pytest.raises(
        ValueError, match=r"Denied\(|from 400 to 599|not a valid HTTP|surrogates"
    ):
        made()


def test_a_denial_keeps_the_headers_that_were_checked() -> None:
    headers = {"WWW-Authenticate": "Bearer"}
    denied = Denied(401, headers)
    headers["A"] = "x\r\nB: c"
    assert denied.headers == {"WWW-Authenticate": "Bearer"}


@pytest.mark.features
def test_calls_of_unknown_methods_are_denied_too(app: Flask) -> None:
    for found in ways(app, authorize=lambda request, method: Denied(401, CHALLENGE)):
        client = found.app.test_client()
        for path, method in (("/", "nope"), ("/evm", "eth_nope"), ("/evm", "eth_subscribe")):
            call = {"jsonrpc": "2.0", "id": 1, "method": method}
            known = call | {"method": "eth_chainId" if path == "/evm" else "status"}
            for body in (call, [known, call]):
                answer = client.post(path, json=body)
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert method not in answer.text or "not authorized" in answer.text


@pytest.fixture
def hosts(app: Flask) -> Iterator[Ways]:
    yield from ways(
        app, allowed_hosts=["node.example", "*.inner.example", "[2001:db8::1]", "::1"]
    )


@pytest.mark.features
@pytest.mark.parametrize("host", ["evil.example", "", 'a"><script>', "node.example.evil.com"])
def test_a_host_that_is_not_served_gets_nothing(hosts: Ways, host: str) -> None:
    hosts.headers["Host"] = host
    status, text = hosts.get("status")
    assert (status, text) == (
        403,
        "invalid host specified (add the host to NODERPC_ALLOWED_HOSTS)\n",
    )
    assert hosts.post("status") == hosts.post("eth_chainId", "/evm") == text
    assert hosts.app.test_client().get("/", headers=hosts.headers).status_code == 403


@pytest.mark.features
def test_a_handshake_for_another_host_is_refused(hosts: Ways) -> None:
    with pytest.raises(ConnectionRefusedError, match="403"):
        hosts.websocket("status")


@pytest.mark.features
@pytest.mark.parametrize(
    "host",
    ["node.example", "NODE.example:26657", "a.inner.example", "[2001:DB8::1]:80", "[::1]"],
)
def test_hosts_that_are_listed_are_served(hosts: Ways, host: str) -> None:
    hosts.headers["Host"] = host
    assert hosts.get("status")[0] == 200


@pytest.mark.features
def test_request_cost_counts_the_calls_of_a_request(app: Flask) -> None:
    left = 5

    @app.before_request
    def limit() -> tuple[str, int] | None:
        nonlocal left
        left -= request_cost()
        return ("too much\n", 429) if left < 0 else None

    for found in ways(app):
        assert found.get("health")[0] == 200
        assert found.batch("health").count('"result"') == 2
        assert found.batch("health").count('"result"') == 2
        assert found.post("health") == "too much\n"


@pytest.mark.features
def test_request_cost_does_not_depend_on_the_http_method(app: Flask) -> None:
    costs = []
    app.before_request(lambda: costs.append(request_cost()))
    body = [{"jsonrpc": "2.0", "id": 1, "method": "health"}] * 3
    for found in ways(app, dialect="comet-0.38"):
        for path in ("/", "/evm"):
            for method in ("GET", "POST"):
                answer = found.app.test_client().open(path, method=method, json=body)
                assert len(answer.json or ()) == 3
        assert found.get("health")[0] == 200
    assert costs == [3, 3, 3, 3, 1]


def test_counting_leaves_the_host_s_views_their_bodies(app: Flask) -> None:
    costs: list[int] = []
    app.before_request(lambda: costs.append(request_cost()))
    app.add_url_rule(
        "/upload", "upload", lambda: str(len(request.get_data())), methods=["POST"]
    )

    answer = app.test_client().post("/upload", data=bytes(6_000_000))

    assert (answer.status_code, answer.text) == (200, "6000000")


@pytest.mark.features
def test_flask_limiter_charges_a_batch_for_each_call(app: Flask) -> None:
    for found in ways(app):
        limiter = Limiter(get_remote_address, app=app, storage_uri="memory://")
        mounted = app.blueprints["noderpc"]
        assert isinstance(mounted, Blueprint)
        limiter.shared_limit("6/day", scope="noderpc", cost=request_cost)(mounted)
        assert found.get("health")[0] == 200
        assert found.batch("health").count('"result"') == 2
        assert found.batch("health", "/evm").count("-32601") == 2
        # One request is left, and a batch is accepted as a whole or not at all.
        assert "Too Many Requests" in found.batch("health")
        assert found.get("status")[0] == 429
