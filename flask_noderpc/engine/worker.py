"""Main loop of an executor process: run one job after another until the parent is gone."""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import socket
import threading

from .base import EvmEngine, Job
from .process import receive, send

# A thousand calls inside one another, each of a dozen Python frames.
_STACK_BYTES = 512 << 20


def serve(engine: EvmEngine, descriptor: int) -> None:
    """Answer what comes over a socket; ends the process with the other side."""
    # A terminal's Ctrl-C is for the parent, which ends us in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _freeze_loaded()
    jobs: queue.SimpleQueue[Job[object]] = queue.SimpleQueue()
    with socket.socket(fileno=descriptor) as parent:
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=_work, args=(engine, jobs, parent), daemon=True).start()
        try:
            # Its job waits for this.
            send(parent, None)
            while True:
                jobs.put(receive(parent, lambda: None))
        except (EOFError, OSError):
            # Also in the middle of a job: nobody waits for it any more.
            os._exit(0)


def _freeze_loaded() -> None:
    """Leave what is loaded out of garbage collection.

    py-evm's states are cycles. CPython's gc: a full collection waits until a quarter as many
    objects are pending as the last one found alive: 80,000, all of them of modules.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


def _work(
    engine: EvmEngine, jobs: queue.SimpleQueue[Job[object]], parent: socket.socket
) -> None:
    while True:
        job = jobs.get()
        try:
            answer = True, job(engine)
        except Exception as error:
            answer = False, _sendable(error)
        try:
            send(parent, answer)
        except OSError:
            os._exit(0)
        except Exception as error:
            send(parent, (False, RuntimeError(f"the answer can't be sent: {error!r}")))


def _sendable(error: Exception) -> Exception:
    """The error, or one with its text where it can be pickled and not read again: the parent
    would take this process for broken."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"the error can't be sent: {error!r}")
    return error
