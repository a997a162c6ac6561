"""Tests of ``noderpc genesis add-account``, and of the warning for a chain without accounts."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from flask_noderpc import NodeRPC
from flask_noderpc.cli import main
from flask_noderpc.cosmos.bank.dev import dev_addresses
from flask_noderpc.extension import mounts

FIRST, SECOND, *_ = dev_addresses()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    assert run("init", "--home", str(folder)).exit_code == 0
    return folder


def add(home: Path, address: str, coins: str, *flags: str) -> Result:
    return run("genesis", "add-account", address, coins, "--home", str(home), *flags)


def app_state(home: Path) -> Any:
    return json.loads((home / "config" / "genesis.json").read_text()).get("app_state")


def coins(**amounts: str) -> list[dict[str, str]]:
    return [{"denom": denom, "amount": amount} for denom, amount in amounts.items()]


def started(home: Path) -> Flask:
    """Return an app whose chain has begun with the home's genesis document."""
    app = Flask("bank", instance_path=str(home))
    database = str(home / "data" / "noderpc.db")
    (home / "data").mkdir(exist_ok=True)
    app.config["NODERPC_REST"] = True
    NodeRPC(app, application="bank", home=str(home), database=database)
    client = app.test_client()
    assert client.get("/status").status_code == 200
    return app


def close(app: Flask) -> None:
    for mount in mounts(app).values():
        mount.backend.close()


def test_a_chain_begins_with_the_accounts_that_were_added(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = home / "config" / "genesis.json"
    mode = path.stat().st_mode
    assert add(home, FIRST, "1000stake,5atom").exit_code == 0
    assert add(home, SECOND, "7token").exit_code == 0

    assert path.stat().st_mode == mode
    assert sorted(each.name for each in path.parent.glob("*gen*")) == ["genesis.json"]
    assert run("genesis", "check", str(path)).exit_code == 0
    app = started(home)
    try:
        bank = "/cosmos/bank/v1beta1"
        found = app.test_client().get(f"{bank}/balances/{FIRST}").get_json()
        assert found["balances"] == coins(atom="5", stake="1000")
        supply = app.test_client().get(f"{bank}/supply").get_json()["supply"]
        assert supply == coins(atom="5", stake="1000", token="7")
        account = app.test_client().get(f"/cosmos/auth/v1beta1/accounts/{SECOND}").get_json()
        assert account["account"]["account_number"] == "1"
    finally:
        close(app)
    assert "has no accounts" not in caplog.text


def test_coins_are_appended_on_request_only(home: Path) -> None:
    add(home, FIRST, "10stake")
    before = app_state(home)

    refused = add(home, FIRST, "5stake,1atom")

    assert refused.exit_code == 78
    assert (
        f"the account {FIRST} exists already; add coins to it with --append" in refused.output
    )
    assert app_state(home) == before
    assert add(home, FIRST, "5stake,1atom", "--append").exit_code == 0
    bank = app_state(home)["bank"]
    assert bank["balances"] == [{"address": FIRST, "coins": coins(atom="1", stake="15")}]
    assert bank["supply"] == coins(atom="1", stake="15")
    assert len(app_state(home)["auth"]["accounts"]) == 1


def test_other_members_of_the_state_and_a_balance_without_an_account_stay(home: Path) -> None:
    path = home / "config" / "genesis.json"
    document = json.loads(path.read_text())
    document["app_state"] = {
        "auth": {"params": {"max_memo_characters": "99"}},
        "bank": {"balances": [{"address": SECOND, "coins": coins(stake="3")}]},
        "other": {"kept": [1]},
    }
    path.write_text(json.dumps(document))

    assert add(home, SECOND, "1stake").exit_code == 78
    assert add(home, FIRST, "4stake").exit_code == 0

    state = app_state(home)
    assert state["auth"]["params"] == {"max_memo_characters": "99"}
    assert state["other"] == {"kept": [1]}
    assert state["bank"]["supply"] == coins(stake="7")


@pytest.mark.parametrize(
    ("address", "amount", "reason"),
    [
        (FIRST[:-1], "1stake", "ADDRESS = "),
        ("osmo1erxf3sa9q2j4vgseu7jq4a258ckmk7cyuewyvx", "1stake", "ADDRESS = "),
        (FIRST, "stake", "COINS = 'stake': invalid coin"),
        (FIRST, "0stake", "amount is not positive"),
        (FIRST, "1stake,2stake", "duplicate denomination stake"),
        (FIRST, "", "COINS: expected at least one coin"),
    ],
)
def test_wrong_values_are_named(home: Path, address: str, amount: str, reason: str) -> None:
    found = add(home, address, amount)

    assert found.exit_code == 2
    assert reason in found.output
    assert not app_state(home)


def test_addresses_have_one_prefix(home: Path) -> None:
    (osmo,) = dev_addresses("osmo")[:1]
    assert add(home, osmo, "1stake").exit_code == 2
    assert add(home, osmo, "1stake", "--bank-prefix", "osmo").exit_code == 0
    assert "prefix 'osmo', got 'cosmos'" in add(home, FIRST, "1stake").output


def test_a_document_that_the_chain_would_refuse_stays_as_it_is(home: Path) -> None:
    path = home / "config" / "genesis.json"
    document = json.loads(path.read_text())
    document["app_state"] = {"bank": {"supply": coins(stake="9")}}
    path.write_text(json.dumps(document))

    found = add(home, FIRST, "1stake")

    assert found.exit_code == 78
    assert "genesis supply is incorrect" in found.output
    assert json.loads(path.read_text()) == document


def test_a_home_without_a_document_is_named(tmp_path: Path) -> None:
    found = add(tmp_path, FIRST, "1stake")

    assert found.exit_code == 78
    assert f"noderpc init --home {tmp_path}" in found.output


def test_a_chain_that_has_begun_keeps_its_genesis_and_warns(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flask_noderpc"):
        close(started(home))
    (warning,) = [line for line in caplog.messages if "has no accounts" in line]
    assert "noderpc start --dev --application bank" in warning
    assert "noderpc genesis add-account ADDRESS 1000stake" in warning

    found = add(home, FIRST, "1stake")

    assert found.exit_code == 78
    assert "has begun" in found.output
    assert "noderpc init --home NEW" in found.output
    assert not app_state(home)
