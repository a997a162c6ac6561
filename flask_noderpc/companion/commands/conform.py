"""``noderpc conform``: probe what a node has and how it behaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ... import jsoncodec
from ...cli.node import main
from .options import addresses_of, upstream_header

if TYPE_CHECKING:
    from ..address import Address
    from ..conform import Finding

_SECONDS = 30.0
# Methods of a websocket's session, and one of Tendermint 0.36 that CometBFT does not have.
_NOT_PROBED = frozenset({"subscribe", "unsubscribe", "unsubscribe_all", "events"})


@main.command(
    "conform",
    examples=[
        ("noderpc conform http://localhost:26657", "Before a companion follows that node."),
        ("noderpc conform http://localhost:26657 --json", "The same, for a program."),
    ],
)
@click.argument("url", metavar="URL")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time of all probes.",
)
@click.option("--upstream-dialect", "dialect", default="", help="Dialect of the node.")
@upstream_header
def conform_node(url: str, as_json: bool, seconds: float, dialect: str, header: str) -> None:
    """Probe what a node has and does.

    This finds its lowest block, results and index, and its limits, and checks whether its
    blocks are proven. Nothing is written to the node. The command fails if a finding is not as
    expected.
    """
    (address,) = addresses_of([url], header)
    findings = _findings(address, seconds, dialect)
    if as_json:
        shown = {each.probe: {"value": each.value, "note": each.note} for each in findings}
        click.echo(jsoncodec.pretty(shown).decode())
    else:
        width = max(len(each.probe) for each in findings)
        for each in findings:
            value = "unknown" if each.value is None else each.value
            note = f"  ({each.note})" if each.note else ""
            click.echo(f"{each.probe:{width}}  {value}{note}")
    if not all(each.is_good for each in findings):
        raise SystemExit(1)


def _findings(address: Address, seconds: float, dialect: str) -> list[Finding]:
    from ...cometbft.routes import COMETBFT_ROUTES
    from ..conform import ProbeTarget, conform
    from ..http import UpstreamLimits
    from ..reader import Reader
    from ..upstream import Upstream

    limits = UpstreamLimits(timeout=seconds / 3, patience=seconds)
    node = Upstream(address, dialect=dialect, limits=limits)
    try:
        omitted = node.dialect.omits_routes | _NOT_PROBED
        methods = [row.name for row in COMETBFT_ROUTES if row.name not in omitted]
        return conform(ProbeTarget(Reader(node), methods, seconds))
    finally:
        node.close()
