"""Skip or fail tests whose programs or libraries are missing."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import NoReturn

import pytest


def require_program(program: str) -> str:
    """Return the path of a program; skip the test without it."""
    path = shutil.which(program)
    if path is None:
        skip_or_fail(f"{program} is not installed")
    return path


def require_library(name: str) -> None:
    """Skip the test without a library of the extra ``test-all``."""
    if find_spec(name) is None:
        skip_or_fail(f"{name} is not installed: pip install -e '.[test-all]'")


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test, or fail it if nothing may be missing, as in .ci/run."""
    if os.environ.get("NODERPC_REQUIRE_CLIENTS") == "1":
        pytest.fail(f"{reason}, and NODERPC_REQUIRE_CLIENTS=1")
    pytest.skip(reason)
