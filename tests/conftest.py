from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from flask_noderpc.web.connection import Timing
from flask_noderpc.web.connections import WebSocketServer

pytest_plugins = ["flask_noderpc.testing.plugin", "tests.helpers.stores"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="Store of the tests that work with any; those of SQLite itself are left out.",
    )


# The time of an example, and the time to make one, depend on the machine. The examples are the
# same in each run; .ci/long uses others.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("NODERPC_CAMPAIGN") != "long",
)
settings.load_profile("any machine")

# A client that shares the process and the machine with its node may pause for longer than
# CometBFT allows; tests of these deadlines set their own.
WebSocketServer.timing = Timing(read_s=600, write_s=600)

for _number in (signal.SIGINT, signal.SIGHUP):
    # Under nohup, or in the background of a script, these signals are ignored, which each
    # process that a test starts would inherit; a handler is not inherited.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

for _name in ("FORCE_COLOR", "COLUMNS"):
    # Remove the variables that set pytest's own output, because commands that tests run would
    # read them.
    os.environ.pop(_name, None)


# Tests spend half of their time waiting: for the disk, a thread, a process or a deadline.
MORE_WORKERS = 4


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Let ``-n auto`` start up to twice as many workers as there are cores."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    # Not every system reports which cores a process may use.
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    cores = len(usable(0))
    return cores + min(cores, MORE_WORKERS)


# Tests in these folders start other programs, attack or kill nodes, or race for a long time.
INTEGRATION = {"abuse", "clients", "deploy", "differential", "faults", "postgres", "server"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders before tests are deselected by their marks."""
    for item in items:
        if not INTEGRATION.isdisjoint(item.path.relative_to(config.rootpath).parts):
            item.add_marker(pytest.mark.integration)
    if config.getoption("--store") != "sqlite":
        of_sqlite = [item for item in items if item.get_closest_marker("sqlite")]
        config.hook.pytest_deselected(items=of_sqlite)
        items[:] = [item for item in items if item not in set(of_sqlite)]


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing() -> Iterator[None]:
    """Fail the module whose tests leave files and sockets open, instead of a later one."""
    yield
    gc.collect()
