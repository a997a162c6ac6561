"""Tests of a home with CometBFT's config.toml: one warning names the settings that have no
effect here."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from flask_noderpc.chain.from_settings import chain_from_settings
from flask_noderpc.settings import all_settings, read_settings

# Lines that `cometbft init` of 0.38.25 writes, with other members between.
UNTOUCHED = f"""
version = "0.38.25"
proxy_app = "tcp://127.0.0.1:26658"
moniker = "{socket.gethostname()}"
genesis_file = "config/genesis.json"
node_key_file = "config/node_key.json"
priv_validator_laddr = ""
[rpc]
laddr = "tcp://127.0.0.1:26657"
cors_allowed_origins = []
cors_allowed_methods = ["HEAD", "GET", "POST", ]
cors_allowed_headers = ["Origin", "Accept", "Content-Type", "X-Requested-With",
  "X-Server-Time", ]
grpc_laddr = ""
max_open_connections = 900
max_subscription_clients = 100
max_subscriptions_per_client = 5
timeout_broadcast_tx_commit = "10s"
max_body_bytes = 1000000
tls_cert_file = ""
[p2p]
seeds = ""
persistent_peers = ""
[mempool]
size = 5000
[consensus]
timeout_commit = "1s"
create_empty_blocks = true
[instrumentation]
prometheus = false
"""


@pytest.fixture
def warnings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> list[str]:
    """Return the log of a node with these settings whose home has this config.toml."""
    content, settings = request.param
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(content)
    chain = chain_from_settings(read_settings({}, settings), tmp_path)
    with caplog.at_level(logging.WARNING, "flask_noderpc.chain"):
        chain.start()
    chain.close()
    return [text for text in caplog.messages if "config.toml" in text]


@pytest.mark.parametrize("warnings", [("", {}), (UNTOUCHED, {})], indirect=True)
def test_an_untouched_file_says_nothing(warnings: list[str]) -> None:
    assert warnings == []


CHANGED = """
proxy_app = "kvstore"
moniker = "validator-7"
[rpc]
laddr = "tcp://0.0.0.0:26657"
cors_allowed_origins = ["*"]
max_open_connections = 5
max_subscription_clients = 7
max_subscriptions_per_client = 8
max_body_bytes = 9
timeout_broadcast_tx_commit = "1m0.5s"
tls_cert_file = "own.pem"
[p2p]
persistent_peers = "abc@10.0.0.1:26656"
[consensus]
timeout_commit = "5s"
[instrumentation]
prometheus = true
"""
FLAGS = {
    "proxy_app = 'kvstore'": "--application (NODERPC_APPLICATION)",
    "moniker = 'validator-7'": "--moniker (NODERPC_MONIKER) is 'flask-noderpc'",
    "rpc.laddr = 'tcp://0.0.0.0:26657'": "--rpc.laddr (NODERPC_RPC_LADDR) is",
    "rpc.cors_allowed_origins = ['*']": "--cors-origins (NODERPC_CORS_ORIGINS) is ''",
    "rpc.max_open_connections = 5": "--max-open-connections",
    "rpc.max_subscription_clients = 7": "--max-subscription-clients",
    "rpc.max_subscriptions_per_client = 8": "--max-subscriptions-per-client",
    "rpc.max_body_bytes = 9": "--max-body-bytes",
    "rpc.timeout_broadcast_tx_commit = '1m0.5s'": "--broadcast-timeout",
    "rpc.tls_cert_file = 'own.pem'": "--rpc.tls_cert_file",
    "p2p.persistent_peers = 'abc@10.0.0.1:26656'": "this node has no P2P network",
    "consensus.timeout_commit = '5s'": "--block-interval (NODERPC_BLOCK_INTERVAL) is 1.0",
    "instrumentation.prometheus = true": "--metrics (NODERPC_METRICS) is false",
}


@pytest.mark.parametrize("warnings", [(CHANGED, {})], indirect=True)
def test_one_warning_names_each_member_and_its_flag(warnings: list[str]) -> None:
    (text,) = warnings

    told = dict(part.split(": ", 1) for part in text.split("different here: ")[1].split("; "))
    assert told.keys() == FLAGS.keys()
    for member, flag in FLAGS.items():
        assert flag in told[member]


@pytest.mark.parametrize(
    "warnings",
    [
        (
            CHANGED.replace('"kvstore"', '"tcp://127.0.0.1:26658"').replace(
                '"abc@10.0.0.1:26656"', '""'
            ),
            {
                "moniker": "validator-7",
                "rpc_laddr": "tcp://0.0.0.0:26657",
                "cors_origins": ["*"],
                "max_open_connections": 5,
                "max_subscription_clients": 7,
                "max_subscriptions_per_client": 8,
                "max_body_bytes": 9,
                "broadcast_timeout": 60.5,
                "tls_cert_file": "own.pem",
                "block_interval": 5,
                "metrics": True,
            },
        )
    ],
    indirect=True,
)
def test_members_that_hold_here_too_are_left_out(warnings: list[str]) -> None:
    assert warnings == []


@pytest.mark.parametrize(
    "warnings",
    [
        ('[rpc]\nladdr = 5\ntimeout_broadcast_tx_commit = 7\ncors_allowed_origins = "x"\n', {}),
        ("rpc = 7\nconsensus = []\nmoniker = 1.5\nproxy_app = {}\n", {}),
        (f'moniker = "{"x" * 100_000}"\n', {}),
        ('[consensus]\ntimeout_commit = "1.2.3s"\n', {}),
    ],
    indirect=True,
)
def test_members_of_wrong_types_are_shown(warnings: list[str]) -> None:
    assert len(warnings) == 1
    assert len(warnings[0]) < 1500


@pytest.mark.parametrize("warnings", [(CHANGED, {"produce": False})], indirect=True)
def test_a_process_that_only_serves_says_nothing(warnings: list[str]) -> None:
    assert warnings == []


def test_the_flags_are_those_of_the_settings() -> None:
    known = {flag for row in all_settings() for flag in row.flags}

    named = {word for text in FLAGS.values() for word in text.split() if word[:2] == "--"}
    assert named <= known
