"""Tests of ``noderpc start`` with REST at a separate address, and at the node RPC's."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ..helpers.ports import free_port
from .node_process import refusal, started

NODE_INFO = "/cosmos/base/tendermint/v1beta1/node_info"
PAGE = {"Origin": "https://wallet.example"}


def status_of(url: str) -> tuple[int, str]:
    try:
        with urlopen(url) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def network_of(url: str) -> str:
    with urlopen(Request(url + NODE_INFO, headers=PAGE)) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        found: str = json.load(response)["default_node_info"]["network"]
        return found


@pytest.mark.parametrize("workers", [1, 2])
def test_the_bank_serves_rest(tmp_path: Path, workers: int) -> None:
    flags = ("--application", "bank", "--dev", "--workers", str(workers))
    with started(tmp_path, *flags) as node:
        node.until_up()
        network = node.get("/status")["node_info"]["network"]
        assert network_of(node.url("REST")) == network_of(node.url()) == network
        for path in ("/", "/status", "/ibc/apps/transfer/v1/params"):
            assert status_of(node.url("REST") + path) == (
                501,
                '{"code":12, "message":"Not Implemented", "details":[]}',
            )
        assert node.end() == 0


def test_it_can_be_left_out(tmp_path: Path) -> None:
    with started(tmp_path, "--application", "bank", "--dev", "--api.enable=false") as node:
        node.until_up()
        assert status_of(node.url() + NODE_INFO)[0] == 404
        assert "REST" not in node.log.read_text()


def test_it_needs_a_chain_of_the_sdk(tmp_path: Path) -> None:
    message = refusal("--home", str(tmp_path), "--api.enable", status=2)
    assert "NODERPC_APPLICATION = 'bank'" in message


def test_an_address_serves_one_thing(tmp_path: Path) -> None:
    bank = ("--application", "bank", "--home", str(tmp_path))
    for address in (f"tcp://127.0.0.1:{free_port()}", f"unix://{tmp_path}/socket"):
        message = refusal(*bank, "--rpc.laddr", address, "--api.address", address, status=2)
        assert f"{address} is set by --rpc.laddr and by --api.address" in message


def test_its_address_is_named_by_its_flag(tmp_path: Path) -> None:
    port = free_port()
    flags = ("--application", "bank", "--home", str(tmp_path / "second"))
    with started(
        tmp_path, "--application", "bank", "--api.address", f"127.0.0.1:{port}"
    ) as node:
        node.until_up()
        assert "set another address with --api.address" in refusal(
            *flags, "--api.address", f"127.0.0.1:{port}"
        )
