"""Responses of nodes of four versions, with the dialect that must send the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flask_noderpc.wire.comet.v037 import COMET_034, COMET_037
from flask_noderpc.wire.comet.v038 import COMET_038
from flask_noderpc.wire.comet.v1 import COMET_1
from flask_noderpc.wire.dialect import Dialect
from tests.comet import rebuild


@dataclass(frozen=True)
class Golden:
    """The captured replies and events of one version."""

    version: str
    events_file: str
    dialect: Dialect
    replies: int
    events: int

    def results(self) -> Iterator[tuple[str, Any]]:
        """Yield each captured result with its call."""
        groups = rebuild.reply(self.version)
        for call, reply in groups["plain"].items():
            # CometBFT 0.34 has no page at ``header``.
            if "result" in reply["body"]:
                yield call, reply["body"]["result"]
        yield from groups["validator_evidence_multipart"].items()

    def of_routes(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the call, route and JSON of each captured result."""
        for call, result in self.results():
            route = re.split("[?#]", call)[0]
            if route == "dump_consensus_state":
                # A backend can't know the state of other nodes.
                result["peers"] = []
            yield call, route, result

    def notifications(self) -> Iterator[Any]:
        """Yield the result of each captured notification."""
        for line in (rebuild.GOLDEN / self.events_file).read_text().splitlines():
            if line.startswith("    {"):
                result = json.loads(line)["result"]
                if result:
                    yield result


ALL = (
    Golden("0.34.35", "ws_events_34.txt", COMET_034, replies=35, events=19),
    Golden("0.37.18", "ws_events_37.txt", COMET_037, replies=40, events=28),
    Golden("0.38.25", "ws_events_38.txt", COMET_038, replies=36, events=20),
    Golden("1.0.1", "ws_events_10.txt", COMET_1, replies=40, events=29),
)
