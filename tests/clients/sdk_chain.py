"""A chain of the Cosmos SDK, whose program is in sdk/, and the requests of its tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from click.testing import CliRunner

from flask_noderpc import ChainBackend
from flask_noderpc.cli import main
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import app_for, serve

from ..differential.companion import stored
from ..differential.http_client import Ask, Reply, ask
from ..differential.sides import Side, running
from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until

SDK = Path(__file__).parent / "sdk"
BANK = Path(__file__).parent / "cosmjs" / "bank.js"
RECORDING = Path(__file__).parent.parent / "golden" / "sdk_0.53.8.json.gz"
# The recorded blocks will be years old.
_PERIOD_S = 10**9

# Well-known words, of the examples of BIP 39.
MNEMONICS = (
    " ".join(["abandon"] * 11 + ["about"]),
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
)
ALICE = "cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal4"
BOB = "cosmos1avgyh77ycn997ja45q5q8ss8y9mr424jq6zn4p"
STRANGER = "cosmos1qyqszqgpqyqszqgpqyqszqgpqyqszqgpjnp7du"
VALIDATOR = "cosmosvaloper19rl4cm2hmr8afy4kldpxz3fka4jguq0ae5egnx"

TX_QUERIES = (
    f"transfer.recipient='{BOB}'",
    f"transfer.recipient='{STRANGER}' AND transfer.amount='7token'",
    f"message.sender='{ALICE}'",
    f"message.sender='{ALICE}' AND message.action='/cosmos.bank.v1beta1.MsgSend'",
    f"message.sender='{ALICE}' AND transfer.recipient='{BOB}'",
    f"transfer.sender='{ALICE}' AND transfer.recipient='{BOB}'",
    "message.module='bank'",
    "message.action='/cosmos.bank.v1beta1.MsgMultiSend'",
    "message.action CONTAINS 'MsgDelegate'",
    "message.msg_index='1'",
    f"coin_received.receiver='{STRANGER}' AND tx.height>=1 AND tx.height<=1000",
    "coin_spent.amount>500",
    "transfer.amount<=1000",
    f"tx.acc_seq='{ALICE}/1'",
    f"tx.fee_payer='{BOB}'",
    "tx.fee='5000stake'",
    "tx.signature EXISTS",
    f"delegate.validator='{VALIDATOR}' AND delegate.amount='3000000stake'",
    f"withdraw_rewards.delegator='{ALICE}'",
    "tx.height>0",
    "tx.height=2",
    f"transfer.recipient='{VALIDATOR}'",
)
BLOCK_QUERIES = (
    "block.height>3 AND block.height<=9",
    "block.height=5",
    "mint.amount>10",
    "mint.amount='41'",
    "mint.mode='BeginBlock'",
    "mint.inflation>0.13",
    f"commission.validator='{VALIDATOR}' AND block.height<7",
    f"rewards.validator='{VALIDATOR}' AND rewards.amount EXISTS",
    "coinbase.minter EXISTS",
    "transfer.amount CONTAINS 'stake'",
    f"transfer.recipient='{BOB}'",
)


@contextmanager
def sdk_chain(program: Path, home: Path, *flags: str) -> Iterator[Side]:
    """Run the chain of a home, which is made if it is missing."""
    home.mkdir(exist_ok=True)
    port = free_port()
    command = [str(program), "-home", str(home), "-rpc", f"tcp://127.0.0.1:{port}"]
    for words in MNEMONICS:
        command += ["-mnemonic", words]
    command += ["-rewards", "-minimum-gas-prices", "0.025stake", *flags]
    with running(command, home, Side(f"http://127.0.0.1:{port}"), "block") as side:
        yield side


def bank(node: str, url: str, task: str) -> list[str]:
    """Run one task of bank.js against a node or a companion; return what it prints."""
    command = [node, str(BANK), url, task, *MNEMONICS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def steps(printed: list[str]) -> list[str]:
    """Return the names of the steps that bank.js printed."""
    return [json.loads(line)["step"] for line in printed]


def stored_paths(node: Side, height: int) -> list[str]:
    """Return the paths of all blocks below a height, and of their results, commits and
    validators."""
    # The application's state changes with each block.
    return [path for path in stored(node, height) if path != "/abci_info"]


def search_paths(height: int) -> Iterator[str]:
    """Yield the paths of searches among the blocks below a height."""
    for route, queries in (("tx", TX_QUERIES), ("block", BLOCK_QUERIES)):
        for query in queries:
            # CometBFT uses only one of two bounds; docs/dialects.rst describes this.
            is_bounded = f"{route}.height<" in query
            bounded = query if is_bounded else f"{query} AND {route}.height<{height}"
            for given in ({}, {"order_by": '"desc"', "per_page": "2", "page": "2"}):
                yield _path(f"{route}_search", query=f'"{bounded}"', **given)
    yield _path("tx_search", query=f'"tx.height<{height}"', prove="true")


@contextmanager
def followed_backend(node: str, store: Path, height: int) -> Iterator[ChainBackend]:
    """Yield a companion in this process that has all blocks up to a height."""
    given = {"upstream": node, "trust_period": _PERIOD_S, "upstream_timeout": PATIENCE}
    backend = companion_from_settings(read_settings({}, given), store)
    try:
        backend.follow()
        until(
            lambda: (
                backend.reads.latest_height() >= height and backend.reads.base_height() == 1
            ),
            f"blocks 1 to {height}",
        )
        yield backend
    finally:
        backend.close()


@contextmanager
def followed(node: str, store: Path, height: int, dialect: str = "comet-0.38") -> Iterator[str]:
    """Serve a companion in this process that has all blocks up to a height."""
    with (
        followed_backend(node, store, height) as backend,
        serve(app_for(backend, dialect=dialect, rest=True)) as url,
    ):
        yield url


def imported(node: str, store: Path, height: int) -> None:
    """Import the blocks up to a height by the command."""
    command = ["import", node, "--database", str(store), "--to", str(height)]
    ended = CliRunner().invoke(main, [*command, "--trust-period", "99999d"])
    assert ended.exit_code == 0, ended.output


def _path(route: str, **params: str) -> str:
    return f"/{route}?{urlencode(params, quote_via=quote)}"


def reply(url: str, path: str) -> Reply:
    """Return the response to a GET."""
    return ask(url, Ask(path, path=path))
