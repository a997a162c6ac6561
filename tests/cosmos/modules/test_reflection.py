"""Descriptions of a running node: types, queries, modules and upgrades."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError

import pytest

from flask_noderpc.cosmos.bank import BANK_HANDLERS
from flask_noderpc.cosmos.modules import MODULES
from flask_noderpc.cosmos.testing import BankNode

from .test_faults import rest

BASE = "/cosmos/base/reflection/v1beta1"
MSG = "cosmos.base.v1beta1.Msg"


def described(node: BankNode, name: str) -> Any:
    (found,) = rest(node, f"{BASE}/app_descriptor/{name}").values()
    return found


def refused(node: BankNode, path: str) -> tuple[int, str]:
    with pytest.raises(HTTPError) as error:
        rest(node, path)
    return error.value.code, json.load(error.value)["message"]


def test_the_messages_are_those_that_the_chain_executes(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    names = json.loads(node.chain.reads.genesis().app_state)
    own = (handler for module in MODULES if module.name in names for handler in module.handlers)
    known = {handler.type.type_url for handler in (*BANK_HANDLERS, *own)}
    tx = described(node, "tx_descriptor")
    assert tx["fullname"] == "cosmos.tx.v1beta1.Tx"
    urls = [each["msg_type_url"] for each in tx["msgs"]]
    assert urls == sorted(known)
    path = f"{BASE}/interfaces/{MSG}/implementations"
    assert rest(node, path) == {"implementation_message_names": urls}


def test_interfaces_have_their_implementations(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    names = rest(node, f"{BASE}/interfaces")["interface_names"]
    assert {
        MSG,
        "cosmos.authz.v1beta1.Authorization",
        "cosmos.auth.v1beta1.AccountI",
        "cosmos.crypto.PubKey",
        "cosmos.evidence.v1beta1.Evidence",
        "cosmos.feegrant.v1beta1.FeeAllowanceI",
        "cosmos.tx.v1beta1.MsgResponse",
    } <= set(names)
    for interface in described(node, "codec")["interfaces"]:
        listed = rest(node, f"{BASE}/interfaces/{interface['fullname']}/implementations")
        urls = listed["implementation_message_names"]
        assert urls == [each["type_url"] for each in interface["interface_implementers"]]
        assert urls
        assert all(url.startswith("/cosmos.") for url in urls)
    assert rest(node, f"{BASE}/interfaces/none/implementations") == {
        "implementation_message_names": []
    }
    path = f"{BASE}/interfaces//implementations"
    assert refused(node, path) == (400, "invalid interface name")


def test_the_descriptors_name_the_chain(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    chain_id = node.chain.reads.genesis().chain_id
    assert described(node, "chain") == {"id": chain_id}
    assert described(node, "configuration") == {"bech32_account_address_prefix": "cosmos"}
    modes = described(node, "authn")["sign_modes"]
    assert [(each["name"], each["number"]) for each in modes] == [
        ("SIGN_MODE_DIRECT", 1),
        ("SIGN_MODE_LEGACY_AMINO_JSON", 127),
    ]


def test_each_query_that_is_described_is_known(noderpc_bank: BankNode) -> None:
    services = described(noderpc_bank, "query_services")["query_services"]
    names = [each["fullname"] for each in services]
    assert names == sorted(names)
    assert {"cosmos.bank.v1beta1.Query", "cosmos.tx.v1beta1.Service"} <= set(names)
    paths = [each["full_query_path"] for service in services for each in service["methods"]]
    assert len(paths) > 80
    for path in paths:
        url = f'/abci_query?path="{path}"'
        log = rest(noderpc_bank, url)["result"]["response"]["log"]
        assert "unknown query path" not in log


def test_there_is_no_upgrade(noderpc_bank: BankNode) -> None:
    node, path = noderpc_bank, "/cosmos/upgrade/v1beta1"
    assert rest(node, f"{path}/current_plan") == {"plan": None}
    assert rest(node, f"{path}/applied_plan/v2") == {"height": "0"}
    assert rest(node, f"{path}/upgraded_consensus_state/1") == {
        "upgraded_consensus_state": None
    }
    versions = rest(node, f"{path}/module_versions")["module_versions"]
    assert {"name": "staking", "version": "5"} in versions
    (bank,) = rest(node, f"{path}/module_versions?module_name=bank")["module_versions"]
    assert bank in versions
    assert refused(node, f"{path}/module_versions?module_name=none") == (
        500,
        "codespace upgrade code 2: module version not found:"
        " x/upgrade: QueryModuleVersions module none not found",
    )
    assert rest(node, f"{path}/authority")["address"].startswith("cosmos1")


def test_parameters_are_in_their_modules(noderpc_bank: BankNode) -> None:
    node, path = noderpc_bank, "/cosmos/params/v1beta1"
    subspaces = rest(node, f"{path}/subspaces")["subspaces"]
    assert {"subspace": "staking", "keys": []} in subspaces
    found = {"subspace": "staking", "key": "BondDenom", "value": ""}
    asked = f"{path}/params?subspace=staking&key="
    assert rest(node, f"{asked}BondDenom") == {"param": found}
    assert refused(node, asked) == (400, "invalid request")
    assert refused(node, f"{path}/params?subspace=none&key=a") == (
        500,
        "codespace params code 2: unknown subspace: none",
    )
