from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain

from .fixtures import InMemory, Time, opened


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture(params=[EmbeddedChain, InMemory])
def chain(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Time
) -> Iterator[EmbeddedChain]:
    with closing(opened(tmp_path, request.param, clock)) as made:
        yield made
