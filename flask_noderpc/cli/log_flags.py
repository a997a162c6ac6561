"""Options of the commands that run until a signal: how they write their lines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ..errors import NodeRPCError
from ..server.exit_status import exit_status
from ..server.logs import FORMATS, LogOptions, configure

log = logging.getLogger("flask_noderpc.start")

_format = click.option(
    # CometBFT: --log_format.
    "--log-format",
    "--log_format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    envvar="NODERPC_LOG_FORMAT",
    show_envvar=True,
    help="Lines as text, or as one JSON object each.",
)
_quiet = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    envvar="NODERPC_QUIET",
    show_envvar=True,
    help="Write errors alone: no addresses at the start, and no line for each block.",
)
VARIABLES = ("NODERPC_LOG_FORMAT", "NODERPC_QUIET")
"""Variables of the environment that are no settings."""


def log_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command gets ``logs``, and its lines are written by them."""

    @_format
    @_quiet
    @wraps(command)
    def run(*args: Any, log_format: str, quiet: bool, **given: Any) -> None:
        logs = LogOptions(log_format, quiet)
        configure(logs)
        try:
            command(*args, logs=logs, **given)
        except NodeRPCError as error:
            if not logs.is_json:
                raise
            status = exit_status(error)
            log.error("%s", error, extra={"event": "failed", "status": status})
            raise SystemExit(status) from None

    return run
