"""Throughput during EVM calls that never end: ``python -m benchmarks.endless``.

wrk requests ``/status`` of an EVM chain, alternately alone and beside four clients that make
one endless ``eth_call`` after the other. The server is on the first core with all its
executors, the load on the second. Prints requests a second and the 99th percentile.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .evm import chain, reply
from .process import Server
from .wrk import Ask, Run, load

ROUNDS, SECONDS, CLIENTS = 3, 8, 4
# JUMPDEST PUSH0 JUMP
LOOP = "0x5b5f56"
# Errors of calls that used up their gas, their time, or their time in the queue.
ENDS = {
    "out of gas",
    "execution aborted (timeout = 5s) (to allow more seconds, raise NODERPC_EVM_TIMEOUT)",
    "too many calls are being executed (NODERPC_EVM_EXECUTORS is 2)",
}
CALL = {"to": "0x" + "33" * 20, "gas": "0x1000000000"}

CODE = {CALL["to"]: {"code": LOOP}}


@contextmanager
def endless_calls(server: Server) -> Iterator[list[str]]:
    """Run clients that make endless calls; yield the errors that they got."""
    over, answers = threading.Event(), list[str]()

    def ask() -> None:
        while not over.is_set():
            said = reply(server, "eth_call", CALL, "latest", {CALL["to"]: {"code": LOOP}})
            answers.append(said["error"]["message"])

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    yield answers
    over.set()
    for thread in threads:
        thread.join()


def main() -> None:
    """Measure both alternately, and print the results."""
    alone, beside = list[Run](), list[Run]()
    os.sched_setaffinity(0, {1})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(chain("Flask", folder))
        stack.enter_context(server.awake())
        reply(server, "eth_call", CALL, "latest")
        base, status = server.url.removesuffix("/evm"), Ask(("/status",))
        for _ in range(ROUNDS):
            alone.append(load(base, status, SECONDS))
            with endless_calls(server) as answers:
                beside.append(load(base, status, SECONDS))
            assert answers
            assert set(answers) <= ENDS, answers
    for name, found in (("alone", alone), ("beside endless calls", beside)):
        worst = max(run.p99_ms for run in found)
        print(f"{name}: {_median(found):.0f}/s, p99 {worst:.1f} ms at most")
    print(f"beside endless calls: {_median(beside) / _median(alone):.2f} of the throughput")


def _median(runs: list[Run]) -> float:
    return statistics.median(run.per_second for run in runs)


if __name__ == "__main__":
    main()
