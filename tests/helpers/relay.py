"""A TCP relay that delays what it passes on."""

from __future__ import annotations

import asyncio
import threading
from asyncio import Queue, StreamReader, StreamWriter
from collections.abc import Coroutine
from typing import Any

from .ports import free_port


class SlowRelay:
    """Listens on a port, and forwards everything after a delay, in both directions."""

    def __init__(self, target_port: int, delay_s: float) -> None:
        self.port, self._target, self._delay_s = free_port(), target_port, delay_s
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        listening = asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()

    async def _accept(self, near: StreamReader, near_writer: StreamWriter) -> None:
        far, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for reader, writer in ((near, far_writer), (far, near_writer)):
            passed: Queue[tuple[float, bytes]] = Queue()
            self._spawn(self._read(reader, passed))
            self._spawn(self._write(passed, writer))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, reader: StreamReader, passed: Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = await reader.read(65536)
            except OSError:
                data = b""
            passed.put_nowait((self._loop.time() + self._delay_s, data))

    async def _write(self, passed: Queue[tuple[float, bytes]], writer: StreamWriter) -> None:
        data = b"-"
        try:
            while data:
                due, data = await passed.get()
                await asyncio.sleep(due - self._loop.time())
                writer.write(data)
        finally:
            writer.close()

    def close(self) -> None:
        """Close all connections."""
        asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
