"""Test the contract of backends behind PgBouncer, which gives a connection for one
transaction."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from flask_noderpc import ChainBackend
from flask_noderpc.errors import StoreError
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.contract import ChainBackendContract
from tests.helpers.postgres import Cluster, run_as_user
from tests.helpers.require import skip_or_fail
from tests.helpers.until import until

_SETTINGS = """
[databases]
* = host={folder} port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = extra_float_digits
"""


def _is_up(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(scope="module")
def pooler(cluster: Cluster) -> Iterator[Path]:
    """Run a pooler in front of the cluster; yield the folder of its socket."""
    program = Path("/usr/sbin/pgbouncer")
    if not program.exists():
        skip_or_fail("PgBouncer is not installed: apt-get install pgbouncer")
    file = cluster.folder / "pgbouncer.ini"
    # PgBouncer accepts any user name, and the server has one user.
    settings = _SETTINGS.format(folder=cluster.folder)
    file.write_text(settings.replace("port=5432", "port=5432 user=noderpc"))
    process = subprocess.Popen(
        [*run_as_user(), str(program), "-q", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
    )
    host = quote(str(cluster.folder), safe="")
    until(lambda: _is_up(f"postgresql://noderpc@:6432/postgres?host={host}"), "it is up")
    yield cluster.folder
    process.terminate()
    process.wait()


class TestPooled(ChainBackendContract):
    @pytest.fixture(autouse=True)
    def database(self, url: str, pooler: Path) -> None:
        name = url.rpartition("/")[2].partition("?")[0]
        host = quote(str(pooler), safe="")
        self.url = f"postgresql://noderpc@:6432/{name}?host={host}&pool_mode=transaction"

    def make_backend(self, chain: SampleChain) -> ChainBackend:
        backend = PostgresBackend(self.url)
        backend.init_chain(chain.genesis, chain.state)
        backend.append_block(*chain.blocks)
        return backend


def test_a_url_without_the_mode_of_the_pooler_names_the_cure(url: str, pooler: Path) -> None:
    name = url.rpartition("/")[2].partition("?")[0]
    host = quote(str(pooler), safe="")

    def read_by_turns() -> None:
        with ExitStack() as stack:
            plain = f"postgresql://noderpc@:6432/{name}?host={host}"
            opened = [stack.enter_context(closing(PostgresBackend(plain))) for _ in range(4)]
            for _ in range(20):
                for store in opened:
                    with store.reads.read_view():
                        store.reads.latest_height()

    with pytest.raises(StoreError, match="add pool_mode=transaction to the URL"):
        read_by_turns()
