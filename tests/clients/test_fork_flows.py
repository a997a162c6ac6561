"""OpenZeppelin's ERC-20 token and Uniswap V3, deployed on a node of ours, on geth or on anvil,
and used there and on a fork of that chain, which then runs again without the node."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.errors import UpstreamError
from flask_noderpc.ethereum.testing import run_evm_node
from tests.ethereum.rpc.between import asked, between
from tests.helpers.process import Process, killed
from tests.helpers.until import PATIENCE, until

from ..helpers.require import require_program, skip_or_fail
from ..server.node_process import started
from . import ETHEREUM_SCRIPTS
from .test_anvil import anvil

GETH = Path(__file__).parent / "geth"
NOWHERE, NOBODY = "http://127.0.0.1:9", "0x" + "99" * 20
# Account of each development chain of geth.
DEVELOPER = "0x71562b71999873DB5b286dF957af199Ec94617F7"


@contextmanager
def ours(folder: Path, *flags: str) -> Iterator[str]:
    """Run a development node of ours; yield its URL."""
    folder.mkdir(exist_ok=True)
    flags = ("--dev", "--application", "evm", "--json-rpc.enable", *flags)
    with started(folder, *flags) as node:
        yield node.url("EVM JSON-RPC")


@pytest.fixture(scope="module")
def geth_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of geth; building takes about a minute if Go's cache is empty."""
    program = str(tmp_path_factory.mktemp("geth") / "geth")
    package = "github.com/ethereum/go-ethereum/cmd/geth"
    built = subprocess.run(
        [require_program("go"), "build", "-buildvcs=false", "-o", program, package],
        cwd=GETH,
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        skip_or_fail(f"geth could not be built: {built.stderr[-2000:]}")
    return program


@contextmanager
def geth(program: str, folder: Path) -> Iterator[str]:
    """Run a development chain of geth with the rules of Osaka; yield its URL."""

    def output(*words: str) -> str:
        ended = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    genesis = json.loads(output("--dev", "dumpgenesis"))
    # By default, the chain has the rules of a later fork.
    del genesis["config"]["bogotaTime"]
    genesis["alloc"][DEVELOPER] = {"balance": hex(10**24)}
    path, home = folder / "genesis.json", f"--datadir={folder / 'data'}"
    path.write_text(json.dumps(genesis))
    output(home, "init", str(path))
    flags = ("--dev", "--ipcdisable", "--port=0", "--authrpc.port=0", "--http", "--http.port=0")
    with killed(Process([program, home, *flags], folder / "geth.log")) as process:
        found: list[str] = []

        def is_served() -> bool:
            served = r"HTTP server started +endpoint=(\S+) auth=false"
            found[:] = re.findall(served, process.log.read_text())
            return bool(found)

        process.until(is_served, "the address of geth")
        yield f"http://{found[0]}"


@contextmanager
def foundry() -> Iterator[str]:
    """Run anvil, which mines each transaction; yield its URL."""
    with anvil("--hardfork", "osaka") as url:
        asked(url, "evm_setAutomine", True)
        # As on other chains, each block is later than its parent.
        asked(url, "anvil_setBlockTimestampInterval", 1)
        yield url


@contextmanager
def unproven(case: str) -> Iterator[str]:
    """Run anvil with a balance that its latest state root does not cover; yield its URL."""
    with ExitStack() as stack:
        flags: tuple[str, ...] = ()
        if case == "fork":
            node = stack.enter_context(run_evm_node())
            asked(node.url, "anvil_setBalance", NOBODY, "0x77")
            flags = ("--fork-url", node.url)
        url = stack.enter_context(anvil(*flags))
        if case != "block 0":
            asked(url, "evm_mine")
        if case != "fork":
            asked(url, "anvil_setBalance", NOBODY, "0x77")
        yield url


def ran(*words: str) -> Any:
    """Return what the script has seen."""
    ended = subprocess.run(
        ["node", "fork.js", *words],
        cwd=ETHEREUM_SCRIPTS,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(params=["ours", "geth", "anvil"])
def other(
    request: pytest.FixtureRequest, ethereum_js: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a node with the contracts."""
    folder = tmp_path_factory.mktemp("other")
    match request.param:
        case "ours":
            node = ours(folder)
        case "geth":
            node = geth(request.getfixturevalue("geth_program"), folder)
        case _:
            node = foundry()
    with node as url:
        ran("deploy", url)
        yield url


def test_contracts_of_a_forked_chain_work_as_on_that_chain(other: str, tmp_path: Path) -> None:
    block = int(asked(other, "eth_blockNumber"), 16)
    # The states before these transactions are read later.
    there = ran("use", other, str(block))

    def forked(name: str, url: str) -> Any:
        cache = str(tmp_path / "fork.jsonl")
        flags = ("--fork-block-number", str(block), "--fork-cache", cache)
        with ours(tmp_path / name, "--fork-url", url, *flags) as fork:
            assert asked(fork, "anvil_nodeInfo")["forkConfig"]["isProven"]
            return ran("use", fork, str(block))

    with between(other) as (proxy, url):
        assert forked("first", url) == there
    others = "eth_chainId", "eth_getBlockByNumber"
    reads = {c: n for c, n in proxy.calls.items() if json.loads(c)[0] not in others}
    assert {json.loads(call)[1][-1] for call in reads} == {hex(block)}
    assert {call: n for call, n in reads.items() if n > 1} == {}
    assert forked("second", NOWHERE) == there


def test_a_change_of_anvil_without_a_block_is_refused() -> None:
    with (
        unproven("change") as url,
        pytest.raises(UpstreamError, match="anvil_setBalance"),
        run_evm_node(fork_url=(url,)),
    ):
        pass


@pytest.mark.parametrize("case", ["block 0", "fork"])
def test_a_state_that_anvil_can_t_prove_is_used_without_proof(case: str) -> None:
    with unproven(case) as url, run_evm_node(fork_url=(url,)) as fork:
        assert asked(fork.url, "anvil_nodeInfo")["forkConfig"]["isProven"] is False
        assert asked(fork.url, "eth_getBalance", NOBODY, "latest") == "0x77"
        payment = {"from": fork.accounts[0].address, "to": NOBODY, "value": "0x1"}
        asked(fork.url, "eth_sendTransaction", payment)
        until(lambda: asked(fork.url, "eth_getBalance", NOBODY, "latest") == "0x78", "a block")
