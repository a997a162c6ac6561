"""``noderpc status``: show the state of a running node."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ...cli.command import Failed, json_text, printable
from ...cli.node import main
from ...domain.time import to_text
from ...errors import UpstreamError
from .options import addresses_of, upstream_header

if TYPE_CHECKING:
    from ..node_state import NodeState, Readiness

_URL = "http://127.0.0.1:26657"
_MAX_SHOWN = 200
_MISSING = "noderpc_missing_heights"


@main.command(
    "status",
    examples=[
        ("noderpc status", f"The node at {_URL}."),
        ("noderpc status http://node:26657", "Another node, of this package or not."),
        ("noderpc status unix:///run/noderpc/node.sock", "A node at a Unix socket."),
        ("noderpc status --json", "All values as JSON."),
    ],
)
@click.argument("url", metavar="[URL]", default=_URL)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@upstream_header
def show_status(url: str, as_json: bool, header: str) -> None:
    """Show the height, peers and health of a running node.

    URL is the address of a node's RPC, of this package or another one, or unix:///path of the
    Unix socket at which a node listens. A node of this package also shows the progress of its
    companion, and its store.
    """
    from ..node_state import node_at, read_state

    (address,) = addresses_of([url], header, allow_sockets=True)
    node = node_at(address)
    try:
        state = read_state(node)
    except UpstreamError as error:
        reason = str(error).removeprefix(f"upstream {node.name}: ")
        raise Failed(
            f"{node.name}: {reason}; start the node, or pass the URL of a running node's RPC"
        ) from None
    finally:
        node.close()
    if as_json:
        click.echo(json_text(_document(node.name, state)))
        return
    for label, value in _lines(state):
        shown = printable(str(value))
        shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
        click.echo(f"{label:15} {shown}")


def _document(url: str, state: NodeState) -> dict[str, Any]:
    sync, info = state.status.sync_info, state.status.node_info
    return {
        "url": url,
        "chain_id": info.network,
        "moniker": info.moniker,
        "version": info.version,
        "height": sync.latest_block_height,
        "block_time": None if state.age_s is None else to_text(sync.latest_block_time),
        "block_age_seconds": state.age_s,
        "lowest_block": sync.earliest_block_height,
        "catching_up": sync.catching_up,
        "peers": state.peers,
        "readiness": state.readiness,
    }


def _lines(state: NodeState) -> Iterator[tuple[str, object]]:
    """Yield labels with their values."""
    sync, info = state.status.sync_info, state.status.node_info
    yield "chain", info.network
    yield "node", f"{info.moniker}, version {info.version}"
    yield "height", sync.latest_block_height
    yield "latest block", "none yet" if state.age_s is None else _age(state.age_s)
    yield "lowest block", sync.earliest_block_height
    yield "syncing", "yes" if sync.catching_up else "no"
    yield "peers", "unknown" if state.peers is None else state.peers
    if state.readiness is not None:
        yield from _readiness_lines(state.readiness, sync.latest_block_height)


def _readiness_lines(found: Readiness, height: int) -> Iterator[tuple[str, object]]:
    yield "state", found.reason or found.state
    for label, texts in (("missing", found.missing), ("note", found.notes)):
        for text in texts[:10]:
            yield label, text
    states = [each for each in found.values("noderpc_upstreams") if each.value]
    if states:
        counts = (f"{each.value:.0f} {each.labels.get('state')}" for each in states)
        yield "upstreams", ", ".join(counts)
    for each in found.values("noderpc_upstream_height"):
        yield "upstream height", f"{each.value:.0f} ({each.value - height:.0f} ahead)"
    if missing := found.values(_MISSING):
        counts = (f"{each.labels.get('of')} {each.value:.0f}" for each in missing)
        yield "missing heights", ", ".join(counts)
    if found.store is not None:
        # A hostile node may return a number that no float can have.
        megabytes, rest = divmod(found.store.bytes // 100_000, 10)
        yield "store", f"{megabytes:,}.{rest} MB"
        lease = found.store.lease
        yield (
            "lease",
            f"process {lease.holder}, {_lease_end(lease.seconds_left)}" if lease else "free",
        )


def _lease_end(seconds: float) -> str:
    return f"for {seconds:g} s" if seconds > 0 else f"expired {-seconds:g} s ago"


def _age(seconds: float) -> str:
    if seconds < 0:
        return f"{_duration(-seconds)} in the future"
    return f"{_duration(seconds)} old"


def _duration(seconds: float) -> str:
    """Return seconds as text: in tenths below a minute, and otherwise as days and h:mm:ss."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return str(timedelta(seconds=int(seconds)))
