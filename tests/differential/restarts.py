"""Run subscribers of a companion while its node is killed and started again.

``python -m tests.differential.restarts VERSION=BINARY``: none of 50 may miss an event or get
one twice in 20 restarts.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from ..helpers.until import until
from ..helpers.websocket import WebSocketClient
from .companion import beside
from .net import Net, real_net
from .sides import VERSIONS, Version


class Subscriber:
    """One websocket, and the events that it received."""

    def __init__(self, url: str, event: str) -> None:
        self.client = WebSocketClient(url, timeout=3600)
        self.event = event
        self.told: list[Any] = []
        self.client.call("subscribe", {"query": f"tm.event='{event}'"})
        assert "result" in self.client.json()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        try:
            while text := self.client.read():
                found = json.loads(text)
                self.told.append(_told(found["result"]) if "result" in found else text)
        except OSError:
            return

    def close(self) -> None:
        """Close the websocket."""
        self.client.close()


def _told(result: Any) -> Any:
    value = result["data"]["value"]
    if "block" in value:
        return int(value["block"]["header"]["height"])
    return base64.b64decode(value["TxResult"]["tx"])


def compare(
    version: Version, binary: Path, scratch: Path, subscribers: int = 50, restarts: int = 20
) -> int:
    """Restart a node; return how many subscribers missed an event or received one twice."""
    with (
        real_net(binary, version, scratch / "net", count=1) as net,
        beside(net.side, version, scratch / "beside") as companion,
        ExitStack() as stack,
    ):
        first = net.settle()
        until(lambda: companion.height() >= first, f"block {first}")
        all_of_them = [
            stack.enter_context(
                closing(Subscriber(companion.url, "NewBlock" if number % 2 else "Tx"))
            )
            for number in range(subscribers)
        ]
        for number in range(restarts):
            _restart(net, number)
        last = net.send(b"the=end")
        expected = {
            "NewBlock": [*range(first + 1, last + 1)],
            "Tx": [*_txs(net, first + 1, last)],
        }
        lacking = [*all_of_them]

        def are_complete() -> bool:
            lacking[:] = [one for one in lacking if len(one.told) < len(expected[one.event])]
            return not lacking

        until(are_complete, f"all events up to {last}")
        wrong = [one for one in all_of_them if one.told != expected[one.event]]
    for one in wrong:
        print(one.event, one.told, "instead of", expected[one.event])
    print(
        f"{version.name}: {subscribers} subscribers, {restarts} restarts,"
        f" {last - first} blocks, {len(expected['Tx'])} transactions;"
        f" {len(wrong)} subscribers missed events or got some twice"
    )
    return len(wrong)


def _restart(net: Net, number: int) -> None:
    """Kill the node as soon as it has made a block, while its companion reads the block."""
    net.send(b"restart=%d" % number)
    height = net.side.height()
    for tx in (b"midst%d=%d" % (each, number) for each in range(3)):
        net.side.call("broadcast_tx_sync", tx=base64.b64encode(tx).decode())
    until(lambda: net.side.height() > height, f"block {height + 1}")
    net.nodes[0].stop()
    net.nodes[0].start()


def _txs(net: Net, low: int, high: int) -> list[bytes]:
    found: list[bytes] = []
    for height in range(low, high + 1):
        block = net.side.call("block", height=str(height))["block"]
        found += map(base64.b64decode, block["data"]["txs"] or ())
    return found


def main() -> None:
    """Compare, print, and fail if a subscriber missed an event or received one twice."""
    name, _, binary = sys.argv[1].partition("=")
    with tempfile.TemporaryDirectory() as scratch:
        raise SystemExit(min(compare(VERSIONS[name], Path(binary), Path(scratch)), 1))


if __name__ == "__main__":
    main()
