"""Settings of ``noderpc start``: defaults, the home's config/noderpc.toml, and flags."""

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

# A CometBFT node also produces empty blocks.
NODE_DEFAULTS: dict[str, Any] = {"empty_blocks": True}
"""Defaults of a node without an app that differ from an app's."""

DEV_DEFAULTS: dict[str, Any] = {
    "cors_origins": "*",
    # Seconds. A short interval makes a new transaction's block soon, as in anvil and hardhat.
    "block_interval": 0.1,
}
"""Additional defaults with ``--dev``."""


def dev_application() -> str:
    """Return the default application with ``--dev``."""
    kinds = application_kinds().items()
    return next((name for name, kind in kinds if kind.is_dev_default), Settings().application)


def defaults_of(application: str | None, *, dev: bool) -> dict[str, Any]:
    """Return the defaults of a node with an application; ``None`` is the default one."""
    name = application or (dev_application() if dev else Settings().application)
    kind = application_kinds()[name]
    if not dev:
        return {"application": name, **NODE_DEFAULTS, **kind.defaults}
    return {"application": name, **DEV_DEFAULTS, **kind.defaults, **kind.dev_defaults}


def default_home(application: str | None = None) -> Path:
    """Return the default home of a node; with ``application``, of a development chain."""
    folder = Path.home() / ".noderpc"
    return folder / f"dev-{application}" if application else folder


def config_path(home: Path) -> Path:
    """Return the path of a home's settings file."""
    return home / "config" / "noderpc.toml"


def read_config(home: Path) -> dict[str, Any]:
    """Return the settings in a home's file, none if it does not exist; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    path = config_path(home)
    try:
        found = tomllib.loads(read_file(path).decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; choose a readable and writable folder with --home"
        ) from None
    except ValueError as error:
        raise InvalidSetting(
            f"{path}: expected TOML with name = value on each line, and strings in quotes:"
            f" {error}"
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
    """Return the path of the SQLite file in a home, which NODERPC_DATABASE can replace."""
    return home / "data" / "noderpc.db"


def database_of(home: Path) -> str:
    """Return the file or URL of a home's database; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    found, path = read_config(home), config_path(home)
    settings = read_settings({}, found, {name: f"{path}: {name}" for name in found})
    return settings.database or str(default_database(home))


_Command = Callable[..., None]

# Help texts for settings that ``noderpc start`` describes differently from an app's settings.
_SENTENCES = {
    "database": "SQLite file or postgresql:// URL of the chain.",
    "home": "Folder of the configuration and the chain.",
    "empty_blocks": "True to produce blocks without transactions.",
}
_DEFAULTS = {
    "database": "default: data/noderpc.db in the home",
    "home": f"default: ~/.noderpc; with --dev: ~/.noderpc/dev-{dev_application()}",
    "trust_period": "default: 14d",
}


def _help(row: Setting) -> str:
    """Return a setting's help text in ``noderpc start``, with its defaults."""
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
    """Return a value as text that its flag accepts."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Options of click for a switch, which may be given without a value. Other settings must not
# have them, as click would then take the -1 of "--workers -1" as a flag.
_ALONE: dict[str, Any] = {"flag_value": "true"}


def _server_settings() -> set[str]:
    """Return the names of settings of the server, which flags can override for an app."""
    found = ((each.address, *each.tls) for each in surfaces().values())
    return {"workers", *chain.from_iterable(found)}


def _option(row: Setting, **more: Any) -> Callable[[_Command], _Command]:
    more |= {} if row.kind.label else _ALONE
    if row.kind is URLS:
        # The user passes several URLs by repeating the flag.
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
    """Return a function for shell completion of choices or files; ``None`` for other kinds."""

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
    """Return the value of a secret; refuse it on the command line, which other users can
    see."""
    source = context.get_parameter_source(str(option.name))
    name = option.opts[0]
    if value and source is ParameterSource.COMMANDLINE and not value.startswith("@"):
        raise click.UsageError(
            f"{name}: a credential on the command line is visible to other users; set"
            f" {PREFIX}{name[2:].replace('-', '_').upper()}, or read it from a file with"
            f" {name} @FILE"
        )
    return value


def node_flags(
    command: _Command, is_shown: Callable[[Setting], bool] = lambda row: True
) -> _Command:
    """Return the command with an option for each setting, which its environment variable also
    sets; the help only lists options for which ``is_shown`` returns true."""
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
    """Return the command with an option for each setting of the server.

    An option of another setting is refused, with the key to set in ``app.config`` instead.
    """
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
            f"{' / '.join(option.opts)} can't be given here, as it is a setting of the app;"
            f" set app.config['NODERPC_{str(option.name).upper()}']"
        )


def given_settings(given: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings that were given, and the flag or variable by which errors name each;
    warn about settings that no longer exist."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in sorted(REMOVED_SETTINGS.keys() & values):
        warn_of_removed(name, _written(name, (_flag_of_dropped(name),)))
        del values[name]
    return values, {
        row.name: _written(row.name, row.flags) for row in all_settings() if row.name in values
    }


def _written(name: str, flags: Iterable[str]) -> str:
    """Return the flags of a setting if it was given on the command line, else its environment
    variable."""
    source = click.get_current_context().get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        return " / ".join(flags)
    return next(filter(os.environ.get, _variables(name)))
