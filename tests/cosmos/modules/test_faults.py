"""Validators of a development chain that miss blocks or equivocate."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

import pytest

from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.rest import reader
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.node import app_for, serve

from ...chain.conftest import Open
from ..bank.bank_txs import CHAIN_ID, NOBODY, Draft, account, any_of
from ..bank.test_bank_dev import call, reply

# Blocks after which a validator of a development chain can be jailed, and how many of these it
# may miss.
WINDOW, ALLOWED = 100, 50
UNJAIL = "cosmos.slashing.v1beta1.MsgUnjail"


def rest(node: BankNode, path: str) -> Any:
    with urlopen(node.url + path) as response:
        return json.load(response)


def validator(node: BankNode) -> dict[str, Any]:
    found = rest(node, f"/cosmos/staking/v1beta1/validators/{node.validator}")
    return dict(found["validator"])


def signing_info(node: BankNode) -> dict[str, Any]:
    (found,) = rest(node, "/cosmos/slashing/v1beta1/signing_infos")["info"]
    return dict(found)


def unjail(node: BankNode) -> tuple[int, str]:
    value = reader.read(UNJAIL, {"validator_addr": node.validator})
    number, sequence = account(node.chain, node.accounts[0])
    chain_id = node.chain.reads.genesis().chain_id
    raw = Draft((any_of(f"/{UNJAIL}", value),), sequence, number, chain_id=chain_id).signed()
    assert node.chain.mempool.submit(raw).code == 0
    node.mine()
    height = node.chain.reads.tx(tx_hash(raw)).height
    (result,) = node.chain.reads.results(height).tx_results
    return result.code, result.log


def test_a_validator_that_misses_blocks_is_jailed_and_unjailed(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    node.mine(WINDOW + 5)
    call(node, "dev_missBlocks", validator=node.validator, blocks=ALLOWED)
    node.mine(ALLOWED)
    assert signing_info(node)["missed_blocks_counter"] == str(ALLOWED)
    assert validator(node)["jailed"] is False

    call(node, "dev_missBlocks", validator=node.validator, blocks=1)
    node.mine(2)

    jailed = validator(node)
    assert jailed["jailed"] is True
    # One hundredth of the tokens is destroyed.
    assert jailed["tokens"] == "9900000"
    assert jailed["status"] == "BOND_STATUS_UNBONDING"
    # The chain continues, as its only key still signs.
    assert rest(node, "/validators")["result"]["total"] == "1"
    code, log = unjail(node)
    assert (code, "still jailed" in log) == (4, True)
    node.increase_time(600)
    assert unjail(node) == (0, "")
    node.mine()
    assert validator(node)["status"] == "BOND_STATUS_BONDED"


def test_a_validator_that_equivocates_is_tombstoned(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    key = signing_info(node)["address"]
    call(node, "dev_equivocate", validator=key)

    node.mine()

    # One twentieth of the tokens is destroyed.
    assert (validator(node)["jailed"], validator(node)["tokens"]) == (True, "9500000")
    assert signing_info(node)["tombstoned"] is True
    (found,) = rest(node, "/cosmos/evidence/v1beta1/evidence")["evidence"]
    height = node.chain.reads.latest_height()
    assert (found["height"], found["consensus_address"]) == (str(height - 1), key)
    node.increase_time(10_000)
    assert unjail(node)[0] == 4


def test_faults_end_with_0_blocks_and_with_a_revert(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    node.mine(3)
    with node.snapshot():
        node.miss_blocks(node.validator, 10)
        node.mine(2)
        assert signing_info(node)["missed_blocks_counter"] == "2"
        node.miss_blocks(node.validator, 0)
        node.mine(2)
        assert signing_info(node)["missed_blocks_counter"] == "2"
        node.miss_blocks(node.validator, 10)
        node.equivocate(node.validator)
    node.mine(2)
    assert signing_info(node)["missed_blocks_counter"] == "0"
    assert validator(node)["jailed"] is False


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("dev_missBlocks", {"blocks": 1}, "validator ''"),
        ("dev_missBlocks", {"validator": "x"}, "blocks: expected a value, got none"),
        ("dev_missBlocks", {"validator": "x", "blocks": 1}, "expected a validator's address"),
        ("dev_missBlocks", {"validator": "x", "blocks": -1}, "blocks: expected 0 to 1000000"),
        ("dev_equivocate", {"validator": "x" * 5_000}, "expected a validator's address"),
        (
            "dev_equivocate",
            {"validator": bech32.encode("cosmosvaloper", bytes(20))},
            "validator does not exist",
        ),
        (
            "dev_equivocate",
            {"validator": bech32.encode("cosmosvalcons", bytes(20))},
            "expected a validator that votes now",
        ),
        ("dev_equivocate", {"validator": NOBODY}, "expected a validator's address"),
        ("dev_equivocate", {"validator": 7}, "cannot unmarshal number"),
    ],
)
def test_a_wrong_fault_is_one_error(
    noderpc_bank: BankNode, method: str, params: dict[str, Any], words: str
) -> None:
    error = reply(noderpc_bank.url, method, **params)["error"]

    assert words in f"{error['message']} {error['data']}"
    assert len(str(error)) < 1_000


@pytest.mark.parametrize("application", [Bank, None])
def test_a_chain_without_staking_has_no_faulty_validators(
    open_chain: Open, application: type[Bank] | None
) -> None:
    given = {"application": Bank, "app_state": dev.app_state()} if application else {}
    chain = open_chain(chain_id=CHAIN_ID, dev=True, **given)
    chain.control.mine()
    with serve(app_for(chain, dev=True)) as url:
        error = reply(url, "dev_equivocate", validator="cosmosvaloper1x")["error"]
        assert "no validators with stake" in error["data"]
