"""Tests of CosmJS, which sends and reads through a companion of a chain of the Cosmos SDK.

They use a live chain, and a recording of one; tests/companion has more tests of the recording.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from flask_noderpc.cosmos.bank.dev import MNEMONIC

from ..companion.recording import Recording, played
from ..differential.companion import beside, is_equal
from ..differential.sides import VERSIONS
from ..faults.processes import is_long
from ..helpers.ports import free_port
from ..helpers.require import require_program, skip_or_fail
from ..helpers.until import PATIENCE, until
from ..server.node_process import started
from .sdk_chain import (
    ALICE,
    RECORDING,
    SDK,
    bank,
    followed,
    reply,
    sdk_chain,
    search_paths,
    steps,
    stored_paths,
)

# Paths whose replies change with each block are left out.
REST_PATHS = [
    f"/cosmos/auth/v1beta1/accounts/{ALICE}",
    "/cosmos/bank/v1beta1/params",
    "/cosmos/bank/v1beta1/spendable_balances/test",
    "/cosmos/base/tendermint/v1beta1/blocks/1",
    "/cosmos/base/tendermint/v1beta1/node_info",
    "/cosmos/base/tendermint/v1beta1/validatorsets/1",
    "/cosmos/consensus/v1/params",
    "/cosmos/none",
    "/cosmos/staking/v1beta1/validators",
    "/cosmos/tx/v1beta1/txs/00",
    "/cosmos/tx/v1beta1/txs?query=tx.height%3D1",
]

SENT = [
    "send, simulated before",
    "send to an account that there is not",
    "send more than there is",
    "simulate what fails",
    "a sequence of the future is refused",
    "multi-send",
    "delegate",
    "two messages in one",
    "send back",
]


@pytest.fixture
def node() -> str:
    """Node.js, with CosmJS installed for the script."""
    program = require_program("node")
    if not (Path(__file__).parent / "cosmjs" / "node_modules").is_dir():
        skip_or_fail("CosmJS is not installed: run `npm ci` in tests/clients/cosmjs")
    return program


@pytest.fixture(scope="module")
def sdk_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the chain's program from NODERPC_SDKCHAIN, or build it."""
    return built(".", "NODERPC_SDKCHAIN", tmp_path_factory)


@pytest.fixture(scope="module")
def sdk_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of sdk/client from NODERPC_SDKCLIENT, or build it."""
    return built("./client", "NODERPC_SDKCLIENT", tmp_path_factory)


def built(package: str, variable: str, folders: pytest.TempPathFactory) -> Path:
    """Build a program of the SDK, which takes minutes and so happens only in .ci/long."""
    if given := os.environ.get(variable):
        return Path(given)
    if not is_long():
        pytest.skip(f"builds the Cosmos SDK: NODERPC_CAMPAIGN=long, or {variable}=program")
    program = folders.mktemp("sdk") / "program"
    command = [require_program("go"), "build", "-buildvcs=false", "-o", str(program), package]
    done = subprocess.run(command, cwd=SDK, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return program


# Errors of calls for what the chain does not have.
ABSENT = {
    "bank.DenomMetadata": "metadata for denom stake",
    "bank.DenomMetadataByQueryString": "metadata for denom stake",
    "evidence.Evidence": "hash is empty",
    "feegrant.Allowance": "fee-grant not found",
    "slashing.SigningInfo": "invalid request",
    "staking.Redelegations": "redelegation not found",
    "staking.UnbondingDelegation": "unbonding delegation with delegator",
    "tx.BroadcastTx": "invalid empty tx",
    "tx.Simulate": "account sequence mismatch, expected 1, got 0",
    "tx.TxDecodeAmino": "invalid empty tx bytes",
    "tx.TxEncode": "invalid empty tx",
    "tx.TxEncodeAmino": "invalid empty tx json",
    **{
        f"{version}.{method}": text
        for version in ("gov", "gov.v1beta1")
        for method, text in {
            "Deposit": "collections: not found",
            "Proposal": "proposal 1 doesn't exist",
            "TallyResult": "proposal 1 doesn't exist",
            "Vote": "not found for proposal: 1",
        }.items()
    },
}


def test_the_sdk_calls_each_method_of_a_node(sdk_client: Path, tmp_path: Path) -> None:
    flags = ("--application", "bank", "--dev", "--block-interval", "0.2", "--empty-blocks")
    with started(tmp_path, *flags) as node:
        node.until_second_block()
        chain = node.get("/status")["node_info"]["network"]
        url = node.url().replace("http://", "tcp://")
        done = subprocess.run(
            [sdk_client, url, chain, MNEMONIC], capture_output=True, text=True, timeout=PATIENCE
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    failed = {name: error for name, error in found.items() if error}
    assert len(found) == 110
    assert failed.keys() == ABSENT.keys()
    assert [name for name, error in failed.items() if ABSENT[name] not in error] == []


def test_cosmjs_sends_and_reads_through_a_companion(
    node: str, sdk_program: Path, tmp_path: Path
) -> None:
    """The stored blocks and the results of searches equal the node's, too."""
    with (
        sdk_chain(sdk_program, tmp_path / "home") as chain,
        beside(chain, VERSIONS["0.38.25"], tmp_path / "companion") as companion,
    ):
        assert steps(bank(node, companion.url, "send")) == SENT
        height = chain.height() + 2
        until(lambda: companion.height() >= height, f"block {height}")

        assert bank(node, companion.url, "read") == bank(node, chain.url, "read")
        paths = [*stored_paths(chain, height), *search_paths(height)]
        assert [path for path in paths if not is_equal(path, chain, companion)] == []


def test_rest_of_a_companion_is_that_of_the_gateway(sdk_program: Path, tmp_path: Path) -> None:
    api, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
    flags = ("-api", f"tcp://{api}", "-grpc", grpc)
    with (
        sdk_chain(sdk_program, tmp_path / "home", *flags) as chain,
        followed(chain.url, tmp_path / "chain.db", 2) as companion,
    ):
        for path in REST_PATHS:
            own, theirs = reply(companion, path), reply(f"http://{api}", path)
            assert (own.status, own.body) == (theirs.status, theirs.body.rstrip("\n")), path


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37", "comet-0.38", "comet-1.0"])
def test_cosmjs_reads_a_recorded_chain_through_a_companion(
    dialect: str, node: str, tmp_path: Path
) -> None:
    """The replies are the same in each dialect."""
    recording = Recording.read(RECORDING)
    with (
        played(recording) as chain,
        followed(chain, tmp_path / "chain.db", 1, dialect) as companion,
    ):
        printed = bank(node, companion, "read")

    assert printed == recording.printed
    # The client printed three accounts, one that does not exist, seven searches and what they
    # found.
    assert len(steps(printed)) == 1 + 3 + 1 + 7 + 7
