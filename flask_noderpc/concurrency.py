"""Native threads, locks and yields that work the same with and without gevent.

Only this module and ``server`` depend on gevent. This module never imports gevent by itself:
an app that has patched the standard library has already imported it.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from gevent.threadpool import ThreadPool

T = TypeVar("T")


def is_patched() -> bool:
    """Return true if gevent has replaced the blocking parts of the standard library."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


_PATCHED_FIRST = is_patched()


def is_patched_late() -> bool:
    """Return true if gevent patched the standard library after this import: locks created
    before block its hub."""
    return is_patched() and not _PATCHED_FIRST


# libev's EV_READ.
_READ = 1

# Priority with which gevent.idle() returns in the next iteration of libev's loop, which calls
# each due watcher once.
_IN_EACH_ITERATION = 2


# Quota of the container's processor time: microseconds, or "max", in each period.
_QUOTA_FILE = "/sys/fs/cgroup/cpu.max"


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1: at most its CPU
    affinity, and its container's quota rounded up."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        # macOS does not have this function.
        cores = os.cpu_count() or 1
    try:
        with open(_QUOTA_FILE, encoding="ascii") as file:
            quota, period = map(int, file.read().split())
    except (OSError, ValueError):
        return cores
    return min(cores, max(1, -(-quota // period)))


def next_turn() -> None:
    """Let other threads or greenlets run, including those whose socket is ready.

    gevent's ``sleep(0)`` may return up to fifty times before sockets are polled.
    """
    if is_patched():
        from gevent import idle

        idle(_IN_EACH_ITERATION)
    else:
        time.sleep(0)


# Number of items after which others run; 200 of the slowest (overridden accounts) take 15 ms.
_IN_A_TURN = 200


def in_turns(items: Iterable[T]) -> Iterator[T]:
    """Yield items of a slow iteration, and let other requests run after every 200 of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _IN_A_TURN == 0:
            next_turn()


def has_input(sock: socket.socket) -> bool:
    """Return true if reading from a socket would not block."""
    # Only TLS sockets have this method: bytes that are decrypted, but not read yet.
    pending = getattr(sock, "pending", None)
    if pending is not None and pending():
        return True
    poll = select.poll
    if is_patched():
        from gevent.monkey import get_original

        # Use the original poll, because gevent's runs the hub even with a timeout of 0.
        poll = get_original("select", "poll")
    poller = poll()
    try:
        poller.register(sock, select.POLLIN)
    except ValueError:
        # The socket was closed meanwhile: the next read raises the error.
        return True
    return bool(poller.poll(0))


def wait_until_readable(descriptor: int, seconds: float) -> bool:
    """Wait until a socket has input; under gevent, other greenlets run meanwhile.

    Return false if it has no input after ``seconds``.
    """
    if not is_patched():
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(1000 * seconds))
    from gevent.hub import get_hub
    from gevent.timeout import Timeout

    hub = get_hub()
    # Use a watcher directly, because gevent's select and poll create many objects.
    watcher = hub.loop.io(descriptor, _READ)
    is_readable = False
    try:
        # The argument False makes the timeout end the block without an error.
        with Timeout(seconds, False):
            hub.wait(watcher)
            is_readable = True
    finally:
        watcher.close()
    return is_readable


def native_lock() -> threading.Lock:
    """Return a lock for native threads; hold it briefly, as waiting for it blocks gevent's
    hub."""
    if is_patched():
        from gevent.monkey import get_original

        lock: threading.Lock = get_original("_thread", "allocate_lock")()
        return lock
    return threading.Lock()


def in_thread(function: Callable[[], T]) -> T:
    """Call a function and return its result; under gevent in a native thread, so that the hub
    continues."""
    if not is_patched():
        return function()
    from gevent.hub import get_hub

    result: T = get_hub().threadpool.apply(function)
    return result


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """Result of work that has begun or is queued."""

    result: Callable[[], T]
    """Function that waits for the result and returns it, or raises the error of the work; call
    it only once."""
    is_done: Callable[[float], bool] = lambda seconds: True
    """Function that waits up to ``seconds`` and returns true as soon as :attr:`result` would
    not block."""


class _Done(Protocol):
    def wait(self, timeout: float | None = None) -> object:
        """Wait until the job is done or the timeout ends."""


class _Runner(Protocol):
    def spawn(self, job: Callable[[], None]) -> _Done:
        """Queue a job."""

    def stop(self) -> None:
        """End the thread once its queued jobs are done."""


class _Job(Generic[T]):
    """A job that stores its result or error; gevent's threads would print an error that it
    raises."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self.is_done = False

    def work(self) -> None:
        try:
            self._values.append(self._function())
        except BaseException as error:
            self._error = error
        self.is_done = True

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                # Break the reference cycle: the error's traceback references this frame.
                self._error = None
        return self._values[0]


class NativeThread:
    """A native thread that runs submitted functions in order.

    The caller waits for the result; under gevent, only its greenlet waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._runner: _Runner | None = None

    def run(self, job: Callable[[], T]) -> T:
        """Run a job and return its result, or raise its exception."""
        return self.begin(job).result()

    def begin(self, job: Callable[[], T]) -> Pending[T]:
        """Queue a job; return its pending result."""
        queued = _Job(job)
        with self._lock:
            if self._runner is None:
                self._runner = _GeventRunner() if is_patched() else _ThreadRunner(self._name)
            # Queue the job under the lock: after another thread has stopped the runner, the
            # job would never run.
            done = self._runner.spawn(queued.work)

        def result() -> T:
            done.wait()
            return queued.result()

        def is_done(seconds: float) -> bool:
            done.wait(seconds)
            return queued.is_done

        return Pending(result, is_done)

    def stop(self) -> None:
        """End the thread once its queued jobs are done."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()


# Unused thread pools of the main thread's hub; only its greenlets may use them.
_idle_pools: list[ThreadPool] = []


class _GeventRunner:
    """A gevent thread pool with one thread; pools of the main thread's hub are reused, not
    ended.

    Ending one is risky: gevent reports a thread as ended while it still shuts down, and an
    interpreter that exits at that moment may crash or hang.
    """

    def __init__(self) -> None:
        from gevent.hub import get_hub
        from gevent.threadpool import ThreadPool

        hub = get_hub()
        for pool in tuple(_idle_pools):
            # Skip pools from before a fork, whose thread this process does not have.
            if pool.hub is hub and pool.pid == os.getpid() and not len(pool):
                _idle_pools.remove(pool)
                self._pool = pool
                return
        self._pool = ThreadPool(1)

    def spawn(self, job: Callable[[], None]) -> _Done:
        done: _Done = self._pool.spawn(job)
        return done

    def stop(self) -> None:
        if self._pool.pid != os.getpid():
            return
        if self._pool.hub.main_hub:
            _idle_pools.append(self._pool)
        else:
            self._pool.kill()


class _ThreadRunner:
    """A daemon thread with a queue.

    Unlike ThreadPoolExecutor, it accepts work at interpreter exit, when a producer has to
    release its lease.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], threading.Event] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def spawn(self, job: Callable[[], None]) -> _Done:
        done = threading.Event()
        self._jobs.put((job, done))
        return done

    def stop(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            job()
            done.set()
            # Delete the references, so that an idle thread does not keep the last result
            # alive.
            del item, job, done
