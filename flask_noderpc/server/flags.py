"""Settings of ``noderpc start``: its defaults, a home's config/noderpc.toml, and its flags."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ..chain.comet_config import read_file
from ..errors import ConfigurationError, InvalidSetting
from ..feature import application_kinds
from ..settings import (
    PREFIX,
    REMOVED_SETTINGS,
    SEE_LIST,
    Setting,
    Settings,
    all_settings,
    read_settings,
    similar_setting,
    warn_of_removed,
)
from ..settings.kinds import OPTIONAL_PATH, PATH, URLS, Kind
from .addresses import surfaces

# Like CometBFT's node, it produces empty blocks.
NODE_DEFAULTS: dict[str, Any] = {"empty_blocks": True}
"""Defaults of a node without an app, if they differ from an app's."""

DEV_DEFAULTS: dict[str, Any] = {
    "cors_origins": "*",
    # As in anvil and hardhat: each transaction is in a block when its sender gets the response.
    "block_interval": 0.1,
}
"""Defaults with ``--dev``."""


def dev_application() -> str:
    """Return the application of ``--dev`` if none is given."""
    kinds = application_kinds().items()
    return next((name for name, kind in kinds if kind.is_dev_default), Settings().application)


def defaults_of(application: str | None, *, dev: bool) -> dict[str, Any]:
    """Return the defaults of a node with an application, which is ``None`` if not given."""
    name = application or (dev_application() if dev else Settings().application)
    kind = application_kinds()[name]
    if not dev:
        return {"application": name, **NODE_DEFAULTS, **kind.defaults}
    return {"application": name, **DEV_DEFAULTS, **kind.defaults, **kind.dev_defaults}


def default_home(application: str | None = None) -> Path:
    """Return the folder of a node, or of a development chain with an application, which is
    always a separate folder."""
    folder = Path.home() / ".noderpc"
    return folder / f"dev-{application}" if application else folder


def config_path(home: Path) -> Path:
    """Return the file with a home's settings."""
    return home / "config" / "noderpc.toml"


def read_config(home: Path) -> dict[str, Any]:
    """Return the settings of the file, empty if it does not exist; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    path = config_path(home)
    try:
        found = tomllib.loads(read_file(path).decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; --home names a folder that may be read and written to"
        ) from None
    except ValueError as error:
        raise InvalidSetting(
            f"{path}: {error}: expected TOML with a name = value on each line, and strings in"
            " quotes"
        ) from None
    known = {row.name for row in all_settings()}
    for name in sorted(REMOVED_SETTINGS.keys() & found):
        warn_of_removed(name, f"{path}: {name}")
        del found[name]
    for name in found:
        if name not in known:
            like = similar_setting(name.removeprefix(PREFIX))
            hint = f"did you mean {like}?" if like else SEE_LIST
            raise InvalidSetting(f"{path}: unknown setting {name}; {hint}")
    return found


def default_database(home: Path) -> Path:
    """Return the path of a home's store, unless a setting names another."""
    return home / "data" / "noderpc.db"


def database_of(home: Path) -> str:
    """Return a home's store; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    found, path = read_config(home), config_path(home)
    settings = read_settings({}, found, {name: f"{path}: {name}" for name in found})
    return settings.database or str(default_database(home))


_Command = Callable[..., None]

# The command's own sentences for settings whose default differs from an app's.
_SENTENCES = {
    "database": "SQLite file or postgresql:// URL of the chain.",
    "home": "Folder of configuration and chain.",
    "empty_blocks": "True to produce blocks without transactions.",
}
_DEFAULTS = {
    "database": "default: data/noderpc.db in the home",
    "home": f"default: ~/.noderpc; with --dev: ~/.noderpc/dev-{dev_application()}",
    "trust_period": "default: 14d",
}


def _help(row: Setting) -> str:
    """Return a setting's sentence and its defaults in ``noderpc start``."""
    sentence = _SENTENCES.get(row.name, row.doc.replace("``", ""))
    shown = _DEFAULTS.get(row.name) or _default(row)
    return f"{sentence}  [{shown}]" if shown else sentence


def _default(row: Setting) -> str:
    names = {
        "default": defaults_of(None, dev=False).get(row.name, row.default),
        "with --dev": defaults_of(None, dev=True).get(row.name, row.default),
    }
    if names["default"] == names["with --dev"]:
        del names["with --dev"]
    return "; ".join(
        f"{name}: {_text(value)}"
        for name, value in names.items()
        if value not in (None, "", ())
    )


def _text(value: object) -> str:
    """Return a value as it is written after its flag."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


# A switch may have no value. With other options click would read the -1 of "--workers -1" as a
# flag.
_ALONE: dict[str, Any] = {"flag_value": "true"}


def _server_settings() -> set[str]:
    """Return the names of settings that can be changed after mounting on an app."""
    found = ((each.address, *each.tls) for each in surfaces().values())
    return {"workers", *chain.from_iterable(found)}


def _option(row: Setting, **more: Any) -> Callable[[_Command], _Command]:
    more |= {} if row.kind.label else _ALONE
    if row.kind is URLS:
        # Each of several nodes has its own flag.
        more |= {"multiple": True, "callback": more.get("callback", _joined)}
    if row.kind.is_secret:
        more |= {"callback": more.get("callback", not_on_command_line)}
    return click.option(
        *row.flags,
        row.name,
        default=None,
        is_flag=False,
        metavar=row.kind.label,
        shell_complete=_completer(row.kind),
        **more,
    )


def _completer(kind: Kind) -> Callable[..., list[CompletionItem]] | None:
    """Return a function that completes a value in a shell: a choice, or a file."""

    def complete(
        context: click.Context, option: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if kind.choices:
            found = [name for name in kind.choices if name.startswith(incomplete)]
            return [CompletionItem(name) for name in found]
        return [CompletionItem(incomplete, type="file")]

    return complete if kind.choices or kind in (PATH, OPTIONAL_PATH) else None


def _joined(
    context: click.Context, option: click.Parameter, values: Sequence[str]
) -> str | None:
    return ",".join(values) or None


def not_on_command_line(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    """Refuse credentials that the list of processes would show."""
    source = context.get_parameter_source(str(option.name))
    name = option.opts[0]
    if value and source is ParameterSource.COMMANDLINE and not value.startswith("@"):
        raise click.UsageError(
            f"{name} would be visible in the list of processes: set"
            f" {PREFIX}{name[2:].replace('-', '_').upper()}, or name a file that has it,"
            f" {name} @FILE"
        )
    return value


def node_flags(
    command: _Command, is_shown: Callable[[Setting], bool] = lambda row: True
) -> _Command:
    """Add an option for each setting, with its environment variable.

    The help lists the options for which ``is_shown`` returns true.
    """
    for row in reversed(all_settings()):
        more = {"envvar": _variables(row.name), "help": _help(row)}
        command = _option(row, hidden=not is_shown(row), **more)(command)
    for name in REMOVED_SETTINGS:
        flag, variables = _flag_of_dropped(name), _variables(name)
        command = click.option(flag, name, hidden=True, envvar=variables)(command)
    return command


def _variables(name: str) -> list[str]:
    return [PREFIX + name.upper(), f"FLASK_{PREFIX}{name.upper()}"]


def _flag_of_dropped(name: str) -> str:
    return "--" + name.replace("_", "-")


def host_flags(command: _Command) -> _Command:
    """Add an option for each setting of the server; refuse others, naming their keys."""
    changeable = _server_settings()
    for row in reversed(all_settings()):
        if row.name in changeable:
            text = f"{row.doc.replace('``', '')}  [default: the app's {row.key}]"
            command = _option(row, help=text)(command)
        else:
            command = _option(row, hidden=True, expose_value=False, callback=_refuse)(command)
    return command


def _refuse(
    context: click.Context, option: click.Parameter, value: str | Sequence[str] | None
) -> None:
    if value:
        raise click.UsageError(
            f"{' / '.join(option.opts)} is a setting of the app:"
            f" app.config['NODERPC_{str(option.name).upper()}']"
        )


def given_settings(given: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the given settings, and how errors name each; warn about settings that were
    removed."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in sorted(REMOVED_SETTINGS.keys() & values):
        warn_of_removed(name, _written(name, (_flag_of_dropped(name),)))
        del values[name]
    return values, {
        row.name: _written(row.name, row.flags) for row in all_settings() if row.name in values
    }


def _written(name: str, flags: Iterable[str]) -> str:
    """Return the flags of a setting, as click names them, or its environment variable if that
    was read."""
    source = click.get_current_context().get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        return " / ".join(flags)
    return next(filter(os.environ.get, _variables(name)))
