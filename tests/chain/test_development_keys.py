"""Tests of chains that revert blocks, which only those with development keys may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain import home
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.cosmos.bank import dev as bank
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import ConfigurationError, KeyProtected
from flask_noderpc.ethereum.testing import EvmNode, run_evm_node
from flask_noderpc.testing.node import app_for, serve

from ..cosmos.bank.bank_txs import CHAIN_ID
from ..cosmos.bank.test_bank_dev import reply
from ..helpers.http import call
from .conftest import Open
from .fixtures import write_home

STATE = "data/priv_validator_state.json"


def marks(folder: Path) -> list[Path]:
    return list((folder / "config").glob("development_key_*"))


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvmNode]:
    """A node with control of its chain, whose key a development key is needed."""
    folder = tmp_path_factory.mktemp("protected")
    home.create(folder, None, 1_700_000_000 * SECOND)
    with run_evm_node(folder) as node:
        node.mine(2)
        yield node


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("evm_revert", ["0x1"]),
        ("anvil_revert", ["0x1"]),
        ("hardhat_reset", []),
        ("anvil_reset", []),
        ("evm_increaseTime", [5]),
        ("anvil_increaseTime", [5]),
        ("evm_setTime", [2_000_000_000]),
        ("evm_setNextBlockTimestamp", [2_000_000_000]),
        ("anvil_setNextBlockTimestamp", [2_000_000_000]),
        ("anvil_setBlockTimestampInterval", [5]),
        ("evm_mine", [2_000_000_000]),
    ],
)
def test_a_method_that_signs_heights_again_is_refused(
    protected: EvmNode, method: str, params: list[Any]
) -> None:
    assert call(protected.url, "evm_snapshot", []).json["result"]
    before = protected.chain.reads.hash_at(2)

    error = call(protected.url, method, params).json["error"]

    assert "a development key is needed" in json.dumps(error)
    assert "use a new home" in json.dumps(error)
    assert protected.chain.reads.hash_at(2) == before


def test_other_control_of_the_chain_works(protected: EvmNode) -> None:
    height = protected.chain.reads.latest_height()

    assert protected.mine(3) == height + 3
    for method in ("evm_snapshot", "anvil_removeBlockTimestampInterval", "anvil_nodeInfo"):
        assert "result" in call(protected.url, method, []).json, method
    assert verify_chain(protected.chain.reads) == height + 3


def test_python_control_is_refused_too(protected: EvmNode) -> None:
    control = protected.chain.control
    number = control.snapshot()

    for change in (
        lambda: control.revert(number),
        control.reset,
        lambda: control.shift(5),
        lambda: control.set_time(2_000_000_000),
        lambda: control.set_next_time(2_000_000_000),
        lambda: control.set_step(5),
        lambda: control.mine(1, time=2_000_000_000),
    ):
        with pytest.raises(KeyProtected, match="a development key is needed"):
            change()


def test_a_revert_of_a_bank_is_refused(open_chain: Open, tmp_path: Path) -> None:
    options = {"application": Bank, "chain_id": CHAIN_ID, "app_state": bank.app_state()}
    open_chain(**options).close()
    chain = open_chain(**options, dev=True)
    with serve(app_for(chain, dev=True)) as url:
        number = reply(url, "dev_snapshot")["result"]
        reply(url, "dev_mine", blocks=2)

        error = reply(url, "dev_revert", id=number)["error"]

    assert "a development key is needed" in json.dumps(error)
    assert chain.reads.latest_height() == 2


def test_a_new_home_for_development_has_a_marked_key(tmp_path: Path) -> None:
    with run_evm_node(tmp_path) as node:
        (mark,) = marks(tmp_path)
        number = node.chain.control.snapshot()
        node.mine(3)
        assert node.chain.control.revert(number)
        node.mine(1)

    (key,) = home.load(tmp_path, 0).validator_keys
    assert mark.name == f"development_key_{key.address.hex().upper()}"
    assert json.loads((tmp_path / STATE).read_text())["height"] == "1"


def without_marks(folder: Path) -> None:
    """Change a home into one of an older version."""
    for mark in marks(folder):
        mark.unlink()
    (folder / STATE).unlink()


@pytest.mark.parametrize("name", ["dev-evm", "instance"])
def test_a_home_that_an_older_version_made_for_development_goes_back(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with run_evm_node(folder) as node:
        node.mine(2)
    without_marks(folder)

    with run_evm_node(folder) as node:
        number = node.chain.control.snapshot()
        node.mine(1)
        assert node.chain.control.revert(number)

    assert marks(folder)


@pytest.mark.parametrize("produces", [False, True])
def test_a_home_named_dev_of_another_chain_is_not_adopted(
    tmp_path: Path, produces: bool
) -> None:
    folder = tmp_path / "devnet"
    write_home(folder, {1: 10}, own=[1])
    without_marks(folder)

    # The process that starts first may be a worker that only serves.
    for produce in (produces, True):
        chain = EmbeddedChain(
            folder / "chain.db",
            application=Bank,
            app_state=bank.app_state(),
            dev=True,
            produce=produce,
        )
        with pytest.raises(ConfigurationError, match=r"priv_validator_state\.json is missing"):
            chain.start()
        chain.close()

    assert not marks(folder)


def test_a_home_named_dev_with_a_chain_without_blocks_is_not_adopted(tmp_path: Path) -> None:
    folder = tmp_path / "devnet"
    write_home(folder, {1: 10}, own=[1])
    chain = EmbeddedChain(folder / "chain.db", application=Bank, produce=False)
    chain.start()
    chain.close()
    without_marks(folder)

    chain = EmbeddedChain(folder / "chain.db", application=Bank, produce=False, dev=True)
    with pytest.raises(ConfigurationError, match=r"priv_validator_state\.json is missing"):
        chain.produce()
    chain.close()

    assert not marks(folder)


def test_an_unnamed_home_with_a_record_is_not_adopted(tmp_path: Path) -> None:
    folder = tmp_path / "dev-evm"
    folder.mkdir()
    with run_evm_node(folder) as node:
        node.mine(2)
    for mark in marks(folder):
        mark.unlink()

    with run_evm_node(folder) as node, pytest.raises(KeyProtected):
        node.chain.control.reset()
