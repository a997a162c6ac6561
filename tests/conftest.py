from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest

pytest_plugins = ["flask_noderpc.testing.plugin"]

for _number in (signal.SIGINT, signal.SIGHUP):
    # Under nohup, or in the background of a script, they are ignored, which each process that
    # a test starts would inherit. It does not inherit a handler.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing() -> Iterator[None]:
    """Fail a module whose tests leave files and sockets open, and not one that comes later."""
    yield
    gc.collect()
