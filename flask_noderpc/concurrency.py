"""Threads that work the same under plain threads and under gevent.

The one module that knows gevent. It is never imported from here: when the host
has patched the standard library, gevent is loaded already.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def is_patched() -> bool:
    """Whether gevent has replaced the blocking parts of the standard library."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def native_lock() -> AbstractContextManager[bool]:
    """A lock between real threads, for short moments: under gevent it stops the hub."""
    if is_patched():
        from gevent.monkey import get_original

        lock: AbstractContextManager[bool] = get_original("_thread", "allocate_lock")()
        return lock
    return threading.Lock()


class _Promise(Protocol[T_co]):
    def get(self) -> T_co: ...


class _Runner(Protocol):
    def spawn(self, job: Callable[[], T]) -> _Promise[T]: ...

    def kill(self) -> None: ...


class NativeThread:
    """One real thread that runs functions for others, one after another.

    The caller waits for its result; under gevent only its greenlet waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._runner: _Runner | None = None

    def run(self, job: Callable[[], T]) -> T:
        """The job's result; what it raises is raised here."""
        with self._lock:
            if self._runner is None:
                self._runner = _gevent_runner() if is_patched() else _ThreadRunner(self._name)
            # Handed over before another can stop the runner: a job that comes after the
            # end would be waited for in vain.
            promise = self._runner.spawn(job)
        return promise.get()

    def stop(self) -> None:
        """Let the thread end when its jobs are done."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.kill()


def _gevent_runner() -> _Runner:
    from gevent.threadpool import ThreadPool

    runner: _Runner = ThreadPool(1)
    return runner


class _Result(Generic[T]):
    """A future, asked as gevent's results are."""

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def get(self) -> T:
        return self._future.result()


class _ThreadRunner:
    """A daemon thread with a queue.

    ThreadPoolExecutor would do, but it refuses work at interpreter exit, when a producer
    still has its lease to give back.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def spawn(self, job: Callable[[], T]) -> _Promise[T]:
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return _Result(future)

    def kill(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            try:
                future.set_result(job())
            except BaseException as error:
                future.set_exception(error)
            # An idle thread must not keep the last result alive.
            del item, job, future
