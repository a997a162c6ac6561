"""Tests of settings from the app's configuration, its environment, and the mount itself."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask

from flask_noderpc import ConfigurationError, NodeRPC, noderpc_bp
from flask_noderpc.extension import mounts
from flask_noderpc.feature import application_names, features
from flask_noderpc.installation import install_hint
from flask_noderpc.settings import REMOVED_SETTINGS, Settings, all_settings, read_settings
from flask_noderpc.wire.dialects import DIALECTS

from .conftest import MakeApp


def read(**config: Any) -> Settings:
    return read_settings({"NODERPC_" + key.upper(): value for key, value in config.items()}, {})


def test_every_setting_has_a_default_a_type_and_a_sentence() -> None:
    classes: list[type[Any]] = [
        Settings,
        *(each.settings for each in features() if each.settings),
    ]
    declared = {row.name for kind in classes for row in fields(kind)} - {"of_features"}
    assert {row.name for row in all_settings()} == declared
    assert all(row.doc.endswith(".") and row.value_type for row in all_settings())
    assert read() == Settings()


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("chain_id", 12345, "12345"),
        ("chain_id", "007", "007"),
        ("chain_id", "c" * 50, "c" * 50),
        ("database", Path("/x/y.db"), "/x/y.db"),
        ("database", "file:x.db?mode=ro", "file:x.db?mode=ro"),
        ("home", Path("/x"), "/x"),
        ("empty_blocks", True, True),
        ("empty_blocks", 1, True),
        ("empty_blocks", "yes", True),
        ("empty_blocks", "1", True),
        ("produce", "0", False),
        ("empty_blocks", "OFF", False),
        ("block_interval", 1, 1.0),
        ("block_interval", "0.5", 0.5),
        ("max_batch", "20", 20),
        ("max_batch", 1, 1),
        ("exclude_routes", "block, tx,", ("block", "tx")),
        ("exclude_routes", ["block"], ("block",)),
        ("exclude_routes", "", ()),
        ("home", None, None),
        ("write_origins", "*", ("*",)),
        (
            "cors_origins",
            "https://*.example,http://localhost:3000,chrome-extension://abc,null",
            ("https://*.example", "http://localhost:3000", "chrome-extension://abc", "null"),
        ),
    ],
)
def test_values_are_read_in_the_forms_that_people_write(
    name: str, given: object, value: object
) -> None:
    assert getattr(read(**{name: given}), name) == value


@pytest.mark.parametrize("name", ["max_batch", "block_interval"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_of_any_size_is_refused_in_one_line(name: str, digits: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**{name: -(10**digits)})

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("name", "given", "needed"),
    [
        ("chain_id", 1.5, "expected a string"),
        ("chain_id", True, "expected a string"),
        ("chain_id", "", "expected a string"),
        ("chain_id", "c" * 51, "expected a chain ID of 1 to 50 printable bytes, got 51"),
        ("chain_id", "é" * 26, "expected a chain ID of 1 to 50 printable bytes, got 52"),
        ("chain_id", "a\nb", "printable"),
        ("dialect", 3.0, "expected a string"),
        ("dialect", "comet-0.35", "expected one of document, comet-0.34"),
        ("database", 3.0, "expected a string"),
        ("empty_blocks", "perhaps", "expected true or false"),
        ("empty_blocks", 2, "expected true or false"),
        ("empty_blocks", [], "expected true or false"),
        ("block_interval", 0, "above 0"),
        ("block_interval", -1, "above 0"),
        ("block_interval", "soon", "above 0"),
        ("block_interval", "nan", "above 0"),
        ("block_interval", "inf", "above 0"),
        ("block_interval", True, "above 0"),
        ("block_interval", [1], "above 0"),
        ("max_batch", 0, "at least 1"),
        ("max_batch", 1.5, "at least 1"),
        ("max_batch", True, "at least 1"),
        ("max_batch", "-1", "at least 1"),
        ("max_batch", "²", "at least 1"),
        ("workers", 10**20, "at most 1000"),
        ("workers", "all", "a whole number of at least 1, at most 1000, or auto"),
        ("database", "/\udcff/x", "surrogates"),
        ("exclude_routes", 5, "a list of names"),
        ("exclude_routes", [5], "a list of names"),
        (
            "write_origins",
            "wallet.example",
            "expected origins such as https://wallet.example, got",
        ),
        ("write_origins", ["https://a.example", "localhost:3000"], "expected origins such as"),
        ("read_origins", "https://wallet.example/", "expected origins such as"),
        ("cors_origins", "wallet.example", "expected origins such as"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(
    name: str, given: object, needed: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**{name: given})

    assert str(caught.value).startswith(f"NODERPC_{name.upper()} = {given!r}: ")
    assert needed in str(caught.value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("dialect", "x" * 100_000),
        ("dialect", ["x" * 100_000] * 1_000),
        ("read_origins", ["x" * 100_000]),
        ("read_origins", ",".join(["https://" + "x" * 100_000, "x" * 100_000])),
    ],
)
def test_an_error_shows_little_of_a_long_value(name: str, given: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**{name: given})

    message = str(caught.value)
    assert "xxx...xxx" in message
    assert len(message) < 1_000


def test_the_names_that_settings_take_are_those_that_there_are() -> None:
    for row, known in (("dialect", DIALECTS), ("application", application_names())):
        with pytest.raises(ConfigurationError) as caught:
            read(**{row: "other"})
        assert str(caught.value).endswith(f"expected one of {', '.join(known)}")


def test_a_key_that_is_no_setting_is_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match="unknown setting NODERPC_DATABSE; did you mean NODERPC_DATABASE",
    ):
        read(databse="x")


@pytest.mark.parametrize("name", ["authorize", "backend"])
def test_no_setting_is_suggested_that_is_only_alike_in_its_prefix(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_settings({f"NODERPC_{name.upper()}": 1}, {})

    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "value", "needed"),
    [
        ("authorize", "admin", "expected a function of a request and a method's name"),
        ("app", "x", "expected a Flask app"),
        ("app", Flask, "expected a Flask app"),
        ("url_prefix", 3, "expected a path such as '/node'"),
        ("url_prefix", "node", "expected a path such as '/node'"),
        ("routes", None, "expected a list of Route"),
        ("routes", 3, "expected a list of Route"),
        ("name", 3, "expected a string"),
        ("name", None, "expected a string"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_by_its_name(
    argument: str, value: Any, needed: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NodeRPC(**{argument: value})

    text = str(caught.value)
    assert text.startswith(argument)
    assert needed in text
    assert repr(value) in text


def test_init_app_refuses_objects_that_are_no_flask_app() -> None:
    for app in ("x", None):
        with pytest.raises(ConfigurationError, match=f"app: expected a Flask app, got {app!r}"):
            NodeRPC().init_app(cast(Any, app))


@pytest.mark.parametrize("prefix", [3, "node"])
def test_a_prefix_that_is_no_path_is_refused_where_a_blueprint_is_registered(
    make_app: MakeApp, prefix: Any
) -> None:
    with pytest.raises(
        ConfigurationError, match=f"url_prefix: expected a path .*, got {prefix!r}"
    ):
        make_app().register_blueprint(noderpc_bp, url_prefix=prefix)


def test_an_option_that_is_no_setting_is_refused(make_app: MakeApp) -> None:
    with pytest.raises(ConfigurationError, match="unknown setting NODERPC_COLOUR"):
        make_app().register_blueprint(noderpc_bp, colour="red")


@pytest.mark.parametrize("name", REMOVED_SETTINGS)
def test_a_dropped_setting_is_taken_with_a_warning(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    key = f"NODERPC_{name.upper()}"
    make_app(**{key: 1}).register_blueprint(noderpc_bp)
    keywords: Any = {name: 1}
    NodeRPC(make_app(), **keywords)

    warning = f"{key} is no longer a setting and has no effect: {REMOVED_SETTINGS[name]}"
    assert [text for text in caplog.messages if key in text] == [warning] * 2
    assert name not in {row.name for row in all_settings()}


def test_keys_of_others_are_not_looked_at() -> None:
    assert read_settings({"NODE": 1, "SECRET_KEY": "x", "noderpc_home": 5}, {}) == Settings()


def test_mount_settings_override_app_config() -> None:
    found = read_settings({"NODERPC_MAX_BATCH": 2, "NODERPC_MONIKER": "app"}, {"max_batch": 3})

    assert (found.max_batch, found.moniker) == (3, "app")


def test_a_mount_setting_of_none_uses_app_config() -> None:
    assert read_settings({"NODERPC_MAX_BATCH": 2}, {"max_batch": None}).max_batch == 2
    assert read_settings({}, {"max_batch": None}).max_batch == Settings().max_batch


def test_the_environment_is_read_by_flask(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in {
        "CHAIN_ID": "20261120",
        "BLOCK_INTERVAL": "0.25",
        "EMPTY_BLOCKS": "true",
        "MAX_BATCH": "3",
        "EXCLUDE_ROUTES": '["genesis"]',
        "MONIKER": "plain words",
    }.items():
        monkeypatch.setenv(f"FLASK_NODERPC_{key}", value)
    app = make_app()
    app.config.from_prefixed_env()
    app.register_blueprint(noderpc_bp)

    found = mounts(app)["noderpc"].settings

    assert (found.chain_id, found.block_interval, found.empty_blocks) == (
        "20261120",
        0.25,
        True,
    )
    assert (found.max_batch, found.moniker) == (3, "plain words")
    assert found.exclude_routes == ("genesis",)
    genesis = app.test_client().post("/", json={"id": 1, "method": "genesis"}).get_json()
    assert genesis["result"]["genesis"]["chain_id"] == "20261120"


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("NODERPC_DIALECT", "klingon", "NODERPC_DIALECT = 'klingon': expected one of document"),
        (
            "NODERPC_APPLICATION",
            "forth",
            "NODERPC_APPLICATION = 'forth': expected one of kvstore",
        ),
        (
            "NODERPC_EXCLUDE_ROUTES",
            "blok",
            "NODERPC_EXCLUDE_ROUTES: expected names of routes, got 'blok'",
        ),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_those_that_are(
    make_app: MakeApp, key: str, value: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_app(**{key: value}).register_blueprint(noderpc_bp)

    assert text in str(caught.value)


@pytest.mark.features
def test_the_evm_names_the_package_that_is_missing(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py_arkworks_bls12381", None)
    with pytest.raises(ConfigurationError) as caught:
        make_app(NODERPC_APPLICATION="evm").register_blueprint(noderpc_bp)

    assert str(caught.value).endswith(f"needs py-arkworks-bls12381: {install_hint('evm')}")


def test_settings_reach_the_node(make_app: MakeApp) -> None:
    app = make_app(
        NODERPC_MONIKER="m", NODERPC_RPC_LADDR="tcp://1.2.3.4:5", NODERPC_CHAIN_ID="chain-7"
    )
    app.register_blueprint(noderpc_bp)

    card = _status(app)["node_info"]

    assert (card["moniker"], card["network"]) == ("m", "chain-7")
    assert card["other"]["rpc_address"] == "tcp://1.2.3.4:5"


def _status(app: Flask) -> Any:
    return app.test_client().get("/status").get_json()["result"]
