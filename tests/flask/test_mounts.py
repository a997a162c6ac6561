"""Tests of mounts: their places in an app, and what they share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask

from flask_noderpc import (
    ConfigurationError,
    EmbeddedChain,
    MemoryChain,
    NodeRPC,
    get_backend,
    noderpc_bp,
)
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.extension import mounts
from flask_noderpc.testing import SampleChain, make_chain
from tests.helpers.until import PATIENCE

from .conftest import MakeApp

HEALTH = b'{"id":1,"method":"health"}'


def memory(chain: SampleChain | None = None) -> ChainBackend:
    chain = chain or make_chain(5)
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


def posted(app: Flask, path: str, method: str = "health") -> int:
    body = json.dumps({"id": 1, "method": method})
    return app.test_client().post(path, data=body).status_code


def test_registering_the_blueprint_is_the_whole_integration(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)

    status = app.test_client().get("/status").get_json()

    assert status["result"]["node_info"]["network"].startswith("test-chain-")
    assert (Path(app.instance_path) / "noderpc.db").exists()


def test_registering_opens_and_writes_nothing(make_app: MakeApp) -> None:
    app = make_app()

    app.register_blueprint(noderpc_bp)

    assert not Path(app.instance_path).exists()


@pytest.mark.parametrize("prefix", ["/node", "/node/", "/deep/down"])
def test_with_a_prefix_posts_are_answered_with_and_without_a_slash(
    make_app: MakeApp, prefix: str
) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, url_prefix=prefix)
    bare = prefix.rstrip("/")

    assert [posted(app, bare), posted(app, bare + "/"), posted(app, "/")] == [200, 200, 404]
    client = app.test_client()
    assert [client.get(bare + end).status_code for end in ("", "/", "/health")] == [200] * 3


@pytest.mark.parametrize("prefix", [None, "", "/"])
def test_without_a_prefix_the_node_is_at_the_root(
    make_app: MakeApp, prefix: str | None
) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, url_prefix=prefix)

    assert posted(app, "/") == 200
    assert app.test_client().get("/health").status_code == 200


def test_the_extension_mounts_like_the_blueprint(make_app: MakeApp) -> None:
    now, later = make_app(), make_app()
    extension = NodeRPC(backend=memory(), url_prefix="/node", moniker="x")

    NodeRPC(now, backend=memory(), url_prefix="/node")
    extension.init_app(later)

    assert [posted(app, "/node") for app in (now, later)] == [200, 200]


@pytest.mark.parametrize(
    ("given", "path"), [({}, "/node"), ({"url_prefix": "/other"}, "/other")]
)
def test_a_blueprint_uses_its_url_prefix_unless_another_is_given(
    make_app: MakeApp, given: dict[str, str], path: str
) -> None:
    app = make_app()
    outer = Blueprint("outer", __name__, url_prefix="/outer")
    blueprint = NodeRPC(backend=memory(), url_prefix="/node").blueprint()

    outer.register_blueprint(blueprint, **given)
    app.register_blueprint(outer)
    app.register_blueprint(blueprint, **given)

    assert [posted(app, f"/outer{path}"), posted(app, path), posted(app, "/")] == [
        200,
        200,
        404,
    ]


def test_two_mounts_share_the_embedded_chain_and_differ_in_settings(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)
    app.register_blueprint(noderpc_bp, name="small", url_prefix="/small", max_batch=1)
    batch = [{"id": 1, "method": "health"}] * 2

    found = mounts(app)
    client = app.test_client()

    assert found["noderpc"].backend is found["small"].backend
    assert client.post("/", json=batch).status_code == 200
    assert client.post("/small", json=batch).status_code == 400
    client.get('/broadcast_tx_sync?tx="shared=1"')
    assert client.get("/small/num_unconfirmed_txs").get_json()["result"]["total"] == "1"


def test_two_mounts_serve_one_chain_in_two_dialects(make_app: MakeApp) -> None:
    app, backend = make_app(), memory()
    for name in ("0.34", "1.0"):
        NodeRPC(
            app,
            backend=backend,
            name=f"of {name.replace('.', '_')}",
            url_prefix=f"/{name}",
            dialect=f"comet-{name}",
        )
    client = app.test_client()

    found = [client.get(path).status_code for path in ("/0.34/header", "/1.0/header")]
    versions = [
        client.get(path).get_json()["result"]["node_info"]["version"]
        for path in ("/0.34/status", "/1.0/status", "/1.0/v1/status")
    ]

    assert found == [404, 200]
    assert versions == ["0.34.35", "1.0.1", "1.0.1"]
    assert [posted(app, path) for path in ("/1.0/v1", "/1.0/v1/", "/0.34/v1")] == [
        200,
        200,
        404,
    ]


def test_mounts_with_different_stores_share_nothing(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, chain_id="one")
    app.register_blueprint(
        noderpc_bp,
        name="two",
        url_prefix="/2",
        database=tmp_path / "b" / "b.db",
        chain_id="two",
    )
    client = app.test_client()

    networks = [
        client.get(path).get_json()["result"]["node_info"]["network"]
        for path in ("/status", "/2/status")
    ]

    assert networks == ["one", "two"]


def test_a_mount_takes_the_backend_it_is_given(make_app: MakeApp) -> None:
    app = make_app()
    chain = make_chain(7)
    app.register_blueprint(noderpc_bp, backend=memory(chain), url_prefix="/archive")

    status = app.test_client().get("/archive/status").get_json()

    assert status["result"]["sync_info"]["latest_block_height"] == "7"


def test_two_apps_in_one_process_share_nothing(make_app: MakeApp) -> None:
    apps = [make_app(NODERPC_CHAIN_ID=name) for name in ("left", "right")]
    for app in apps:
        app.register_blueprint(noderpc_bp)
    left, right = (app.test_client() for app in apps)

    left.get('/broadcast_tx_sync?tx="a=1"')

    counts = [client.get("/num_unconfirmed_txs").get_json() for client in (left, right)]
    networks = [client.get("/genesis").get_json() for client in (left, right)]
    assert [count["result"]["total"] for count in counts] == ["1", "0"]
    assert [found["result"]["genesis"]["chain_id"] for found in networks] == ["left", "right"]


def test_the_node_mounts_inside_another_blueprint(make_app: MakeApp) -> None:
    app = make_app()
    outer = Blueprint("outer", __name__, url_prefix="/outer")
    outer.register_blueprint(noderpc_bp, url_prefix="/node")
    app.register_blueprint(outer)

    page = app.test_client().get("/outer/node/").text

    assert [posted(app, "/outer/node"), posted(app, "/outer/node/")] == [200, 200]
    assert 'href="/outer/node/health"' in page
    with app.app_context():
        assert get_backend("outer.noderpc").reads.latest_height() == 0


def test_get_backend_takes_the_name_of_a_mount(make_app: MakeApp) -> None:
    app = make_app()
    backend = memory()
    app.register_blueprint(noderpc_bp, backend=backend, name="archive")

    with app.app_context():
        assert get_backend("archive") is backend
        with pytest.raises(
            ConfigurationError,
            match=r"\('archive'\), got 'noderpc'",
        ):
            get_backend()


@pytest.mark.parametrize("backend", [MemoryChain, "chain.db", object(), {}])
def test_a_backend_that_is_none_is_refused(make_app: MakeApp, backend: Any) -> None:
    with pytest.raises(ConfigurationError, match="backend: expected a ChainBackend"):
        NodeRPC(make_app(), backend=backend)


def test_a_name_is_taken_once(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)

    with pytest.raises(ValueError, match="already registered"):
        app.register_blueprint(noderpc_bp, url_prefix="/again")


def test_the_chain_is_started_once_however_many_ask(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)

    with app.app_context():
        first, second = get_backend(), get_backend()

    assert first is second
    assert isinstance(first, EmbeddedChain)
    assert first.reads.chain_id().startswith("test-chain-")


EXITING = """
import sys
from flask import Flask
from flask_noderpc import noderpc_bp

app = Flask("exiting")
app.config["NODERPC_DATABASE"] = sys.argv[1]
app.config["NODERPC_BLOCK_INTERVAL"] = 0.01
app.register_blueprint(noderpc_bp)
answer = app.test_client().get('/broadcast_tx_commit?tx="a=1"')
assert answer.status_code == 200, answer.data
"""


def test_a_process_that_ends_gives_its_lease_back(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"

    subprocess.run([sys.executable, "-c", EXITING, database], check=True, timeout=PATIENCE)

    chain = EmbeddedChain(database, produce=False)
    try:
        assert chain.produce() == chain.reads.latest_height() > 1
    finally:
        chain.close()


def test_two_mounts_can_not_want_one_chain_in_two_ways(tmp_path: Path) -> None:
    app = Flask(__name__, instance_path=str(tmp_path))
    app.register_blueprint(noderpc_bp, chain_id="one")

    with pytest.raises(ConfigurationError, match=r"chain_id: expected .* 'noderpc'"):
        app.register_blueprint(noderpc_bp, name="second", url_prefix="/x", chain_id="two")


def test_a_backend_that_was_closed_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    app = Flask(__name__, instance_path=str(tmp_path))
    NodeRPC(app, block_interval=0.01)
    client = app.test_client()
    assert client.get('/broadcast_tx_commit?tx="a=1"').status_code == 200
    backend = mounts(app)["noderpc"].backend
    backend.close()

    answer = client.get('/broadcast_tx_commit?tx="b=2"')

    backend.close()
    assert answer.get_json()["result"]["height"] == "2"


@pytest.mark.features
@pytest.mark.parametrize("prefix", [None, "/node"])
@pytest.mark.parametrize("dialect", ["document", "comet-0.38", "comet-1.0"])
def test_every_call_without_flask_has_a_rule_of_flask(prefix: str | None, dialect: str) -> None:
    from flask_noderpc.ethereum.settings import EthereumSettings

    app = Flask("host")
    NodeRPC(
        app,
        backend=memory(),
        url_prefix=prefix,
        dialect=dialect,
        settings=[EthereumSettings(json_rpc_enable=True)],
        exclude_routes="status,evm",
    )
    calls = dict(mounts(app)["noderpc"].calls())
    urls = app.url_map.bind("localhost")

    assert ("POST", f"{prefix or ''}/evm") in calls
    assert "status" not in calls.values()
    for (method, path), endpoint in calls.items():
        matched, _ = urls.match(path or "/", method)
        assert matched.removeprefix("noderpc.").startswith(endpoint)
