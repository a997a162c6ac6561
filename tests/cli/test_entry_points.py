"""Tests of the installed commands ``flask noderpc`` and ``noderpc``."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import flask_noderpc
from flask_noderpc import ConfigurationError, EmbeddedChain, SQLiteBackend
from flask_noderpc.backends.base.verify import Scope
from flask_noderpc.backends.sql.packed.blocks import key_checksum
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.cli import cli, main
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import LATEST, EvmHead
from flask_noderpc.settings import REMOVED_SETTINGS, all_settings, read_settings
from flask_noderpc.testing import make_chain
from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[2]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of this interpreter's environment, in the folder of the sources."""
    program, *rest = words
    path = Path(sys.executable).with_name(program)
    return subprocess.run(
        [path, *rest],
        cwd=ROOT,
        env={"PATH": str(path.parent), **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_flask_finds_the_commands_and_starts_nothing(tmp_path: Path) -> None:
    database = tmp_path / "data" / "chain.db"

    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "routes",
        FLASK_NODERPC_DATABASE=str(database),
    )

    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("noderpc: dialect document, POST /\n  /health ")
    assert not database.parent.exists()


def test_flask_shows_the_settings_of_the_environment(tmp_path: Path) -> None:
    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "config",
        FLASK_NODERPC_DATABASE=str(tmp_path / "c.db"),
        FLASK_NODERPC_CHAIN_ID="42",
    )

    assert "* NODERPC_CHAIN_ID = '42'" in found.stdout
    assert "* NODERPC_EMPTY_BLOCKS = True" in found.stdout


def test_a_bad_setting_is_named_by_its_key(tmp_path: Path) -> None:
    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "config",
        FLASK_NODERPC_DATABASE=str(tmp_path / "c.db"),
        FLASK_NODERPC_BLOCK_INTERVAL="soon",
    )

    assert found.returncode != 0
    assert "NODERPC_BLOCK_INTERVAL = 'soon'" in found.stderr


def test_version_option_prints_the_version() -> None:
    found = run("noderpc", "--version")

    assert found.stdout == f"noderpc, version {flask_noderpc.__version__}\n"


def test_the_defaults_of_start_are_those_that_it_has() -> None:
    message = " ".join(run("noderpc", "start", "--help").stdout.split())

    assert "[default: data/noderpc.db in the home]" in message
    assert "[default: ~/.noderpc; with --dev: ~/.noderpc/dev-evm]" in message
    assert message.count("[default: true; with --dev: false]") == 1
    assert "without transactions. [default: true; with --dev: false]" in message
    assert "instance folder" not in message


def help_of(*words: str) -> str:
    found = run(*words, "--help")
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_lists_of_commands_show_whole_sentences() -> None:
    for words in (("noderpc",), ("flask", "--app", "example_app", "noderpc")):
        listed = help_of(*words).split("Commands:")[1].strip().splitlines()
        assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


@pytest.mark.parametrize("group", [main, cli])
def test_every_option_has_a_sentence(group: click.Group) -> None:
    options = [
        option
        for command in group.commands.values()
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    assert options
    assert [option.name for option in options if not option.help] == []


def test_help_marks_required_options() -> None:
    message = " ".join(help_of("noderpc", "prune").split())
    assert "--retain INTEGER Number of latest blocks to retain. [required]" in message
    message = " ".join(help_of("flask", "--app", "example_app", "noderpc", "prune").split())
    assert "[default: the app's NODERPC_RETAIN_BLOCKS; required without it]" in message


def test_help_of_start_shows_the_kind_of_each_value() -> None:
    message = " ".join(help_of("noderpc", "start").split())
    for flag in (
        "--dev True to",
        "--metrics True to",
        "--home PATH",
        "--workers [auto|INTEGER]",
        "--max-batch INTEGER",
        "--max-body-bytes BYTES",
        "--block-interval SECONDS",
        "--cors-origins ORIGIN,...",
        "--application [kvstore|merkle|bank|evm]",
    ):
        assert f" {flag} " in message


def test_help_of_start_shows_settings_by_group_and_the_ten_for_a_newcomer_first() -> None:
    groups: dict[str, list[str]] = {}
    for line in help_of("noderpc", "start").splitlines():
        if line.endswith(":") and not line.startswith(" "):
            groups[line] = []
        elif groups and line.startswith("  --"):
            groups[list(groups)[-1]].append(line.split()[0].rstrip(","))

    # Examples contain flags, too.
    del groups["Examples:"]
    assert list(groups) == [
        "Usual settings:",
        "Options:",
        "The embedded chain:",
        "The node RPC:",
        "Access:",
        "The server:",
        "The companion:",
        "The EVM layer:",
    ]
    assert len(groups["Usual settings:"]) == 10
    assert {"--home", "--dev", "--dialect", "--workers"} <= {*groups["Usual settings:"]}
    assert "--max-batch" in groups["The node RPC:"]
    own = {"--explorer", "--log-format", "--help"}
    assert own <= {*groups["Options:"]}
    assert sum(map(len, groups.values())) == len(all_settings()) + len(own)
    assert len(all_settings()) <= 90


@pytest.mark.parametrize("former", ["POLL_INTERVAL", "INDEX", "CORS_METHODS"])
def test_a_setting_that_became_a_constant_is_unknown(former: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown setting NODERPC_{former}"):
        read_settings({f"NODERPC_{former}": "1"}, {})
    home = ("--home", str(tmp_path), "--rpc.laddr", "x")
    asked = run("noderpc", "start", *home, **{f"NODERPC_{former}": "1"})
    assert f"WARNING: the environment variable NODERPC_{former} is ignored" in asked.stderr


def test_dropped_settings_are_taken_with_a_warning_from_each_source(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "noderpc.toml"
    file.write_text("max_websockets = 5")
    flags = ("--home", str(tmp_path), "--rpc.laddr", "x", "--gzip-min-bytes", "5")
    environment = {"NODERPC_IDLE_TIMEOUT": "5", "FLASK_NODERPC_CLIENT_TIMEOUT": "5"}
    asked = run("noderpc", "start", *flags, **environment)
    for source, name in (
        ("--gzip-min-bytes", "gzip_min_bytes"),
        ("NODERPC_IDLE_TIMEOUT", "idle_timeout"),
        ("FLASK_NODERPC_CLIENT_TIMEOUT", "client_timeout"),
        (f"{file}: max_websockets", "max_websockets"),
    ):
        what = f"{source} is no longer a setting and has no effect: {REMOVED_SETTINGS[name]}"
        assert asked.stderr.count(f"WARNING: {what}\n") == 1
    # The address is refused, which is read after the flags.
    assert "--rpc.laddr" in asked.stderr.splitlines()[-1]


def test_noderpc_makes_a_home(tmp_path: Path) -> None:
    found = run("noderpc", "init", "--home", str(tmp_path / "home"), "--chain-id", "mine")

    assert (found.returncode, found.stdout) == (0, f"chain mine in {tmp_path / 'home'}\n")
    key = tmp_path / "home" / "config" / "priv_validator_key.json"
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_home_without_a_chain_id_gets_one(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["init", "--home", str(tmp_path)])

    assert found.exit_code == 0
    assert found.output.startswith("chain test-chain-")


def test_an_unreadable_home_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "genesis.json").write_text("{}")

    found = CliRunner().invoke(main, ["init", "--home", str(tmp_path)])

    assert found.exit_code == os.EX_CONFIG
    assert found.output.startswith("Error: ")
    assert "Traceback" not in found.output


@pytest.fixture
def database(tmp_path: Path) -> Path:
    chain, path = make_chain(6), tmp_path / "chain.db"
    backend = SQLiteBackend(path)
    backend.init_chain(chain.genesis, chain.state)
    backend.append_block(*chain.blocks)
    backend.close()
    return path


def test_noderpc_verifies_a_store(database: Path) -> None:
    found = run("noderpc", "verify", str(database))

    assert found.returncode == 0, found.stderr
    assert "6 blocks verified" in found.stdout


def test_start_refuses_a_url_of_an_unknown_store(tmp_path: Path) -> None:
    url = "mysql://user:secret@host/chain"
    found = CliRunner().invoke(
        main, ["start", "--home", str(tmp_path)], env={"NODERPC_DATABASE": url}
    )

    assert found.exit_code == 2, found.output
    assert "NODERPC_DATABASE: expected a file name" in found.output
    assert "secret" not in found.output
    assert list(tmp_path.iterdir()) == []


def test_noderpc_prunes_a_store(database: Path) -> None:
    found = run("noderpc", "prune", str(database), "--retain", "2")

    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith("4 blocks removed; the lowest is now 5\n")
    assert "2 blocks verified" in run("noderpc", "verify", str(database)).stdout


def test_a_node_at_work_is_backed_up_and_pruned(tmp_path: Path) -> None:
    database, target = tmp_path / "chain.db", tmp_path / "copy.db"
    chain = EmbeddedChain(database, schedule=BlockSchedule(0.01, empty_blocks=True))
    chain.start()
    try:
        before = chain.reads.wait_for_height(20, PATIENCE)
        copied = CliRunner().invoke(main, ["backup", str(database), str(target)])
        assert (copied.exit_code, "is a verified backup" in copied.output) == (0, True), (
            copied.output
        )

        pruned = CliRunner().invoke(main, ["prune", str(database), "--retain", "5"])
        assert pruned.exit_code == 0, pruned.output
        assert chain.reads.base_height() > before - 5
        after = chain.reads.latest_height()
        assert chain.reads.wait_for_height(after, PATIENCE) > after
    finally:
        chain.close()

    # Restore: the copy replaces the store, with the same keys.
    for path in tmp_path.glob("chain.db*"):
        path.unlink()
    target.rename(database)
    again = EmbeddedChain(database, produce=False)
    again.start()
    try:
        with pytest.raises(
            ConfigurationError, match="other node or client has seen these blocks"
        ):
            again.produce()
        # The record is lowered, which gives up the later blocks.
        record = tmp_path / "data" / "priv_validator_state.json"
        record.write_text('{"height": "0", "round": 0, "step": 0}')
        assert again.reads.base_height() == 1
        restored = again.reads.latest_height()
        assert before <= restored <= after
        assert again.produce() == restored + 1
        assert again.store.verify() == restored + 1
    finally:
        again.close()


@pytest.mark.parametrize("chain_id", ["c" * 51, "", "a\nb"])
def test_init_writes_nothing_for_a_chain_id_that_no_genesis_may_have(
    tmp_path: Path, chain_id: str
) -> None:
    found = CliRunner().invoke(main, ["init", "--home", str(tmp_path), "--chain-id", chain_id])

    assert found.exit_code == 2
    assert "'--chain-id': expected a chain ID of 1 to 50 printable bytes" in found.output
    assert list(tmp_path.iterdir()) == []


def test_a_chain_writes_nothing_for_a_chain_id_that_no_genesis_may_have(
    tmp_path: Path,
) -> None:
    with (
        closing(EmbeddedChain(tmp_path / "chain.db", chain_id="c" * 51)) as chain,
        pytest.raises(
            ConfigurationError, match=r"NODERPC_CHAIN_ID = 'c+': expected a chain ID of 1 to"
        ),
    ):
        chain.start()
    assert not (tmp_path / "config").exists()


@pytest.fixture
def home(database: Path, tmp_path: Path) -> Path:
    """A node's folder, whose file of settings names the store."""
    folder = tmp_path / "home"
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "noderpc.toml").write_text(f"database = {str(database)!r}")
    return folder


def test_a_home_stands_for_its_store(home: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "copy.db")

    for words, text in (
        (["verify"], "6 blocks verified"),
        (["backup", target], f"{target} is a verified backup"),
        (["prune", "--retain", "2", "--bulk"], "4 blocks removed; the lowest is now 5"),
        (["prune", "--retain", "1"], "1 blocks removed; the lowest is now 6"),
    ):
        found = CliRunner().invoke(main, [*words, "--home", str(home)])
        assert (found.exit_code, text in found.output) == (0, True), found.output
    assert "6 blocks verified" in CliRunner().invoke(main, ["verify", target]).output


def test_a_bad_value_in_a_home_s_file_is_named_with_the_file(home: Path) -> None:
    path = home / "config" / "noderpc.toml"
    path.write_text("database = 3.5")

    found = CliRunner().invoke(main, ["verify", "--home", str(home)])

    assert found.exit_code == 2
    assert found.output.startswith(f"Error: {path}: database = 3.5: expected a string")


def test_a_home_without_a_store_is_reported_and_none_created(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["prune", "--home", str(tmp_path), "--retain", "1"])

    assert found.exit_code == os.EX_CONFIG
    assert found.output.endswith(
        "there is no store; name the file of a chain, or the home of a node\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["prune", "--retain", "1"],
            "expected either DATABASE, or a node's folder with --home",
        ),
        (["prune", "DATABASE"], "Missing option '--retain'"),
        (["prune", "DATABASE", "--retain", "0"], "--retain: expected at least 1"),
        (["backup", "DATABASE"], "and TARGET"),
        (["backup", "nosuch.db", "copy.db"], "nosuch.db: there is no store"),
        (["backup", "DATABASE", "DATABASE"], "exists already"),
        (["verify"], "expected either DATABASE"),
    ],
)
def test_missing_and_invalid_arguments_are_reported(
    database: Path, words: list[str], text: str
) -> None:
    words = [word.replace("DATABASE", str(database)) for word in words]

    found = CliRunner().invoke(main, words)

    assert found.exit_code == (os.EX_CONFIG if "already" in text else 2)
    assert text in found.output
    assert "6 blocks verified" in CliRunner().invoke(main, ["verify", str(database)]).output


def test_prune_retains_256_block_hashes_of_an_evm_chain(
    database: Path,
) -> None:
    with closing(sqlite3.connect(database)) as at, at:
        state = EvmHead(6, b"root", 1, 0, 1)
        row = LATEST, state.encode()
        at.execute(
            "INSERT INTO app_state (key, content, checksum) VALUES (?, ?, ?)",
            (*row, key_checksum(*row)),
        )

    found = CliRunner().invoke(main, ["prune", str(database), "--retain", "5"])

    needed = EvmApplication.needs_blocks
    assert needed == 257
    assert (found.exit_code, f"expected at least {needed}, which" in found.output) == (2, True)


def test_a_backup_that_does_not_hold_together_is_not_left(
    database: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(database)) as at, at:
        at.execute("UPDATE blocks SET size = size + 1 WHERE height = 3")

    found = CliRunner().invoke(main, ["backup", str(database), str(tmp_path / "copy.db")])

    assert found.exit_code == 1
    assert "block 3: the columns or indexes of its header" in found.output
    assert list(tmp_path.glob("copy.db*")) == []


def test_a_backup_that_is_interrupted_goes_on_with_its_verification(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, verify = tmp_path / "copy.db", SQLiteBackend.verify_blocks

    def interrupted(store: SQLiteBackend, progress: Callable[[int], None], scope: Scope) -> int:
        def until_three(height: int) -> None:
            progress(height)
            if height == 3:
                raise KeyboardInterrupt

        return verify(store, until_three, scope)

    words = ["backup", str(database), str(target)]
    found = CliRunner().invoke(main, [*words, "--from", "3"])
    assert (found.exit_code, "omit --from" in found.output) == (os.EX_CONFIG, True)

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteBackend, "verify_blocks", interrupted)
        found = CliRunner().invoke(main, words)
    assert found.exit_code == 130
    assert found.output.endswith("Error: interrupted; continue with --from 4\n")
    assert [each.name for each in tmp_path.glob("copy.db*")] == ["copy.db.unverified"]

    before = Path(f"{target}.unverified").stat().st_mtime_ns
    found = CliRunner().invoke(main, [*words, "--from", "3"])
    assert (found.exit_code, "4 blocks verified" in found.output) == (0, True), found.output
    assert [each.name for each in tmp_path.glob("copy.db*")] == ["copy.db"]
    assert target.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "expected a store with a chain"),
        (b"no database" * 500, "the file is not a SQLite database"),
    ],
)
def test_a_file_that_is_no_store_is_reported_in_one_line_with_its_path(
    tmp_path: Path, content: bytes, text: str
) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)

    for words in (
        ["verify", str(path)],
        ["prune", str(path), "--retain", "1"],
        ["backup", str(path), str(tmp_path / "copy.db")],
    ):
        found = CliRunner().invoke(main, words)

        assert found.exit_code == os.EX_CONFIG
        assert found.output.startswith(f"Error: {path}: {text}")
        assert "Traceback" not in found.output


def test_a_store_that_is_corrupt_is_named_by_its_path(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[-8192:] = bytes(8192)
    database.write_bytes(content)

    found = CliRunner().invoke(main, ["verify", str(database)])

    assert found.exit_code == os.EX_CONFIG
    assert f"Error: {database}: " in found.output


def test_a_missing_store_is_not_created(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["verify", str(tmp_path / "nosuch.db")])

    assert found.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_backup_on_a_full_disk_is_reported_and_removed(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    # Blocks have 512 bytes: enough for SQLite's shared memory, and too little for the copy.
    little = ["sh", "-c", 'ulimit -f 150; exec "$@"', "sh"]
    found = subprocess.run(
        [
            *little,
            Path(sys.executable).with_name("noderpc"),
            "backup",
            str(database),
            str(target),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert found.returncode == 1
    assert f"Error: {target}.unverified: the disk" in found.stderr
    assert not list(tmp_path.glob("copy.db*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_can_t_be_written_is_an_error_in_one_line(
    database: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [Path(sys.executable).with_name("noderpc"), "verify", str(database)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
    assert found.returncode == 1
    assert found.stderr == "Error: standard output can't be written: No space left on device\n"
