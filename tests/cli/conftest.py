from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from flask_noderpc.extension import mounts


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """An app without the node yet, whose database is in a missing folder."""
    made = Flask("host")
    made.config.from_mapping(
        NODERPC_DATABASE=tmp_path / "data" / "chain.db", NODERPC_PRODUCE=False
    )
    yield made
    for mount in mounts(made).values():
        mount.backend.close()
