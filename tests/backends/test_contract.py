from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.contract import ChainBackendContract
from tests.helpers.stores import make_store


class TestMemory(ChainBackendContract):
    def make_backend(self, chain: SampleChain) -> ChainBackend:
        return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


def _documented() -> type[ChainBackendContract]:
    """Return the example of docs/backends.rst, for the backend of the package."""
    page = (Path(__file__).parents[2] / "docs" / "backends.rst").read_text()
    begin = page.index("   from flask_noderpc.testing.contract import")
    example = dedent(page[begin : page.index("\n``chain`` has", begin)])
    names: dict[str, Any] = {"ChainBackend": ChainBackend, "MyChain": MemoryChain}
    exec(example, names)
    found: type[ChainBackendContract] = names["TestMine"]
    return found


TestDocumented = _documented()


class TestStore(ChainBackendContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "chain.db"

    def make_backend(self, chain: SampleChain) -> ChainBackend:
        backend: ChainStore = make_store(self.path)
        backend.init_chain(chain.genesis, chain.state)
        backend.append_block(*chain.blocks)
        return backend
