from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http import chain


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(tmp_path)
    yield made
    made.close()
