"""Many connections that send the next request after each response, in one thread."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Thread
from urllib.parse import urlsplit

_AGAIN_S = 0.05


@dataclass(slots=True)
class Tally:
    """Results of all readers together."""

    seconds: list[float] = field(default_factory=list)
    """Seconds that each response took."""
    bad: list[str] = field(default_factory=list)
    """Responses that were errors."""
    cut: int = 0
    """Calls that were in flight when their connection was lost."""
    refused: int = 0
    """Connections that were refused."""

    def percentile(self, share: float) -> float:
        """Return the seconds within which the given share of the calls ended."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Readers(Thread):
    """Connections that request one path after another until they are stopped."""

    def __init__(self, url: str, paths: Sequence[str], connections: int) -> None:
        super().__init__(daemon=True)
        parts = urlsplit(url)
        self._at = parts.hostname or "", parts.port or 80
        self._requests = [
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths
        ]
        self._connections = connections
        self._stopping = False
        self.open = 0
        """Number of open connections."""
        self.tally = Tally()

    def run(self) -> None:
        asyncio.run(self._all())

    def stop(self) -> None:
        """Wait for the responses in flight, and end."""
        self._stopping = True
        self.join()

    async def _all(self) -> None:
        await asyncio.gather(*(self._one(start) for start in range(self._connections)))

    async def _one(self, start: int) -> None:
        turns = count(start)
        while not self._stopping:
            try:
                reader, writer = await asyncio.open_connection(*self._at)
            except OSError:
                self.tally.refused += 1
                await asyncio.sleep(_AGAIN_S)
                continue
            self.open += 1
            try:
                while not self._stopping:
                    await self._ask(reader, writer, next(turns))
            except (OSError, asyncio.IncompleteReadError):
                self.tally.cut += 1
            finally:
                self.open -= 1
                writer.close()

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, turn: int
    ) -> None:
        began = time.perf_counter()
        writer.write(self._requests[turn % len(self._requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        self.tally.seconds.append(time.perf_counter() - began)
        if not head.startswith(b"HTTP/1.1 200 ") or "result" not in json.loads(body):
            self.tally.bad.append((head + body).decode())
