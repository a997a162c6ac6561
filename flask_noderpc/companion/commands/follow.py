"""``noderpc follow`` and ``flask noderpc follow``: follow nodes without serving their chain."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...cli.app import app_mounts, cli
from ...cli.command import Failed, GroupedCommand, log_flags
from ...cli.node import main
from ...errors import BackendError
from ...server.flags import given_settings, node_flags
from ...server.output import REFUSED, LogOptions
from ...settings import Setting
from ..settings import CompanionSettings
from .options import store_path

if TYPE_CHECKING:
    from ..backend import CompanionBackend

_SHOW_EACH_S = 0.5


def _is_shown(row: Setting) -> bool:
    return row.group == "companion" or row.name in ("database", "home", "chain_id")


@main.command(
    "follow",
    cls=GroupedCommand,
    examples=[
        (
            "noderpc follow --upstream http://node:26657 --database postgresql://db/chain",
            "Follow into a database that noderpc start --produce=false serves elsewhere.",
        ),
    ],
)
@partial(node_flags, is_shown=_is_shown)
@log_flags
def follow_nodes(logs: LogOptions, **given: str | None) -> None:
    """Follow the nodes of --upstream into a store.

    The command runs until Ctrl-C or SIGTERM. An app or noderpc start --produce=false may serve
    the store meanwhile; noderpc start does both.
    """
    from ...settings import read_settings
    from ..from_settings import companion_from_settings

    values, written = given_settings(given)
    settings = read_settings({}, values, written)
    if not settings.of(CompanionSettings).upstream:
        raise click.UsageError(
            "--upstream: expected the URL of a node, got nothing; pass http://host:26657"
        )
    home = Path(settings.home) if settings.home and not settings.database else None
    path = store_path(settings.database, home)
    _follow([companion_from_settings(settings, path)], logs)


@cli.command(
    "follow",
    examples=[
        (
            "flask --app yourapp noderpc follow",
            "Follow the nodes for an app that runs under gunicorn and reads the store.",
        )
    ],
)
@log_flags
def follow_chain(logs: LogOptions) -> None:
    """Follow the nodes of NODERPC_UPSTREAM into the app's store.

    The command runs until Ctrl-C or SIGTERM. The app reads the store and never follows the
    nodes itself; flask noderpc start does both.
    """
    from ..backend import CompanionBackend

    backends = [mount.backend for mount in app_mounts().values()]
    found = [each for each in backends if isinstance(each, CompanionBackend)]
    if not found:
        raise Failed("NODERPC_UPSTREAM: no mount of this app has it; set it first", REFUSED)
    _follow(found, logs)


def _follow(backends: Sequence[CompanionBackend], logs: LogOptions) -> None:
    """Follow chains until SIGTERM or SIGINT, and show the progress of the first one's
    backfill."""
    from ..watch import BackfillBar

    ended, bar = threading.Event(), BackfillBar(is_shown=logs.has_bars)
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        for backend in backends:
            backend.follow()
        while not ended.wait(_SHOW_EACH_S):
            with suppress(BackendError):
                # Show only the first chain, as bars of several chains would overwrite each
                # other.
                bar.show(backends[0].backfill_progress())
    finally:
        bar.close()
        for backend in backends:
            backend.close()
        for number, handler in before.items():
            signal.signal(number, handler)
