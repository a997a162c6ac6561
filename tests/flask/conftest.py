from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_noderpc.extension import mounts

MakeApp = Callable[..., Flask]


@pytest.fixture
def make_app(tmp_path: Path) -> Iterator[MakeApp]:
    """Return a function that makes apps which produce no blocks by themselves; their chains are
    closed at the end."""
    made: list[Flask] = []

    def make(**config: Any) -> Flask:
        app = Flask(f"host{len(made)}", instance_path=str(tmp_path / f"instance{len(made)}"))
        app.config.from_mapping({"NODERPC_PRODUCE": False, **config})
        made.append(app)
        return app

    yield make
    for app in made:
        for mount in mounts(app).values():
            mount.backend.close()
