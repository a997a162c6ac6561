"""Tests of ``noderpc status`` with nodes of this package, other nodes, and other servers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flask_noderpc import jsoncodec
from flask_noderpc.cli import main
from flask_noderpc.cli.command import json_text
from flask_noderpc.companion.address import Address
from flask_noderpc.companion.node_state import Readiness
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, run_node, serve

from ..helpers.until import until
from ..server.node_process import started
from .conftest import HEIGHTS, Companion, Serve, node_of
from .raw_node import Respond, http, raw_node, sends
from .test_follow import grown, reaches
from .test_import import NODES, get


def run(*words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["status", *words])


def table(*words: str) -> dict[str, str]:
    """Return the values by their labels."""
    done = run(*words)
    assert done.exit_code == 0, done.output
    return {line[:16].strip(): line[16:] for line in done.output.splitlines()}


@pytest.mark.parametrize("dialect", NODES)
def test_a_node_shows_its_chain_and_its_store(dialect: str) -> None:
    with run_node(dialect=dialect) as node:
        shown = table(grown(node, 5).url)
        document = json.loads(run(node.url, "--json").output)
        chain_id, owner = node.chain.reads.chain_id(), node.chain.store.lease_state().owner
    assert (shown["chain"], shown["height"], shown["lowest block"]) == (chain_id, "5", "1")
    assert (shown["syncing"], shown["peers"]) == ("no", "0")
    assert shown["latest block"].endswith(" old")
    assert shown["store"].endswith(" MB")
    assert owner.startswith(document["readiness"]["store"]["lease"]["holder"])
    assert document["chain_id"] == chain_id
    assert document["height"] == 5
    assert document["readiness"]["store"]["bytes"] > 4096


def test_a_node_at_a_unix_socket(tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/node.sock"
    refused = run(url)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"Error: {url}: it can't be reached; start the node")
    with started(tmp_path, "--rpc.laddr", url):
        until(lambda: run(url).exit_code == 0, "an answer")
        shown, document = table(url), json.loads(run(url, "--json").output)
    assert shown["syncing"] == "no"
    assert shown["store"].endswith(" MB")
    assert document["url"] == url


def test_a_companion_shows_its_progress(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    url = serve_node(node_of(chain, HEIGHTS))
    followed = companion(url)
    followed.follow()
    reaches(followed, HEIGHTS)
    with serve(app_for(followed, dialect="comet-0.38")) as own:
        shown = table(own)
        document = run(own, "--json").output
    assert shown["upstreams"] == "1 up"
    # Everyone may read this page, by default.
    assert url.removeprefix("http://") not in document
    assert shown["upstream height"] == f"{HEIGHTS} (0 ahead)"
    assert shown["missing heights"] == "block 0, results 0"
    assert shown["lease"].startswith("process ")


def test_a_node_before_its_first_block() -> None:
    with run_node() as node:
        shown = table(node.url)
    assert (shown["height"], shown["latest block"]) == ("0", "none yet")


def _like_cometbft(moniker: str = "m") -> Respond:
    """Respond to ``status`` like CometBFT, and to other requests with an error."""
    with run_node(dialect="comet-0.38") as node:
        status_reply = json.loads(get(f"{grown(node, 2).url}/status"))
    status_reply["result"]["node_info"]["moniker"] = moniker
    refused = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "none"}}

    def respond(peer: socket.socket, request: bytes) -> None:
        is_call = request.startswith(b"{")
        reply = status_reply if is_call and b'"status"' in request else refused
        page = json.dumps(reply | {"id": 0}).encode() if is_call else b"404 page not found"
        peer.sendall(http(page, "200 OK" if is_call else "404 Not Found"))

    return respond


def test_text_of_a_node_can_t_control_the_terminal() -> None:
    """A node that serves only ``status`` is shown, too."""
    with raw_node(_like_cometbft("\x1b[2J\n\x9bevil")) as url:
        done, as_json = run(url), run(url, "--json")
    assert "\\x1b[2J\\n\\x9bevil" in done.output
    assert "peers           unknown\n" in done.output
    assert "state " not in done.output
    assert json.loads(as_json.output)["moniker"] == "\x1b[2J\n\x9bevil"
    for each in (done, as_json):
        assert each.exit_code == 0
        assert each.output.isascii()
        assert "\x1b" not in each.output


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (sends(http(b"<html>")), "expected JSON"),
        (sends(http(b"{}")), "neither result nor error"),
        (sends(http(b'{"id":0,"result":{"node_info":7}}')), "can't be decoded"),
        (sends(http(b'{"id":0,"error":{"code":-32601,"message":"\x1b[2J"}}')), "[2J"),
    ],
)
def test_a_server_that_is_not_a_node(respond: Respond, reason: str) -> None:
    with raw_node(respond) as url:
        done = run(url)
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert done.output.startswith(f"Error: {url}: ")
    assert reason in done.output
    assert "pass the URL of a running node's RPC" in done.output
    assert "\x1b" not in done.output


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = run(url)
    assert done.exit_code == 1
    assert done.output == (
        f"Error: {url}: it can't be reached; start the node, or pass the URL of a running"
        " node's RPC\n"
    )


def test_a_page_below_a_path_keeps_the_query() -> None:
    address = Address.parse("https://gateway/v1/?key=secret")
    assert address.below("readyz") == "/v1/readyz?key=secret"


def test_the_json_of_a_node_without_details_can_be_printed() -> None:
    page = b'{"state": "ready", "measures": [{"name": "a", "value": 1}]}'
    found = jsoncodec.decode(page, Readiness)
    shown = json.loads(json_text(found))
    assert (shown["lowest"], shown["measures"][0]["labels"]) == ({}, {})
