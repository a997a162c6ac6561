"""A private cluster of PostgreSQL on a unix socket, with a new database for each test."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask_noderpc.backends import open_store

from .require import skip_or_fail
from .until import until

_USER = "noderpc"

# Most clusters of tests need not survive a power loss.
_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum_naptime": "5s",
}


def binary(name: str) -> str:
    """Return the path of a program of PostgreSQL; skip the test without it."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
    if found is None:
        skip_or_fail("PostgreSQL is not installed: apt-get install postgresql")
    return found


def _children(parent: int) -> list[int]:
    """Return the PIDs of a process's children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the program, in parentheses, may have spaces.
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def run_as_user() -> Sequence[str]:
    """Return the beginning of commands that refuse to run as root."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


class Cluster:
    """A cluster in a separate folder."""

    def __init__(self, **options: str) -> None:
        self.options = {**_OPTIONS, **options}
        self.folder = Path(tempfile.mkdtemp(prefix="noderpc-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._numbers = itertools.count(1)
        self._environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.folder.chmod(0o755)
        self._template = ""
        self._init()

    def _run(self, *command: str) -> None:
        # The log is a file, as the server would inherit a pipe.
        with (self.folder / "log").open("ab") as log:
            done = subprocess.run(
                [*run_as_user(), *command],
                env=self._environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if done.returncode:
            raise AssertionError(f"{command}: {self.log()}")

    def _init(self) -> None:
        initdb = (binary("initdb"), "-D", str(self._data), "-U", _USER, "-A", "trust")
        self._run(*initdb, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        self.start()

    def log(self) -> str:
        """Return what the server has logged."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        options = {"unix_socket_directories": str(self.folder), **self.options}
        given = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        self._run(binary("pg_ctl"), "-D", str(self._data), "-w", "-o", given, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server."""
        self._run(binary("pg_ctl"), "-D", str(self._data), "-w", "-m", mode, "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server: its sockets stay open, but nothing responds."""
        server = int((self._data / "postmaster.pid").read_text().split()[0])
        stopped: list[int] = []
        try:
            # The server starts no processes while it is stopped.
            for pid in (server, *_children(server)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{_USER}@/{database}?{self._query}"

    @property
    def _query(self) -> str:
        query = f"host={quote(str(self.folder), safe='')}"
        return query + (f"&port={self.options['port']}" if "port" in self.options else "")

    def empty_database(self) -> str:
        """Make an empty database, and return its URL."""
        return self._create("")

    def new_database(self) -> str:
        """Make a database with the tables of a store, and return its URL."""
        if not self._template:
            with closing(open_store(self.empty_database())) as store:
                store.has_chain()
                self._template = store.location.path.rpartition("/")[2].partition("?")[0]
        return self._create(f"TEMPLATE {self._template}")

    def _create(self, how: str) -> str:
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {how}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database and close its connections."""
        name = url.rpartition("/")[2].partition("?")[0]
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, *statements: str) -> None:
        """Execute statements in the database ``postgres``."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as at:
            for sql in statements:
                at.execute(sql)

    def ask(self, sql: str) -> Any:
        """Return the first row of a query in the database ``postgres``."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as at:
            return at.execute(sql).fetchone()

    def close(self) -> None:
        """Stop the server and remove everything."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder)


class Standby(Cluster):
    """A streaming replica of another cluster."""

    def __init__(self, primary: Cluster, **options: str) -> None:
        self._primary = primary
        super().__init__(**{**primary.options, **options})

    def _init(self) -> None:
        source = f"{self._primary.url('postgres')}&application_name={self.folder.name}"
        backup = (binary("pg_basebackup"), "-d", source, "-D", str(self._data))
        self._run(*backup, "-R", "-c", "fast", "--no-sync")
        self.start()

    def catch_up(self) -> None:
        """Wait until the replica has replayed everything that the primary has now."""
        (now,) = self._primary.ask("SELECT pg_current_wal_lsn()")
        has = f"SELECT pg_last_wal_replay_lsn() >= '{now}'"
        until(lambda: self.ask(has) == (True,), "the standby has caught up")

    def promote(self) -> None:
        """Make the replica a primary."""
        self._run(binary("pg_ctl"), "-D", str(self._data), "-w", "promote")
