"""Commands ``noderpc start`` and ``noderpc init``, for a node without an app."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..errors import ConfigurationError
from ..feature import features, page_sets
from ..server.flags import given_settings, node_flags
from ..server.output import LogOptions
from ..settings import (
    PREFIX,
    REMOVED_SETTINGS,
    all_settings,
    check_chain_id,
    unknown_setting_error,
)
from .command import VARIABLES, GroupedCommand, OneLineGroup, log, log_flags


def load_commands() -> None:
    """Import all commands, including those of features.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if one can't be imported.
    """
    for name in (".genesis", ".store"):
        import_module(name, __package__)
    for feature in features():
        for name in feature.commands:
            try:
                import_module(name)
            except ImportError as error:
                raise ConfigurationError(
                    f"the commands {name} of the feature {feature.name!r} can't be imported:"
                    f" {error}; fix or uninstall the feature"
                ) from error


class _NodeGroup(OneLineGroup):
    """The group of all commands, which imports those in other modules when one of them is
    called or all are listed."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command with a name, or ``None``."""
        if name not in self.commands:
            load_commands()
        return super().get_command(ctx, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        load_commands()
        return super().list_commands(ctx)


@click.group(
    cls=_NodeGroup,
    examples=[
        ("noderpc start --dev", "A chain for tests, with an EVM and funded accounts."),
        ("noderpc start --help", "Settings, the usual ones first."),
    ],
)
@click.version_option(package_name="flask-noderpc")
def main() -> None:
    """Run a node without an app, or work on its chain."""


def _warn_of_environment() -> None:
    """Warn about environment variables that look like settings but are not.

    They are not errors, as Kubernetes creates such variables for a service named noderpc.
    """
    known = {*VARIABLES, *(row.key for row in all_settings())}
    known |= {PREFIX + name.upper() for name in REMOVED_SETTINGS}
    for name in sorted(os.environ):
        key = name.removeprefix("FLASK_")
        if key.startswith(PREFIX) and key not in known:
            log.warning(
                "the environment variable %s is ignored: %s", name, unknown_setting_error(key)
            )


def _page_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with a flag for each page set of a feature."""
    for name, pages in page_sets().items():
        flag = click.option(f"--{name}", f"has_{name}", is_flag=True, help=pages.help)
        command = flag(command)
    return command


@main.command(
    "start",
    cls=GroupedCommand,
    examples=[
        ("noderpc start --dev", "A chain for tests, with an EVM and funded accounts."),
        (
            "noderpc start --json-rpc.enable --explorer",
            "A chain with both APIs and pages that show it, in ~/.noderpc.",
        ),
        (
            "noderpc start --dialect comet-0.38 --cors-origins '*'",
            "A chain for CosmJS, also in browsers.",
        ),
        (
            "noderpc start --upstream http://node:26657 --database chain.db",
            "The chain of a running node, copied and served.",
        ),
        (
            "noderpc start --rpc.laddr tcp://0.0.0.0:26657 --workers 4",
            "For other machines, by four processes.",
        ),
    ],
)
@_page_flags
@node_flags
@log_flags
def start_node(logs: LogOptions, **given: Any) -> None:
    """Run a node with its own chain, or one that follows other nodes.

    It runs until Ctrl-C or SIGTERM. Settings without a flag are read from the environment
    (NODERPC_CHAIN_ID for --chain-id), then from config/noderpc.toml in the home. A flag without
    a value is a switch: --dev switches it on, --dev=false off. docs/settings has all settings.
    """

    from ..server.start import serve_own_chain

    pages = [name for name in page_sets() if given.pop(f"has_{name}")]
    values, written = given_settings(given)
    _warn_of_environment()
    serve_own_chain(values, written, logs, pages=pages)


def _check_chain_id(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    try:
        return None if value is None else check_chain_id(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@main.command(
    "init",
    examples=[("noderpc init --home chain --chain-id mine-1", "Then edit chain/config.")],
)
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of the new node; created if it is missing.",
)
@click.option(
    "--chain-id",
    default=None,
    callback=_check_chain_id,
    help="ID of a new chain, at most 50 bytes.  [default: test-chain- and six letters]",
)
def init_at(home: Path, chain_id: str | None) -> None:
    """Write genesis, keys and configuration of a new node to a folder.

    Existing files are not changed.
    """
    from ..chain import home as homes
    from ..chain.clock import SystemClock

    home_files = homes.create(home, chain_id, SystemClock().now())
    click.echo(f"chain {home_files.genesis.chain_id} in {home}")
