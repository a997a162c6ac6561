"""Tests of wrong command lines and settings: each error is one line that names the fault and
the cure.

They are generated from the table of settings and from the options of the commands, so that new
ones are included.
"""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from flask import Flask

from flask_noderpc import EmbeddedChain, noderpc_bp
from flask_noderpc.cli import cli, main
from flask_noderpc.extension import mounts
from flask_noderpc.server import start as server_start
from flask_noderpc.server.flags import default_database
from flask_noderpc.settings import Setting, all_settings
from tests.helpers.until import PATIENCE

USAGE = 2

# Values that are always wrong, by the label that the help shows.
WRONG_VALUES: dict[str, list[str]] = {
    "": ["maybe"],
    "INTEGER": ["-1", "many", "1.5"],
    "BYTES": ["-1", "10MB"],
    "SECONDS": ["0", "soon"],
    "NUMBER": ["-1", "nan"],
    "PERIOD": ["soon"],
    "ADDRESS,...": ["nonsense", "udp://127.0.0.1:1", "tcp://127.0.0.1:99999"],
    "URL,...": ["ftp://user:secret@node"],
    "ORIGIN,...": ["wallet.example"],
    "HEADER": ["no header", "@/nowhere"],
}
WRONG_CHOICE = "other"
# A wrong type for any setting in a file, where values have types.
WRONG_TYPE = "1979-05-27"
SECRET = "secret"

# Each error line must contain one of these cures after it says what is wrong.
CURE = re.compile(
    r"needed|needs|expected |known are|mounted are|did you mean|\(see |see docs"
    r"|is http://host|names each|at most"
    r"|pip install|another"
    r"|[:;] (name|set|leave|put|restore|upgrade|raise|start|omit) |, restore a backup|; --"
    r"|name (a|each) |has 1 to 50|choose a |names a folder|may be|--help|is missing: ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Line:
    """A wrong command line with its environment and settings, and a word of its error."""

    words: tuple[str, ...]
    named: str | tuple[str, ...]
    """Names of which the error must contain one."""
    env: dict[str, str] = field(default_factory=dict)
    toml: str = ""

    def __str__(self) -> str:
        env = " ".join(f"{name}={value}" for name, value in self.env.items())
        return " ".join(part for part in (env, *self.words, f"[{self.toml}]") if part != "[]")


def wrong_values(row: Setting) -> list[str]:
    if row.kind.label.startswith("["):
        return [WRONG_CHOICE]
    return WRONG_VALUES.get(row.kind.label, [])


# The addresses of the EVM layer are only read if it is on, and the REST address only with bank.
EVM_ON = "--json-rpc.enable"


def lines_of_settings() -> Iterator[Line]:
    for row in all_settings():
        start: tuple[str, ...] = ("start", "--home", "HOME")
        if row.name in ("json_rpc_address", "json_rpc_ws_address"):
            start += (EVM_ON,)
        if row.name == "api_address":
            start += ("--application", "bank")
        if row.name == "fork_url":
            start += ("--dev",)
        if row.name == "evm_upstream":
            start += ("--upstream", "http://127.0.0.1:1")
        flag, shown = row.flags[-1], (row.flags[-1], row.key)
        for value in wrong_values(row):
            if not row.kind.is_secret:
                yield Line((*start, f"{flag}={value}"), shown)
            yield Line(start, row.key, env={row.key: value})
            # One spelling is enough in the file, as each value is quoted.
            yield Line(start, (row.name, row.key), toml=f'{row.name} = "{value}"')
        yield Line(start, row.name, toml=f"{row.name} = {WRONG_TYPE}")
        yield Line((*start, f"{flag[:-1]}{flag[-1]}x=1"), f"{flag}x")
        yield Line(start, f"{row.name}x", toml=f"{row.name}x = 1")


def of_groups() -> Iterator[tuple[str, click.Command]]:
    for group in (main, cli):
        for name, command in group.commands.items():
            yield f"flask {name}" if group is cli else name, command


def lines_of_commands() -> Iterator[Line]:
    yield Line(("strat",), "strat")
    yield Line(("--vresion",), "--vresion")
    yield Line(("flask rotues",), "rotues")
    for name, command in of_groups():
        yield Line((name, "--no-such-flag"), "--no-such-flag")
        if not any(param.required or param.nargs < 0 for param in command.params):
            yield Line((name, *["extra"] * 9), "extra")
        for param in command.params:
            if not isinstance(param, click.Option) or param.hidden or param.is_flag:
                continue
            flag = max(param.opts, key=len)
            if not isinstance(param.flag_value, str):
                yield Line((name, flag), flag)
            if isinstance(param.type, click.IntRange | click.FloatRange):
                yield Line((name, f"{flag}=soon"), flag)
                yield Line((name, f"{flag}=-1"), flag)
            if isinstance(param.type, click.Path) and param.type.exists:
                yield Line((name, f"{flag}=/nowhere"), flag)


def lines_by_hand() -> Iterator[Line]:
    own = ("start", "--home", "HOME")
    url = "http://127.0.0.1:1"
    for words, named in (
        ((*own, "--dev", "--upstream", url), "NODERPC_DEV"),
        ((*own, "--rpc.tls_cert_file", "x.pem"), "--rpc.tls_key_file"),
        ((*own, EVM_ON, "--tls.key-path", "x.pem"), "--tls.certificate-path"),
        ((*own, "--upstream", url, "--workers", "20"), "--upstream-concurrency"),
        ((*own, "--fork-url", url), "--dev"),
        ((*own, EVM_ON, "--fork-url", url), "--dev"),
        ((*own, "--dev", "--fork-url", "http://"), "http://host"),
        ((*own, "--application", "evm", "--fork-url", url), "NODERPC_DEV"),
        ((*own, "--upstream", url, "--upstream", url), " twice"),
        ((*own, "--upstream", url, "--upstream-dialect", "latin"), "NODERPC_UPSTREAM_DIALECT"),
        ((*own, "--database", "mysql://u:secret@h/d"), "NODERPC_DATABASE"),
        ((*own, "--database", "postgresql://u:secret@h/d"), "PGPASSFILE"),
        ((*own, "--database", "postgresql://h/d?poll_interval=never"), "poll_interval"),
        ((*own, "--read-database", "postgresql://h/d"), "NODERPC_READ_DATABASE"),
        ((*own, "--chain-id", "c" * 51), "--chain-id"),
        ((*own, "--chain-id", "two\nlines"), "--chain-id"),
        ((*own, "--upstream-header", "Authorization: Bearer secret"), "--upstream-header"),
        (("init", "--home", "HOME", "--chain-id", ""), "--chain-id"),
        (("init",), "--home"),
        (("verify",), "--home"),
        (("verify", "/nowhere/chain.db"), "/nowhere/chain.db"),
        (("verify", "two\nlines"), "lines"),
        (("verify", "STORE", "--home", "HOME"), "--home"),
        (("verify", "postgresql://u:secret@h/d"), "PGPASSFILE"),
        (("prune", "STORE"), "--retain"),
        (("prune", "STORE", "--retain", "0"), "--retain"),
        (("prune", "STORE", "--retain", "many"), "--retain"),
        (("backup", "STORE"), "--home"),
        (("backup", "/nowhere/chain.db", "HOME/copy.db"), "/nowhere/chain.db"),
        (("compact",), "--home"),
        (("migrate",), "--home"),
        (("import",), "URL"),
        (("import", "ftp://node"), "http://host:port"),
        (("import", url, url), " twice"),
        (("import", url, "--trust", "latest"), "--trust"),
        (("import", url, "--trust-period", "soon"), "--trust-period"),
        (("import", url, "--unchecked", "everything"), "--unchecked"),
        (("import", url, "--upstream-dialect", "latin"), "latin"),
        (("import", url, "--database", "x.db", "--home", "HOME"), "--database"),
        (("import", url, "--upstream-header", "Authorization: Bearer secret"), "--upstream-h"),
        (("follow",), "--upstream"),
        (("follow", "--upstream", "ftp://node"), "http://host:port"),
        (("follow", "--upstream", url, "--trust", "latest"), "--trust"),
        (("conform", "ftp://node"), "http://host:port"),
        (("conform", url, "--upstream-header", "@/nowhere"), "--upstream-header"),
        (("flask start", "--max-batch", "3"), "NODERPC_MAX_BATCH"),
        (("flask start", "--mount", "other"), "'other'"),
        (("flask prune",), "--retain"),
        (("flask backup",), "TARGET"),
    ):
        yield Line(words, named)
    yield Line(own, "line 1", toml="= 1")
    yield Line(own, "noderpc.toml", toml="block_interval = 1\nblock_interval = 2")
    yield Line(("verify", "--home", "HOME"), "database", toml="database = 3.5")
    yield Line(("start",), "NODERPC_DEV", env={"NODERPC_HOME": "HOME", "NODERPC_DEV": "x"})


LINES = [*lines_of_settings(), *lines_of_commands(), *lines_by_hand()]


def test_there_are_many() -> None:
    assert len(LINES) > 200
    assert len({str(line) for line in LINES}) == len(LINES)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "chain.db"
    with closing(EmbeddedChain(path, produce=False)) as chain:
        chain.start()
        chain.produce()
    return path


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the node starts")

    monkeypatch.setattr(server_start, "Supervisor", refuse)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if "NODERPC_" in name]:
        monkeypatch.delenv(name)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    made = Flask("host")
    made.config.from_mapping(NODERPC_DATABASE=tmp_path / "chain.db", NODERPC_PRODUCE=False)
    made.register_blueprint(noderpc_bp)
    yield made
    for mount in mounts(made).values():
        mount.backend.close()


def filled(text: str, home: Path, store: Path) -> str:
    return text.replace("HOME", str(home)).replace("STORE", str(store))


def check_line(stderr: str, named: str | tuple[str, ...]) -> None:
    (line,) = stderr.splitlines()
    assert line.startswith("Error: ")
    names = (named,) if isinstance(named, str) else named
    assert any(name in line for name in names), line
    assert CURE.search(line), line
    assert SECRET not in line
    assert len(line) < 500


@pytest.mark.features
@pytest.mark.parametrize("line", LINES, ids=str)
def test_each_is_one_line_with_the_cure(
    request: pytest.FixtureRequest, line: Line, tmp_path: Path, store: Path
) -> None:
    home = tmp_path / "home"
    if line.toml:
        (home / "config").mkdir(parents=True)
        (home / "config" / "noderpc.toml").write_text(line.toml)
    words = [filled(word, home, store) for word in line.words]
    env = {name: filled(value, home, store) for name, value in line.env.items()}
    if words[0].startswith("flask "):
        words[0] = words[0].removeprefix("flask ")
        app: Flask = request.getfixturevalue("app")
        found = app.test_cli_runner().invoke(cli, words, prog_name="flask noderpc")
    else:
        found = CliRunner().invoke(main, words, env=env, prog_name="noderpc")

    assert isinstance(found.exception, SystemExit), found.exception
    assert found.exit_code == USAGE, found.output
    check_line(found.stderr, line.named)
    assert found.stdout == ""


@pytest.mark.features
def test_those_that_the_home_refuses_have_the_status_of_systemd(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These settings are valid in themselves, and fail at each restart."""
    broken, other, newer = tmp_path / "broken", tmp_path / "other", tmp_path / "newer.db"
    (broken / "config").mkdir(parents=True)
    (broken / "config" / "genesis.json").write_text("{}")
    file = tmp_path / "file"
    file.write_text("no folder")
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as at:
        at.execute("CREATE TABLE other (id)")
    newer.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(newer)) as at, at:
        at.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " SELECT migration_set, 'of the future', applied_at FROM _sqlite_migrations LIMIT 1"
        )
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        start = ("start", "--home", str(other))
        for words, named in (
            ((*start, "--rpc.laddr", port), "--rpc.laddr"),
            ((*start, "--rpc.laddr", "tcp://192.0.2.1:1"), "--rpc.laddr"),
            ((*start, "--rpc.laddr", "tcp://no.such.host.invalid:1"), "--rpc.laddr"),
            ((*start, "--rpc.laddr", "unix:///nowhere/node.sock"), "--rpc.laddr"),
            (("start", "--home", "/proc/none"), "--home"),
            (("start", "--home", str(file)), "--home"),
            ((*start, "--database", "/proc/none/chain.db"), "/proc/none"),
            ((*start, "--database", "postgresql://h/d"), "pip install"),
            ((*start, "--database", str(store), "--application", "evm"), "NODERPC_APPLICATION"),
            ((*start, "--database", str(store), "--chain-id", "x"), "NODERPC_CHAIN_ID"),
            ((*start, "--tls-cert-file", "/no.pem", "--tls-key-file", "/no.pem"), "/no.pem"),
            (
                (*start, "--tls-cert-file", str(file), "--tls-key-file", str(file)),
                str(file),
            ),
            (("init", "--home", str(broken)), "priv_validator_key.json"),
            (("init", "--home", str(file)), str(file)),
            (("init", "--home", "/proc/none"), "/proc/none"),
            (("verify", "--home", str(tmp_path)), str(default_database(tmp_path))),
            (("verify", str(file)), str(file)),
            (("verify", str(foreign)), str(foreign)),
            (("verify", str(newer)), str(newer)),
            (("prune", str(newer), "--retain", "1"), str(newer)),
            (("compact", str(foreign)), str(foreign)),
            (("migrate", str(foreign)), str(foreign)),
            (("backup", str(store), str(store)), "new file"),
            (("backup", str(store), str(file / "copy.db")), "copy.db"),
            (("backup", str(store), str(tmp_path / "new.db"), "--from", "2"), "--from"),
            (("import", "http://h:1", "--database", "/proc/none/c.db"), "/proc/none"),
            (("follow", "--upstream", "http://h:1", "--home", "/proc/none"), "/proc/none"),
        ):
            found = CliRunner().invoke(main, words)
            assert isinstance(found.exception, SystemExit), (words, found.exception)
            assert found.exit_code == os.EX_CONFIG, (words, found.output)
            check_line(found.stderr, named)


@pytest.mark.parametrize("words", [("verify",), ("prune", "--retain", "1")])
def test_a_database_that_is_away_may_be_back_later(words: tuple[str, ...]) -> None:
    pytest.importorskip("psycopg")
    found = CliRunner().invoke(main, [*words, "postgresql://user@127.0.0.1:1/chain"])
    assert found.exit_code == 1, found.output
    (line,) = found.stderr.splitlines()
    assert (
        "postgresql://127.0.0.1:1/chain: the database can't be reached: check that PostgreSQL"
        in line
    )


# Commands whose setting is read by a process of the node alone, or by Flask; tests/server has
# more.
PROCESSES: list[tuple[tuple[str, ...], dict[str, str], int, str]] = [
    (("start", "--deny-methods", "staus"), {}, USAGE, "NODERPC_DENY_METHODS"),
    (("start", "--allow-methods", "eht_call"), {}, USAGE, "NODERPC_ALLOW_METHODS"),
    (("start", "--exclude-routes", "indx"), {}, USAGE, "NODERPC_EXCLUDE_ROUTES"),
    (("start", EVM_ON, "--evm-api", "eth,foo"), {}, USAGE, "NODERPC_EVM_API"),
    (("start", "--evm-upstream", "http://h:1"), {}, USAGE, "NODERPC_EVM_UPSTREAM"),
    (("start", "--dev", "--retain-blocks", "3"), {}, USAGE, "NODERPC_RETAIN_BLOCKS"),
    (("start",), {"NODERPC_WORKERS": "0"}, USAGE, "NODERPC_WORKERS"),
    (("verify", "/nowhere.db"), {}, USAGE, "/nowhere.db"),
    (("flask", "config"), {"FLASK_NODERPC_WORKERS": "0"}, USAGE, "NODERPC_WORKERS"),
    (("flask", "config"), {"FLASK_NODERPC_WOKERS": "1"}, USAGE, "NODERPC_WOKERS"),
    (("flask", "routes"), {"FLASK_NODERPC_DENY_METHODS": "staus"}, USAGE, "DENY_METHODS"),
    (("flask", "verify"), {}, os.EX_CONFIG, "chain.db"),
]


@pytest.mark.parametrize(("words", "env", "status", "named"), PROCESSES)
def test_they_are_so_in_processes_of_their_own(
    tmp_path: Path, words: tuple[str, ...], env: dict[str, str], status: int, named: str
) -> None:
    programs = Path(sys.executable).parent
    command = [str(programs / "noderpc"), *words]
    if words[0] == "flask":
        command = [str(programs / "flask"), "--app", "example_app", "noderpc", *words[1:]]
        env = {"FLASK_NODERPC_DATABASE": str(tmp_path / "chain.db"), **env}
    if words[0] == "start":
        ports = ("rpc.laddr", "api.address", "json-rpc.address", "json-rpc.ws-address")
        command += [part for name in ports for part in (f"--{name}", "127.0.0.1:0")]
    found = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert found.returncode == status, found.stderr
    check_line(found.stderr, named)
