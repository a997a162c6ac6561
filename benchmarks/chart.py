"""Chart of requests a second for each workload in both ways, as ratios to a peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .compare import Row
from .peers.ours import WAYS

_COLOURS = {"Flask": "#4878a8", "noderpc start": "#e08a3c"}
_PEERS = ("CometBFT", "anvil")


def save(path: Path, rows: Sequence[Row]) -> None:
    """Draw the chart if matplotlib is installed and there are rows."""
    panels = {
        peer: found for peer in _PEERS if (found := [row for row in rows if peer in row.ratios])
    }
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    if not panels:
        return
    heights = [len({row.workload for row in found}) for found in panels.values()]
    figure = Figure(figsize=(9, 1.2 + 0.42 * sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axis, (peer, found) in zip(axes, panels.items(), strict=True):
        _draw(axis, peer, found)
    figure.savefig(path, dpi=90)


def _draw(axis: Any, peer: str, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(row.workload for row in rows))
    for offset, way in zip((-0.2, 0.2), WAYS, strict=True):
        own = [row for row in rows if row.way == way]
        places = [names.index(row.workload) + offset for row in own]
        ratios = [row.ratios[peer] for row in own]
        bars = axis.barh(places, ratios, height=0.38, color=_COLOURS[way], label=way)
        axis.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios], padding=3, fontsize=7)
    axis.set_xscale("log")
    axis.axvline(1, color="black", linewidth=1)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlabel(f"requests a second, divided by those of {peer}")
    axis.legend(loc="lower right")
