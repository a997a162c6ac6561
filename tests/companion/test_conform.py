"""Tests of ``noderpc conform`` with nodes whose bounds are known."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from click.testing import CliRunner, Result
from wsproto import ConnectionType, WSConnection
from wsproto import events as frames

from flask_noderpc.cli import main
from flask_noderpc.companion.address import Address
from flask_noderpc.companion.conform import ProbeTarget
from flask_noderpc.companion.conform import conform as probe
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.subscription import reason_against
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.errors import ResultNotFound
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import run_node
from tests.helpers.until import PATIENCE

from .conftest import LIMITS, Serve, node_of
from .raw_node import Respond, http, raw_node, results, sends
from .test_follow import grown
from .test_import import NODES, get
from .test_lies import Liar, LyingReads


def conform(url: str, *words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["conform", url, *words])


def found(url: str, *words: str) -> dict[str, Any]:
    """Return the values by the names of probes."""
    shown = json.loads(conform(url, "--json", *words).output)
    return {name: each["value"] for name, each in shown.items()}


@pytest.mark.parametrize("dialect", NODES)
def test_the_bounds_of_a_node(dialect: str) -> None:
    """The node has its whole chain, then a pruned one."""
    with run_node(dialect=dialect) as node:
        grown(node, 30)
        whole = found(node.url)
        node.chain.store.prune(12)
        pruned = found(node.url)
    expected = {"latest block": 30, "dialect": dialect, "websocket": True, "proven heights": 10}
    bounds = ("lowest block", "lowest results", "lowest indexed block")
    assert {name: whole[name] for name in expected} == expected
    assert [whole[name] for name in bounds] == [1, 1, 1]
    assert [pruned[name] for name in bounds] == [19, 19, 19]
    assert whole["missing methods"] == "none"


def test_the_table_and_the_exit_code() -> None:
    """The node has no fault."""
    with run_node(dialect="comet-0.38") as node:
        done = conform(grown(node, 3).url)
    assert done.exit_code == 0
    assert "lowest block          1\n" in done.output


def test_a_liar_is_found(chain: SampleChain, serve_node: Serve) -> None:
    """The report has the reason, and the command fails."""
    node = Liar(node_of(chain, 30))
    node.of_results = lambda results: results.__class__(results.height)
    done = conform(serve_node(node))
    assert done.exit_code == 1
    assert "refutes the results of block" in done.output


def test_a_node_s_name_can_t_control_the_terminal() -> None:
    with run_node(dialect="comet-0.38") as node:
        status = json.loads(get(f"{grown(node, 3).url}/status"))["result"]
    status["node_info"]["moniker"] = "\x1b[2J"
    with raw_node(results(status)) as url:
        done = conform(url)
    assert "moniker               \\x1b[2J\n" in done.output
    assert "\x1b" not in done.output


def test_a_node_that_is_none() -> None:
    """The error is one line without a table."""
    with raw_node(sends(http(b"<html>"))) as url:
        done = conform(url)
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "expected JSON" in done.output


def test_the_time_of_all_probes_is_bounded() -> None:
    """The report names each probe that was left out."""
    with run_node(dialect="comet-0.38") as node:
        findings = probe(
            ProbeTarget(Reader(Upstream(node.url, limits=LIMITS)), (), seconds=0.0)
        )
    assert {each.note for each in findings} == {"not probed in time; pass more --seconds"}


def _websocket_server(answer: str) -> Respond:
    """Accept a handshake, and answer the first message."""

    def respond(peer: socket.socket, body: bytes) -> None:
        websocket = WSConnection(ConnectionType.SERVER)
        websocket.receive_data(body)
        for _ in websocket.events():
            peer.sendall(websocket.send(frames.AcceptConnection()))
        peer.recv(65_536)
        peer.sendall(websocket.send(frames.TextMessage(answer)))
        peer.recv(1)

    return respond


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"jsonrpc":"2.0","id":1,"result":{}}', ""),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}', "is refused"),
        ('{"jsonrpc":"2.0","id":1,"result":null}', "invalid response to subscribe"),
        ('{"jsonrpc":"2.0","id":7,"result":{}}', "invalid response to subscribe"),
        ('{"type":"welcome"}', "invalid response to subscribe"),
        ("<html>", "invalid response to subscribe"),
    ],
)
def test_a_websocket_takes_subscriptions(answer: str, reason: str) -> None:
    """The probe reads the response and accepts only the right one."""
    with raw_node(_websocket_server(answer), whole_request=True) as url:
        found = reason_against(Address.parse(url), PATIENCE)
    assert (reason in found) if reason else found == ""


def test_a_websocket_that_is_none() -> None:
    """The handshake is refused, the node is silent, or there is no websocket."""
    with raw_node(sends(http(b"", "403 Forbidden")), whole_request=True) as url:
        assert "got status 403" in reason_against(Address.parse(url), PATIENCE)

    def hang(peer: socket.socket, body: bytes) -> None:
        peer.recv(1)

    with raw_node(hang, whole_request=True) as url:
        assert "no response" in reason_against(Address.parse(url), 0.05)
    assert "no websocket" in reason_against(Address.parse("127.0.0.1:1"), PATIENCE)


def test_a_node_that_has_pruned_more_states_than_blocks(
    chain: SampleChain, serve_node: Serve
) -> None:
    """The check uses heights for which the node has both."""

    def since_20(known: ValidatorSet | BlockResults, height: int) -> Any:
        if height < 20:
            raise ResultNotFound(f"could not find results for height #{height}")
        return known

    class Pruned(LyingReads):
        def results(self, height: int) -> BlockResults:
            found: BlockResults = since_20(super().results(height), height)
            return found

        def validators(self, height: int) -> ValidatorSet:
            found: ValidatorSet = since_20(super().validators(height), height)
            return found

    done = conform(serve_node(Liar(node_of(chain, 40), Pruned)), "--json")
    shown = json.loads(done.output)
    assert (shown["lowest block"]["value"], shown["lowest results"]["value"]) == (1, 20)
    assert (shown["proven heights"], done.exit_code) == ({"value": 10, "note": ""}, 0)
