from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..helpers.require import require_program, skip_or_fail
from . import ETHEREUM_SCRIPTS
from .evm_node import DevAccount, development_node, in_turn
from .light import Trust
from .verified import write_chain

GO = Path(__file__).parent / "go"
ETHEREUM = Path(__file__).parent / "ethereum"
COSMJS = Path(__file__).parent / "cosmjs"
COSMPY = Path(__file__).parent / "cosmpy"
APE = Path(__file__).parent / "ape"
KEPLR = Path(__file__).parent / "keplr"


@pytest.fixture(scope="module")
def node() -> str:
    """Node.js, with the libraries installed for the scripts."""
    program = require_program("node")
    if not (ETHEREUM_SCRIPTS / "node_modules").is_dir():
        skip_or_fail("the libraries are not installed: run `npm ci` in tests/clients/ethereum")
    return program


@pytest.fixture(scope="session")
def cosmjs_node() -> str:
    """Node.js, with CosmJS installed for its scripts."""
    program = require_program("node")
    if not (COSMJS / "node_modules").is_dir():
        skip_or_fail("CosmJS is not installed: run `npm ci` in tests/clients/cosmjs")
    return program


@pytest.fixture(scope="session")
def keplr_node() -> str:
    """Node.js, with Keplr's check installed for its script."""
    program = require_program("node")
    if not (KEPLR / "node_modules").is_dir():
        skip_or_fail("Keplr's check is not installed: run `npm ci` in tests/clients/keplr")
    return program


@pytest.fixture(scope="session")
def cosmpy_python() -> str:
    """Python with cosmpy, which needs older versions of libraries than this package."""
    return _python_of(COSMPY)


@pytest.fixture(scope="session")
def ape_python() -> str:
    """Python with eth-ape, which needs an older web3.py than this package."""
    return _python_of(APE)


def _python_of(folder: Path) -> str:
    """Return the Python of a client's own environment."""
    program = folder / ".venv" / "bin" / "python"
    if not program.exists():
        skip_or_fail(
            f"{program} is missing: run `python -m venv .venv && .venv/bin/pip install -r"
            f" requirements.txt` in tests/clients/{folder.name}"
        )
    return str(program)


@pytest.fixture(scope="session")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the Go programs and of CometBFT; building takes about two minutes if
    Go's cache is empty."""
    folder = tmp_path_factory.mktemp("go")
    words = [require_program("go"), "build", "-buildvcs=false", "-o", f"{folder}/"]
    words += ["./rpc", "./savechain", "./prunechain"]
    command = "github.com/cometbft/cometbft/cmd/cometbft"
    built = subprocess.run([*words, command], cwd=GO, capture_output=True, text=True)
    if built.returncode != 0:
        skip_or_fail(f"CometBFT's client could not be built: {built.stderr[-2000:]}")
    return folder


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trust]:
    """The file of a chain to verify, and the trusted block."""
    path = tmp_path_factory.mktemp("chain") / "chain.db"
    return path, write_chain(path)


@pytest.fixture(scope="session")
def ethereum_js() -> str:
    """Node.js, with the libraries installed for the scripts."""
    program = require_program("node")
    if not (ETHEREUM / "node_modules").is_dir():
        skip_or_fail("the libraries are not installed: run `npm ci` in tests/clients/ethereum")
    return program


@pytest.fixture(scope="module")
def evm_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield one node for all tests of a module, as its processes start slowly."""
    with development_node(tmp_path_factory.mktemp("evm")) as base:
        yield base


@pytest.fixture(params=["http", "ws"])
def evm_url(request: pytest.FixtureRequest, evm_base: str) -> str:
    path = "/evm" if request.param == "http" else "/evm/ws"
    return evm_base.replace("http", request.param) + path


@pytest.fixture(scope="session")
def _accounts() -> Iterator[DevAccount]:
    return in_turn()


@pytest.fixture
def dev_account(_accounts: Iterator[DevAccount]) -> DevAccount:
    """An account that no other running test uses."""
    return next(_accounts)
