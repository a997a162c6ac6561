"""Command ``noderpc genesis add-account``, which adds an account to a home's genesis
document."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..backends import stored_identity
from ..backends.base.location import location_of
from ..cli.command import Failed
from ..cli.genesis import described, genesis_group
from ..errors import ConfigurationError
from ..server.flags import database_of, default_home
from ..server.output import REFUSED
from .settings import CosmosSettings

_PREFIX = "NODERPC_BANK_PREFIX"


@genesis_group.command(
    "add-account",
    examples=[
        (
            "noderpc genesis add-account cosmos15yk64u7zc9g9k2yr2wmzeva5qgwxps6yxj00e7"
            " 1000stake,5atom --home chain",
            "After `noderpc init --home chain`.",
        ),
    ],
)
@click.argument("address")
@click.argument("coins")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_home,
    help="Folder of the node.  [default: ~/.noderpc]",
)
@click.option(
    "--append", is_flag=True, help="Add the coins to the account if the document has it."
)
@click.option(
    "--bank-prefix",
    envvar=[_PREFIX, f"FLASK_{_PREFIX}"],
    default=CosmosSettings().bank_prefix,
    show_default=True,
    help="Prefix of addresses; a document with addresses has its own.",
)
def add_account(address: str, coins: str, home: Path, append: bool, bank_prefix: str) -> None:
    """Add an account with coins to the genesis document of a chain of the application bank.

    ADDRESS is in bech32, COINS are amounts with denominations, such as 1000stake,5atom. The
    coins are added to the supply. The chain must not have begun.
    """
    from .. import jsoncodec
    from ..chain.home import genesis_path, replace_genesis
    from ..protocol.comet.genesis import read
    from .bank.genesis_accounts import with_account

    _refuse_begun_chain(home)
    path = genesis_path(home)
    try:
        document = jsoncodec.decode(path.read_bytes(), dict[str, jsoncodec.Raw])
        state = jsoncodec.decode(document.get("app_state") or b"null")
    except FileNotFoundError:
        raise Failed(
            f"{path}: expected a genesis document, but the file does not exist; run"
            f" `noderpc init --home {home}` before",
            REFUSED,
        ) from None
    except jsoncodec.NotJSON as error:
        raise Failed(f"{path}: expected a genesis document in JSON: {error}", REFUSED) from None
    added = with_account(state, address, coins, prefix=bank_prefix, may_exist=append)
    content = jsoncodec.pretty({**document, "app_state": added})
    reading = read(content, time.time_ns())
    try:
        described("bank", reading.genesis)
    except ConfigurationError as error:
        raise Failed(f"{path}: {error}", REFUSED) from None
    replace_genesis(home, content)
    click.echo(f"{address} has {coins} more in {path}")


def _refuse_begun_chain(home: Path) -> None:
    path = database_of(home)
    if begun := stored_identity(path):
        raise Failed(
            f"{location_of(path).display_name}: the chain {begun.chain_id} has begun, and a"
            " change of its genesis document would have no effect; begin another chain with"
            " `noderpc init --home NEW`, and add accounts before its first `noderpc start`",
            REFUSED,
        )
