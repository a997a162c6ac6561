"""The node, and the contracts and blocks that web3.py's tests expect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
from eth_utils.address import to_canonical_address, to_checksum_address
from web3 import Web3
from web3._utils.module_testing.utils import RequestMocker

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.protocol.secp256k1eth import Key

from .expected import FAILURES, RACES
from .history import History, made
from .node import running

_DRAIN_S = 5.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are expected to fail, which must fail."""
    for item in items:
        for table, strict in ((FAILURES, True), (RACES, False)):
            for pattern, reason in table:
                if fnmatch(item.nodeid, f"*{pattern}"):
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=strict))


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("node")) as found:
        yield f"{found}/evm"


@pytest.fixture(scope="session")
def w3(url: str) -> Web3:
    return Web3(Web3.HTTPProvider(url))


@pytest.fixture(scope="session")
def history(w3: Web3) -> History:
    return made(w3)


@pytest.fixture(autouse=True)
def _nothing_waits(w3: Web3, history: History) -> Iterator[None]:
    """Wait until no transaction is pending: the next test takes its nonces from the latest
    block, and some compare the latest state with the genesis."""
    yield
    deadline = time.monotonic() + _DRAIN_S
    while int(str(w3.geth.txpool.status()["pending"]), 16) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.fixture(scope="session")
def keys() -> Iterator[Key]:
    return iter(DEV_KEYS)


@pytest.fixture(scope="class")
def key(keys: Iterator[Key]) -> Key:
    """An account for each class of tests, as tests leave things in its storage."""
    return next(keys)


@pytest.fixture(scope="session")
def request_mocker() -> type[RequestMocker]:
    return RequestMocker


@pytest.fixture(scope="session")
def skip_if_testrpc() -> Callable[[Any], None]:
    return lambda w3: None


@pytest.fixture(scope="session")
def async_skip_if_testrpc() -> Callable[[Any], None]:
    return lambda w3: None


@pytest.fixture(params=[str, to_canonical_address], ids=["text", "bytes"])
def address_conversion_func(request: pytest.FixtureRequest) -> Any:
    """Return addresses in either form."""
    return request.param


@pytest.fixture(scope="class")
def keyfile_account_pkey(key: Key) -> str:
    return f"0x{key.secret.hex()}"


@pytest.fixture(scope="class")
def keyfile_account_address(key: Key) -> str:
    return to_checksum_address(key.address)


@pytest.fixture
def keyfile_account_address_dual_type(
    keyfile_account_address: str, address_conversion_func: Any
) -> Any:
    return address_conversion_func(keyfile_account_address)


@pytest.fixture
def async_keyfile_account_address_dual_type(keyfile_account_address_dual_type: Any) -> Any:
    return keyfile_account_address_dual_type


@pytest.fixture
def math_contract_address(history: History, address_conversion_func: Any) -> Any:
    return address_conversion_func(history.contracts["math"].address)


@pytest.fixture
def async_math_contract_address(math_contract_address: Any) -> Any:
    return math_contract_address


@pytest.fixture
def emitter_contract_address(history: History, address_conversion_func: Any) -> Any:
    return address_conversion_func(history.contracts["emitter"].address)


@pytest.fixture
def async_emitter_contract_address(emitter_contract_address: Any) -> Any:
    return emitter_contract_address


@pytest.fixture(scope="session")
def math_contract_deploy_txn_hash(history: History) -> Any:
    return history.deployment


@pytest.fixture(scope="session")
def mined_txn_hash(history: History) -> Any:
    return history.transfer


@pytest.fixture(scope="session")
def txn_hash_with_log(history: History) -> Any:
    return history.logging


@pytest.fixture(scope="session")
def empty_block(history: History) -> Any:
    return history.empty_block


@pytest.fixture(scope="session")
def block_with_txn(history: History) -> Any:
    return history.block_with_transfer


@pytest.fixture(scope="session")
def block_with_txn_with_log(history: History) -> Any:
    return history.block_with_log


def _contract(name: str) -> Any:
    """Make the fixtures of a contract, for w3 and for async_w3."""

    @pytest.fixture(scope="session", name=f"{name}_contract")
    def contract(history: History) -> Any:
        return history.contracts[name]

    @pytest.fixture(name=f"async_{name}_contract")
    def async_contract(async_w3: Any, history: History) -> Any:
        found = history.contracts[name]
        return async_w3.eth.contract(address=found.address, abi=found.abi)

    return contract, async_contract


math_contract, async_math_contract = _contract("math")
emitter_contract, async_emitter_contract = _contract("emitter")
revert_contract, async_revert_contract = _contract("revert")
storage_contract, async_storage_contract = _contract("storage")
panic_errors_contract, async_panic_errors_contract = _contract("panic_errors")
offchain_lookup_contract, async_offchain_lookup_contract = _contract("offchain_lookup")


def _twin(name: str) -> Any:
    """Return the fixture under the name that asynchronous tests use."""

    @pytest.fixture(name=f"async_{name}")
    def twin(request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(name)

    return twin


async_keyfile_account_address = _twin("keyfile_account_address")
async_empty_block = _twin("empty_block")
async_block_with_txn = _twin("block_with_txn")
async_block_with_txn_with_log = _twin("block_with_txn_with_log")
