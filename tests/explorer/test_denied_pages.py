"""Tests that callers whom ``authorize`` denies everything learn nothing about the chain from a
page."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from flask_noderpc import Denied
from flask_noderpc.cosmos.rest.view import VARIABLE
from tests.explorer.conftest import MakeSite, Site

# Open to all callers: liveness, files of the pages, and the empty page that geth's probe gets.
OPEN = {"/health", "/readyz", "/pages.css", "/try.css", "/try.js", "/try.svg", "/evm"}
HANDSHAKES = {"/websocket", "/evm/ws"}


def _no(request: object, method: str) -> Denied:
    return Denied(401)


def _only_search(request: object, method: str) -> bool:
    return method in ("tx_search", "block")


@pytest.fixture(params=["evm", "bank"])
def denied(make_site: MakeSite, request: pytest.FixtureRequest) -> Site:
    layer = {"json_rpc_enable": True} if request.param == "evm" else {"rest": True}
    site = make_site(authorize=_no, metrics=True, application=request.param, **layer)
    site.chain.produce()
    return site


def _paths(site: Site) -> list[str]:
    """Return a path for each rule of the app that accepts GET."""
    found = []
    for rule in site.app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and not rule.rule.startswith(
            ("/static", "/explorer/static")
        ):
            rest = "base/tendermint/v1beta1/node_info"
            values = {name: "1" if name != VARIABLE else rest for name in rule.arguments}
            built = rule.build(values, append_unknown=False)
            assert built is not None
            found.append(built[1])
    return sorted({path or "/" for path in found})


def _secrets(site: Site) -> set[str]:
    chain = site.chain
    block_id, block = chain.reads.block(1)
    hashes = {block_id.hash.hex(), block.header.app_hash.hex()} - {""}
    return {chain.reads.chain_id(), *hashes, *(each.upper() for each in hashes)}


def test_every_page_is_refused_or_says_nothing(denied: Site) -> None:
    secrets = _secrets(denied)
    paths = _paths(denied)
    assert {"/", "/try", "/metrics", "/openapi.json", "/explorer/"} <= set(paths)
    for path in paths:
        answer = denied.client.get(path, buffered=True)
        assert not any(secret in answer.text for secret in secrets), path
        if path in HANDSHAKES or answer.status_code == 501:
            # This path of the gateway has no method.
            continue
        expected = {200} if path in OPEN else {401}
        assert answer.status_code in expected, (path, answer.text)


@pytest.mark.parametrize(
    "path", ["/explorer/account/0x" + "ab" * 20, "/explorer/tx/" + "0" * 64]
)
def test_pages_with_variables_are_refused(denied: Site, path: str) -> None:
    assert denied.client.get(path).status_code == 401
    assert denied.client.post(path).status_code in (401, 405)


def test_readyz_keeps_its_status_code_and_hides_the_reason(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(authorize=_no)
    assert site.client.get("/readyz").text == "ready\n"
    monkeypatch.setattr(
        site.chain, "check_ready", lambda: (_ for _ in ()).throw(ValueError("height 7"))
    )
    answer = site.client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready\n")


def test_health_is_open_in_a_batch_and_by_post_too(denied: Site) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": name}
        for n, name in ((1, "health"), (2, "status"))
    ]
    health, status = denied.client.post("/", json=calls).get_json()
    assert health["result"] == {}
    assert "result" not in status


def test_a_page_asks_for_its_own_method(make_site: MakeSite) -> None:
    client = make_site(authorize=_only_search).client
    allowed = ["/explorer/txs", "/explorer/account/0x" + "ab" * 20]
    assert [client.get(path).status_code for path in allowed] == [200, 200]
    for path in ("/", "/try", "/explorer/", "/explorer/validators", "/explorer/key?data=a"):
        assert client.get(path).status_code == 403, path


def _statuses(client: FlaskClient) -> list[int]:
    return [client.get(path).status_code for path in ("/", "/try", "/explorer/", "/metrics")]


def test_who_may_call_may_read(make_site: MakeSite) -> None:
    client = make_site(authorize=lambda request, method: True, metrics=True).client
    assert _statuses(client) == [200, 200, 200, 200]
