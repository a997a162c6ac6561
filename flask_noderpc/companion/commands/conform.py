"""``noderpc conform``: probe which blocks a node has and which requests it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...cli.command import json_text, printable
from ...cli.node import main
from .options import addresses_of, upstream_header

if TYPE_CHECKING:
    from ..address import Address
    from ..conform import Finding

_SECONDS = 30.0
# Methods that only work on a websocket, and Tendermint 0.36's "events", which CometBFT lacks.
_NOT_PROBED = frozenset({"subscribe", "unsubscribe", "unsubscribe_all", "events"})


@main.command(
    "conform",
    examples=[
        (
            "noderpc conform http://localhost:26657",
            "Test a node before a companion follows it.",
        ),
        ("noderpc conform http://localhost:26657 --json", "Print the findings as JSON."),
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
    help="Maximum time of all probes together.",
)
@click.option("--upstream-dialect", "dialect", default="", help="Dialect of the node.")
@upstream_header
def conform_node(url: str, as_json: bool, seconds: float, dialect: str, header: str) -> None:
    """Probe which blocks a node has and which requests it accepts.

    The probes find its lowest block, lowest results and lowest indexed block, and its limits,
    and check whether its blocks are proven. Nothing is changed on the node. The command fails
    if a finding is not as expected.
    """
    (address,) = addresses_of([url], header)
    findings = _findings(address, seconds, dialect)
    if as_json:
        shown = {each.probe: {"value": each.value, "note": each.note} for each in findings}
        click.echo(json_text(shown))
    else:
        width = max(len(each.probe) for each in findings)
        for each in findings:
            value = "unknown" if each.value is None else each.value
            note = f"  ({each.note})" if each.note else ""
            click.echo(printable(f"{each.probe:{width}}  {value}{note}"))
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
