"""What nodes of four versions sent, with the dialect that is to send the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flask_noderpc.wire.comet034 import COMET_034
from flask_noderpc.wire.comet037 import COMET_037
from flask_noderpc.wire.comet038 import COMET_038
from flask_noderpc.wire.comet1 import COMET_1
from flask_noderpc.wire.dialect import Dialect
from tests.canonical import rebuild

NO_ROUTE_HERE = {"consensus_state", "dump_consensus_state"}


@dataclass(frozen=True)
class Golden:
    """The captured replies and events of one version."""

    version: str
    events_file: str
    dialect: Dialect
    replies: int
    """How many of the captured replies are of routes that we have."""
    events: int

    def results(self) -> Iterator[tuple[str, Any]]:
        """Each captured result with its call."""
        groups = rebuild.reply(self.version)
        for call, reply in groups["plain"].items():
            # CometBFT 0.34 has no page at ``header``.
            if "result" in reply["body"]:
                yield call, reply["body"]["result"]
        yield from groups["validator_evidence_multipart"].items()

    def of_routes(self) -> Iterator[tuple[str, str, Any]]:
        """Each captured result of a route that we have: its call, route and JSON."""
        for call, result in self.results():
            route = re.split("[?#]", call)[0]
            if route not in NO_ROUTE_HERE:
                yield call, route, result

    def notifications(self) -> Iterator[Any]:
        """The result of each captured notification."""
        for line in (rebuild.GOLDEN / self.events_file).read_text().splitlines():
            if line.startswith("    {"):
                result = json.loads(line)["result"]
                if result:
                    yield result


ALL = (
    Golden("0.34.35", "ws_events_34.txt", COMET_034, replies=33, events=19),
    Golden("0.37.18", "ws_events_37.txt", COMET_037, replies=38, events=28),
    Golden("0.38.25", "ws_events_38.txt", COMET_038, replies=34, events=20),
    Golden("1.0.1", "ws_events_10.txt", COMET_1, replies=38, events=29),
)
