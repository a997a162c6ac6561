"""Explorer page with charts of recent blocks: transactions, block time, gas and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from flask import g, render_template

from ..domain.block import BlockMeta
from ..domain.time import SECOND
from ..errors import HeightNotAvailable, NotFound
from .chain import integer
from .node import Node

WINDOW, MAX_WINDOW = 60, 200
"""Default and maximum number of blocks on a page."""
_MAX_TXS = 5_000
"""Maximum number of transactions whose results are read for the gas chart."""
WIDTH, HEIGHT = 600, 120
"""Size of a chart in drawing units, which are scaled to the page."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A block's bar in a chart: position and size in drawing units."""

    height: int
    """Height of the block."""
    value: float
    x: float
    y: float
    width: float
    length: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with one bar per block, by height."""

    title: str
    unit: str
    bars: tuple[Bar, ...]

    @property
    def top(self) -> float:
        """Highest value of the bars."""
        return max((bar.value for bar in self.bars), default=0)

    @property
    def mean(self) -> float:
        """Mean value of the bars."""
        return sum(bar.value for bar in self.bars) / max(1, len(self.bars))


def chart(title: str, unit: str, values: Sequence[tuple[int, float]]) -> Chart:
    """Return a chart of pairs of a height and a value."""
    top = max((value for _, value in values), default=0) or 1
    step = WIDTH / max(1, len(values))
    bars = (
        Bar(
            height,
            value,
            round(index * step, 2),
            round(HEIGHT - HEIGHT * value / top, 2),
            round(step * 0.8, 2),
            round(HEIGHT * value / top, 2),
        )
        for index, (height, value) in enumerate(values)
    )
    return Chart(title, unit, tuple(bars))


def charts() -> str:
    """Page with charts of the blocks up to a height."""
    node: Node = g.node
    latest = node.latest()
    high = min(integer("to", latest), latest)
    count = min(max(2, integer("count", WINDOW)), MAX_WINDOW)
    lowest = node.lowest()
    if latest and high < lowest:
        raise HeightNotAvailable(high, lowest, latest)
    # Read one block more, as the first block time needs the previous block.
    metas = node.metas(high, count + 1)[::-1]
    shown = metas[1:] if len(metas) > count else metas
    return render_template(
        "noderpc_explorer/charts.html",
        charts=[
            chart("Transactions", "", [(m.header.height, m.tx_count) for m in shown]),
            chart("Block time", "s", list(_seconds(metas))),
            chart("Gas used", "", list(_gas(node, shown))),
            chart("Block size", "bytes", [(m.header.height, m.size) for m in shown]),
        ],
        low=shown[0].header.height if shown else 0,
        high=high,
        count=count,
        is_newest=high == latest,
        newer=min(high + count, latest) if high < latest else None,
        older=shown[0].header.height - 1 if shown and shown[0].header.height > lowest else None,
    )


def _seconds(metas: Sequence[BlockMeta]) -> Iterable[tuple[int, float]]:
    for before, after in pairwise(metas):
        seconds = (after.header.time - before.header.time) / SECOND
        yield after.header.height, max(0.0, seconds)


def _gas(node: Node, metas: Sequence[BlockMeta]) -> list[tuple[int, float]]:
    """Return height and gas of the newest blocks that have at most 5000 transactions
    together."""
    found: list[tuple[int, float]] = []
    left = _MAX_TXS
    for meta in reversed(metas):
        left -= meta.tx_count
        if left < 0:
            break
        try:
            results = node.call("block_results", height=meta.header.height).tx_results
        except NotFound:
            # Skip a block whose results are not stored.
            continue
        gas = sum(max(0, each.gas_used) for each in results)
        found.append((meta.header.height, gas))
    return found[::-1]


VIEWS: dict[str, tuple[Callable[..., Any], str]] = {"/charts": (charts, "blockchain")}
