from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["flask_noderpc.testing.plugin"]

# How long an example takes, and how long it takes to make one, depends on the machine. The
# examples are the same in each run; .ci/long looks for others.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("NODERPC_CAMPAIGN") != "long",
)
settings.load_profile("any machine")

for _number in (signal.SIGINT, signal.SIGHUP):
    # Under nohup, or in the background of a script, they are ignored, which each process that
    # a test starts would inherit. It does not inherit a handler.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


# Their tests start other programs, attack or kill nodes, or race for long.
INTEGRATION = {"abuse", "clients", "deploy", "differential", "faults", "server"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders, before any are deselected by their marks."""
    for item in items:
        if not INTEGRATION.isdisjoint(item.path.relative_to(config.rootpath).parts):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing() -> Iterator[None]:
    """Fail a module whose tests leave files and sockets open, and not one that comes later."""
    yield
    gc.collect()
