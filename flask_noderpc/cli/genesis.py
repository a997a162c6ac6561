"""Group ``noderpc genesis``, and its command ``check``, which shows how a node reads a genesis
document."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from ..errors import ConfigurationError
from ..feature import application_kinds, application_names
from ..server.output import FAILED
from ..settings import Settings, read_settings
from .command import Failed, OneLineGroup, printable
from .node import main

if TYPE_CHECKING:
    from ..domain.genesis import Genesis, GenesisValidator
    from ..protocol.comet.genesis import ParsedGenesis

# Maximum bytes of a document; parsing it needs several times as much memory.
_MAX_BYTES = 1 << 30
_SHOWN = 20
# Maximum characters of a printed line, as names in the document may have any length.
_MAX_LINE = 20_000
_VERSIONS = ("0.34", "0.37", "0.38", "0.39", "0.40", "1.0")
DIALECT_NAMES = ("document", *(f"comet-{name}" for name in _VERSIONS))


@main.group(
    "genesis",
    cls=OneLineGroup,
    examples=[
        ("noderpc genesis check genesis.json", "What a node would start with."),
    ],
)
def genesis_group() -> None:
    """Check and edit genesis documents."""


@genesis_group.command(
    "check",
    examples=[
        ("noderpc genesis check genesis.json", "The version is detected."),
        (
            "noderpc genesis check genesis.json --application bank --dialect comet-0.38",
            "Read it as `noderpc start` does with these flags.",
        ),
        ("noderpc genesis check -", "Read from standard input."),
    ],
)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--application",
    type=click.Choice(application_names()),
    default=None,
    help="Application that reads app_state.  [default: detected by its members]",
)
@click.option(
    "--dialect",
    type=click.Choice(DIALECT_NAMES),
    default="document",
    show_default=True,
    help="Version of CometBFT; with document it is detected by the members of FILE.",
)
def check(file: str, application: str | None, dialect: str) -> None:
    """Show how a node reads a genesis document, and what it refuses.

    FILE is the document of a chain of CometBFT or of the Cosmos SDK; - is standard input. The
    exit status is 0 if a node would start with it, and 1 if not.
    """
    from ..protocol.comet.genesis import read

    reading = read(_content(file), time.time_ns(), dialect)
    name = application or _application_of(reading.genesis.app_state)
    state: Mapping[str, str] = {}
    complaint = ""
    try:
        state = described(name, reading.genesis)
    except ConfigurationError as error:
        complaint = str(error)
    if reading.is_object:
        for line in (*_lines(reading), f"application       {name}", *_named(state)):
            click.echo(printable(line[:_MAX_LINE]).rstrip())
    if problems := [*_problems(reading, state, complaint)]:
        click.echo("refused:")
        for problem in problems:
            click.echo(printable(f"  {problem}"))
        sys.exit(FAILED)


def _problems(reading: ParsedGenesis, state: Iterable[str], complaint: str) -> Iterator[str]:
    """Yield the problems of the document, and the application's ``complaint``; ``state`` are
    the names of the values that the application described."""
    yield from reading.problems
    if complaint:
        yield complaint
    is_known = any("validators" in each for each in (*reading.problems, *state, complaint))
    if reading.is_object and not reading.genesis.validators and not is_known:
        yield "validators: expected at least one, as the chain could not produce blocks"


def _content(file: str) -> bytes:
    try:
        with click.open_file(file, "rb") as opened:
            content: bytes = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise Failed(
            f"{file}: {error.strerror}; name the file of a genesis document, or - for standard"
            " input"
        ) from None
    if len(content) > _MAX_BYTES:
        raise Failed(f"{file}: expected at most {_MAX_BYTES} bytes, got a larger file")
    return content


def _application_of(app_state: bytes) -> str:
    """Return the application that has the members of a state, or the default one."""
    from .. import jsoncodec

    try:
        members = jsoncodec.decode(app_state or b"{}", dict[str, jsoncodec.Raw])
    except jsoncodec.NotJSON:
        members = {}
    kinds = application_kinds().items()
    found = (name for name, kind in kinds if kind.genesis_members & members.keys())
    return next(found, Settings().application)


def described(application: str, genesis: Genesis) -> Mapping[str, str]:
    """Return the description of a document's state by an application; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if the application refuses it."""
    from ..chain.from_settings import chain_from_settings

    settings = read_settings({}, {"application": application})
    with TemporaryDirectory(prefix="noderpc-genesis-") as folder:
        # The chain is not started, so nothing is stored.
        chain = chain_from_settings(settings, Path(folder))
        try:
            assert chain.store.abci is not None
            return chain.store.abci.describe_genesis(genesis)
        finally:
            chain.close()


def _lines(reading: ParsedGenesis) -> Iterator[str]:
    from ..domain.time import to_text

    genesis, absent = reading.genesis, set(reading.findings.absent)
    form = reading.form if reading.form != "CometBFT" else f"CometBFT {reading.version.name}"
    yield f"chain             {genesis.chain_id}"
    yield f"form              {form}"
    yield f"initial height    {genesis.initial_height}"
    now = " (absent: the time of the first start)" if "genesis_time" in absent else ""
    yield f"genesis time      {to_text(genesis.genesis_time)}{now}"
    yield f"app hash          {genesis.app_hash.hex().upper() or 'none'}"
    yield "parameters"
    yield from _params(reading, absent)
    yield from _validators(genesis.validators)
    if ignored := reading.findings.ignored:
        more = len(ignored) - _SHOWN
        shown = ", ".join(name[:80] for name in ignored[:_SHOWN])
        yield f"ignored members   {shown}{f' and {more} more' if more > 0 else ''}"


def _params(reading: ParsedGenesis, absent: set[str]) -> Iterator[str]:
    path = "consensus_params" if reading.form == "CometBFT" else "consensus.params"
    written = reading.version.params.write(reading.genesis.consensus_params)
    names = [(group, name) for group, members in written.items() for name in members]
    width = max(len(f"{group}.{name}") for group, name in names)
    for group, name in names:
        value = written[group][name]
        shown = ", ".join(value) if isinstance(value, list) else value
        mark = ""
        if path in absent:
            mark = f"  (default of CometBFT {reading.version.name})"
        elif f"{path}.{group}.{name}" in absent:
            mark = "  (absent)"
        yield f"  {f'{group}.{name}':{width}}  {shown or repr('')}{mark}"


def _validators(validators: Sequence[GenesisValidator]) -> Iterator[str]:
    total = sum(each.power for each in validators)
    yield f"validators        {len(validators)}, with a power of {total}"
    for each in validators[:_SHOWN]:
        yield f"  {each.address.hex().upper()}  {each.power}  {each.pub_key.type}  {each.name}"
    if (more := len(validators) - _SHOWN) > 0:
        yield f"  and {more} more"


def _named(state: Mapping[str, str]) -> Iterator[str]:
    for name, text in state.items():
        yield f"  {name:14}  {text}"
