"""Tests of settings of features as instances of their classes, and of the types of keywords."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from flask_noderpc import ConfigurationError, NodeRPC
from flask_noderpc.companion.settings import CompanionSettings
from flask_noderpc.ethereum.settings import EthereumSettings
from flask_noderpc.extension import mounts
from flask_noderpc.settings import CoreSettings, Settings
from tests.helpers.until import PATIENCE

from ..helpers.require import require_library
from .conftest import MakeApp

ROOT = Path(__file__).parents[2]


def test_the_keywords_have_the_types_of_the_settings() -> None:
    # The parameter "dialect" also accepts an object, and lists of names may be strings with
    # commas.
    declared = get_type_hints(Settings)
    del declared["dialect"], declared["of_features"]
    names = {tuple[str, ...]: Sequence[str]}

    assert get_type_hints(CoreSettings) == {
        name: names.get(hint, hint) for name, hint in declared.items()
    }


@pytest.mark.features
def test_settings_of_features_are_instances_of_their_classes(make_app: MakeApp) -> None:
    app = make_app(NODERPC_EVM_MAX_BATCH=7, NODERPC_EVM_GAS_CAP=50_000)
    ethereum = EthereumSettings(json_rpc_enable=True, evm_gas_cap=60_000)
    NodeRPC(app, settings=[ethereum, CompanionSettings(upstream_poll=3.0)], max_batch=5)

    found = mounts(app)["noderpc"].settings
    own = found.of(EthereumSettings)
    assert (own.json_rpc_enable, own.evm_gas_cap, own.evm_max_batch) == (True, 60_000, 7)
    assert (found.of(CompanionSettings).upstream_poll, found.max_batch) == (3.0, 5)


@pytest.mark.features
def test_a_keyword_overrides_a_value_of_an_instance(make_app: MakeApp) -> None:
    app, keywords = make_app(), dict[str, Any](evm_gas_cap=70_000)
    NodeRPC(app, settings=[EthereumSettings(evm_gas_cap=60_000)], **keywords)

    assert mounts(app)["noderpc"].settings.of(EthereumSettings).evm_gas_cap == 70_000


@pytest.mark.features
def test_a_wrong_value_in_an_instance_is_refused_with_its_key(make_app: MakeApp) -> None:
    with pytest.raises(
        ConfigurationError, match="NODERPC_EVM_GAS_CAP = 1: expected a whole number"
    ):
        NodeRPC(make_app(), settings=[EthereumSettings(evm_gas_cap=1)])


@pytest.mark.features
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([Settings()], "got Settings("),
        ([EthereumSettings], "got <class"),
        ([{"json_rpc_enable": True}], "got {'json_rpc_enable': True};"),
        (5, "got 5;"),
    ],
)
def test_settings_of_an_unknown_class_are_refused(given: Any, shown: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NodeRPC(settings=given)

    assert shown in str(caught.value)
    known = "CompanionSettings, CosmosSettings, EthereumSettings, PostgresSettings"
    assert f"expected instances of {known}" in str(caught.value)


@pytest.mark.features
@pytest.mark.parametrize("given", [5, {"evm_rows": []}])
def test_rows_for_an_unknown_api_are_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NodeRPC(rows=given)

    assert str(caught.value).startswith("rows: expected a dict")
    assert "evm_routes" in str(caught.value)


_CALLS = """
from flask import Flask
from flask_noderpc import NodeRPC
from flask_noderpc.ethereum.settings import EthereumSettings

app = Flask("host")
NodeRPC(app, max_batch=5, cors_origins=["*"], settings=[EthereumSettings(evm_executors=3)])
NodeRPC(app, max_bach=5)
NodeRPC(app, max_batch="many")
NodeRPC(app, settings=[EthereumSettings(evm_executor=3)])
NodeRPC(app, rows={"evm_routes": ["row"]})
"""


@pytest.mark.features
@pytest.mark.integration
def test_mypy_finds_misspelled_keywords_and_wrong_types(tmp_path: Path) -> None:
    require_library("mypy")
    calls = tmp_path / "calls.py"
    calls.write_text(_CALLS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(calls)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
    )

    found = re.findall(r"calls\.py:(\d+): error: .* \[([\w-]+)\]", done.stdout)
    assert found == [
        ("8", "call-arg"),
        ("9", "arg-type"),
        ("10", "call-arg"),
        ("11", "list-item"),
    ], done.stdout + done.stderr
