"""Tests that ``noderpc genesis check`` shows what a genesis document means, and what is wrong
with it."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from flask_noderpc.cli import main
from flask_noderpc.cli.genesis import DIALECT_NAMES
from flask_noderpc.protocol.comet.genesis.schema import VERSIONS
from flask_noderpc.wire.dialects import DIALECTS
from tests.comet.genesis_cases import APP, COMET, validator

PAGE = Path(__file__).parents[2] / "docs" / "operating.rst"
BANK: dict[str, Any] = {
    "auth": {"accounts": []},
    "bank": {"balances": []},
}


def check(document: Any, *flags: str) -> Result:
    text = document if isinstance(document, str | bytes) else json.dumps(document)
    return CliRunner().invoke(main, ["genesis", "check", "-", *flags], input=text)


@pytest.mark.features
def test_the_example_of_the_docs_is_what_it_shows() -> None:
    page = PAGE.read_text()
    blocks = re.findall(r"code-block:: (?:json|text)\n\n((?:   .*\n|\n)+)", page)
    document, shown = (textwrap.dedent(block).strip() for block in blocks[:2])

    found = check(document)

    assert found.output.strip() == shown.removeprefix("$ noderpc genesis check genesis.json\n")
    assert found.exit_code == 1


@pytest.mark.parametrize("document", [COMET, APP])
def test_a_right_document_of_each_form_ends_with_status_0(document: Any) -> None:
    found = check(document, "--dialect", "comet-0.38", "--application", "kvstore")

    assert found.exit_code == 0
    assert "by-hand" in found.output
    assert re.search(r"block\.max_gas +3000000\n", found.output)
    assert "34750F98BD59FCFC946DA45AAABE933BE154A4B5  10  ed25519  validator 0" in found.output
    assert "feature" in next(line for line in found.output.splitlines() if "ignored" in line)


def test_parameters_that_are_defaulted_are_marked() -> None:
    document = {**COMET, "consensus_params": None}
    without = {**COMET["consensus_params"], "block": {"max_bytes": "20000"}}

    defaults = check(document, "--dialect", "comet-1.0")
    absent = check({**COMET, "consensus_params": without}, "--dialect", "comet-0.38")

    assert re.search(
        r"block\.max_bytes +4194304  \(default of CometBFT 1\.0\)", defaults.output
    )
    assert re.search(r"block\.max_gas +0  \(absent\)", absent.output)


@pytest.mark.features
def test_all_that_is_wrong_is_listed() -> None:
    document = {
        **COMET,
        "app_hash": "xyz",
        "validators": [validator(power="0")],
        "app_state": {"bank": []},
    }

    found = check(document)

    assert found.exit_code == 1
    for text in ("app_hash: ", "validators[0].power: ", "bank: expected an object, got []"):
        assert text in found.output


@pytest.mark.features
def test_the_application_reports_on_its_state() -> None:
    alloc = {"0x" + "11" * 20: {"balance": "0x10"}, "0x" + "22" * 20: {"code": "0x00"}}

    bank = check({**COMET, "app_state": BANK})
    gentxs = check({**COMET, "app_state": {**BANK, "genutil": {"gen_txs": [{}]}}})
    evm = check({**COMET, "app_state": {"alloc": alloc}})

    assert re.search(r"modules +auth, bank\n", bank.output)
    assert bank.exit_code == 0
    assert "genutil.gen_txs[0]: must contain at least one message" in gentxs.output
    assert gentxs.exit_code == 1
    assert re.search(r"accounts +2, 1 of them with code\n +supply +16 wei", evm.output)


def test_a_chain_without_validators_is_refused() -> None:
    found = check({"chain_id": "a"})

    assert found.exit_code == 1
    assert "validators: expected at least one" in found.output


@pytest.mark.parametrize("content", ["", "null", "[]", "{", "\0", b"\xff", "[" * 100_000])
def test_what_is_no_genesis_document_is_one_line(content: str | bytes) -> None:
    found = check(content)

    assert (found.exit_code, found.output[:26]) == (1, "refused:\n  expected a JSON")
    assert found.output.count("\n") == 2


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_can_not_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    found = CliRunner().invoke(main, ["genesis", "check", name])

    assert found.exit_code == 1
    assert re.fullmatch(rf"Error: {re.escape(name)}: .*; name the file .*\n", found.output)


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flask_noderpc.cli.genesis._MAX_BYTES", 100)

    found = check("x" * 101)

    assert found.exit_code == 1
    assert "expected at most 100 bytes" in found.output


def test_names_of_validators_can_not_write_to_the_terminal() -> None:
    found = check({**COMET, "validators": [validator(name="\x1b[2J\n")]})

    assert "\x1b" not in found.output
    assert "\\x1b[2J\\n" in found.output


def test_the_dialects_are_those_that_there_are() -> None:
    assert set(DIALECT_NAMES) == DIALECTS.keys()
    assert set(DIALECT_NAMES) == {"document", *(f"comet-{name}" for name in VERSIONS)}


@pytest.mark.features
def test_the_genesis_document_of_geth_may_be_the_state_of_a_chain() -> None:
    """Addresses may lack 0x, and numbers may be hex or decimal, and members of other tools are
    ignored."""
    code = {"code": "0x6001", "nonce": "0x1", "storage": {"0x1": "0xabc"}, "balance": "0x"}
    geth = {
        "config": {"chainId": 1337, "londonBlock": 0},
        "difficulty": "0x20000",
        "gasLimit": "0x47b760",
        "alloc": {
            "11" * 20: {"balance": "1000"},
            f"0x{'22' * 20}": {"balance": "0x00ff", "secretKey": "0x1", "comment": "x"},
            f"0x{'33' * 20}": code,
        },
    }
    found = check({**COMET, "app_state": geth})

    assert re.search(r"accounts +3, 1 of them with code\n +supply +1255 wei", found.output)
    geth["alloc"] = {"11" * 20: {"balance": "1000", "balanse": "1"}}
    assert "accounts in alloc: " in check({**COMET, "app_state": geth}).output
