"""Options that the companion's commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...backends.base.location import location_of
from ...server.flags import database_of, default_home, not_on_command_line
from ...settings.kinds import HEADER

if TYPE_CHECKING:
    from ..address import Address

upstream_header = click.option(
    "--upstream-header",
    "header",
    default="",
    metavar="@FILE",
    envvar="NODERPC_UPSTREAM_HEADER",
    callback=not_on_command_line,
    help="File with a header to send with each request, such as 'Authorization: Bearer …'.",
)
"""Option ``--upstream-header`` of commands that take URLs of nodes."""


def addresses_of(
    urls: Sequence[str], header: str, *, allow_sockets: bool = False
) -> list[Address]:
    """Return the addresses of nodes, with a header to send with each request.

    With ``allow_sockets``, a URL may also be ``unix:///path``. Raise ``click.BadParameter``
    for a bad header, and :exc:`~flask_noderpc.errors.ConfigurationError` for a bad URL.
    """
    from ..address import Address

    try:
        given = HEADER.read(header) if header else ""
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--upstream-header") from None
    return [
        Address.at_socket(url.removeprefix("unix://"), given)
        if allow_sockets and url.startswith("unix:///")
        else Address.parse(url, given)
        for url in urls
    ]


def store_path(database: str | None, home: Path | None) -> str:
    """Return the file or URL of a store, and create its folder; raise ``click.UsageError`` if
    both options are used."""
    if database is not None and home is not None:
        raise click.UsageError("--database and --home: expected one of them, got both")
    path = database or database_of(home or default_home())
    folder = location_of(path).folder
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
