"""Flags of ``noderpc start`` and ``flask noderpc start``, made from the table of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from ..settings import SETTINGS, Setting
from .config_file import DEV_DEFAULTS, NODE_DEFAULTS

_Command = Callable[..., None]

# Where an app has them in its instance folder.
_PLACES = {
    "database": "SQLite file of the chain.  [default: data/noderpc.db in the home]",
    "home": "Folder of configuration and chain.  [default: ~/.noderpc; with --dev:"
    " ~/.noderpc/dev-evm]",
}


def _help(row: Setting) -> str:
    """A setting's sentence and its defaults under ``noderpc start``."""
    if row.name in _PLACES:
        return _PLACES[row.name]
    names = {
        "default": NODE_DEFAULTS.get(row.name, row.default),
        "with --dev": DEV_DEFAULTS.get(row.name, row.default),
    }
    if names["default"] == names["with --dev"]:
        del names["with --dev"]
    shown = "; ".join(
        f"{name}: {','.join(value) if isinstance(value, tuple) else value}"
        for name, value in names.items()
        if value not in (None, "", ())
    )
    return row.doc.replace("``", "") + (f"  [{shown}]" if shown else "")


# A switch may stand alone. For others click would take the -1 of "--workers -1" for a flag.
_ALONE: dict[str, Any] = {"flag_value": "true"}

_OF_SERVER = (
    "rpc_laddr",
    "tls_cert_file",
    "tls_key_file",
    "json_rpc_address",
    "json_rpc_ws_address",
    "json_rpc_tls_cert_file",
    "json_rpc_tls_key_file",
    "workers",
)
"""The settings that can be changed when an app has been mounted."""


def _option(row: Setting, **more: Any) -> Callable[[_Command], _Command]:
    alone = _ALONE if row.type == "bool" else {}
    return click.option(*row.flags, row.name, default=None, is_flag=False, **alone, **more)


def node_flags(command: _Command) -> _Command:
    """An option for each setting; what is not given is left to the environment."""
    for row in reversed(SETTINGS):
        variables = [row.key, f"FLASK_{row.key}"]
        command = _option(row, envvar=variables, help=_help(row))(command)
    return command


def host_flags(command: _Command) -> _Command:
    """An option for each setting of the server alone; others are refused with their keys."""
    for row in reversed(SETTINGS):
        if row.name in _OF_SERVER:
            text = f"{row.doc.replace('``', '')}  [default: the app's {row.key}]"
            command = _option(row, help=text)(command)
        else:
            command = _option(row, hidden=True, expose_value=False, callback=_refuse)(command)
    return command


def _refuse(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(
            f"{' / '.join(option.opts)} is a setting of the app:"
            f" app.config['NODERPC_{str(option.name).upper()}']"
        )


def what_was_given(given: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings that were given, and how errors name each."""
    said = {name: value for name, value in given.items() if value is not None}
    return said, {row.name: _written(row) for row in SETTINGS if row.name in said}


def _written(row: Setting) -> str:
    """The flags of a setting, as click names them, or its variable where that was read."""
    source = click.get_current_context().get_parameter_source(row.name)
    return " / ".join(row.flags) if source is ParameterSource.COMMANDLINE else row.key
