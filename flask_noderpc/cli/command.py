"""Click commands with examples and groups in their help, one-line errors, and the log options
of commands that run until a signal."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import wraps
from typing import Any

import click

from .. import jsoncodec
from ..errors import NodeRPCError
from ..server.output import (
    FAILED,
    FORMATS,
    INTERRUPTED,
    REFUSED,
    USAGE,
    LogOptions,
    configure,
    exit_status,
    wants_color,
)
from ..settings import by_group

_WIDTH = 100
# Numbers of an OSError without a file name that means that standard output can't be written.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

Example = tuple[str, str]
"""A command line and its description."""


def printable(text: str) -> str:
    """Return text as one line, with characters that are not printable escaped, such as line
    feeds and terminal sequences in file names."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def json_text(value: object) -> str:
    """Return a value as indented JSON in ASCII, so that text of other nodes can't control the
    terminal."""
    return json.dumps(jsoncodec.decode(jsoncodec.encode(value)), indent=2)


class Failed(click.ClickException):
    """Error that is shown in one line, with an exit status."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # one for all errors, in click

    def show(self, file: Any = None) -> None:
        """Print the error."""
        label = click.style("Error:", fg="red", bold=True)
        click.echo(
            f"{label} {printable(self.message)}", file=file, err=True, color=wants_color()
        )


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of click, of this package and of files into :exc:`Failed`."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        command = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        text = error.format_message().removesuffix(".")
        raise Failed(" ".join(text.split()) + command, USAGE) from None
    except NodeRPCError as error:
        raise Failed(str(error), exit_status(error)) from None
    except OSError as error:
        if error.filename is None and error.errno in _FULL:
            _forget_output()
            raise Failed(f"standard output can't be written: {error.strerror}") from None
        if error.filename is None:
            raise
        text = f"{os.fsdecode(error.filename)}: {error.strerror}; name another file"
        raise Failed(text, REFUSED) from None
    except KeyboardInterrupt:
        raise Failed("interrupted", INTERRUPTED) from None


def _forget_output() -> None:
    """Redirect standard output to /dev/null: Python would flush it again at exit, fail, and
    exit with status 120 (docs.python.org, sys.exit)."""
    with suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


class Command(click.Command):
    """A command whose help shows examples before its options."""

    def __init__(self, *args: Any, examples: Sequence[Example] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; usage errors get the command's context."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and the examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line, text in self.examples:
                    formatter.write(f"  {click.style(line, bold=True)}\n      {text}\n")


class GroupedCommand(Command):
    """A command whose help shows the options of settings by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usual settings, the command's own options, and the groups of settings."""
        shown = {
            str(option.name): record
            for option in self.get_params(ctx)
            if (record := option.get_help_record(ctx)) is not None
        }
        (first, rows), *others = by_group()
        groups = {first: [shown.pop(row.name) for row in rows if row.name in shown]}
        of_groups = {
            title: [shown.pop(row.name) for row in rows if row.name in shown]
            for title, rows in others
        }
        for title, records in {**groups, "Options": [*shown.values()], **of_groups}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl([(flags.rstrip(), text) for flags, text in records])


class OneLineGroup(Command, click.Group):
    """A group whose commands report errors in one line, with an exit status by kind of
    error."""

    command_class = Command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the group's own options."""
        extra.setdefault("color", wants_color())
        extra.setdefault("max_content_width", _WIDTH)
        with one_line_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command of the group."""
        with one_line_errors():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; raise an error with the closest name for an unknown
        one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            like = get_close_matches(name, self.list_commands(ctx), 1)
            hint = f"; did you mean {like[0]!r}?" if like else ""
            ctx.fail(f"no command {name[:80]!r}{hint}")
        return super().resolve_command(ctx, args)


log = logging.getLogger("flask_noderpc.start")

_format = click.option(
    # CometBFT names this flag --log_format.
    "--log-format",
    "--log_format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    envvar="NODERPC_LOG_FORMAT",
    show_envvar=True,
    help="Log lines as text or as JSON objects.",
)
_quiet = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    envvar="NODERPC_QUIET",
    show_envvar=True,
    help="Write only errors: no addresses at the start, and no line for each block.",
)
VARIABLES = ("NODERPC_LOG_FORMAT", "NODERPC_QUIET")
"""Environment variables of these options, which are not settings."""


def log_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with options for its log, which it gets as ``logs``."""

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
