from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker, make_blocks

from .half_chain import BLOCKS


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a chain of several validators, which the tests copy."""
    path, maker = tmp_path_factory.mktemp("whole") / "whole.db", ChainMaker((10, 7, 3))
    with closing(SQLiteBackend(path)) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(*make_blocks(maker, BLOCKS, 3))
    return path
