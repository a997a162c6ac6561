"""Tests of help, examples, shell completion and colours of the commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, ShellComplete
from click.testing import CliRunner

from flask_noderpc.cli import cli, main
from flask_noderpc.cli.command import Command
from tests.helpers.until import PATIENCE

GROUPS = {"noderpc": main, "flask --app yourapp noderpc": cli}
COMMANDS = [
    pytest.param(begin, name, command, id=f"{begin} {name}")
    for begin, group in GROUPS.items()
    for name, command in group.commands.items()
]


def read(begin: str, line: str) -> None:
    """Parse a command line as the program would, without running it."""
    first, *words = shlex.split(line.removeprefix(begin))
    if first != "--help":
        command = GROUPS[begin].commands[first]
        command.make_context(first, words, resilient_parsing="--help" in words).close()


@pytest.mark.features
@pytest.mark.parametrize(("begin", "name", "command"), COMMANDS)
def test_each_command_has_examples_that_can_be_given(
    begin: str,
    name: str,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    # Click does not expand ~, but shells do.
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "chain.db").touch()
    (tmp_path / "~" / ".noderpc").mkdir(parents=True)
    assert command.examples
    for line, sentence in command.examples:
        assert line.startswith(f"{begin} {name}")
        assert sentence.endswith(".")
        read(begin, line)


@pytest.mark.parametrize("begin", GROUPS)
def test_the_groups_have_examples_too(begin: str) -> None:
    group = GROUPS[begin]
    assert isinstance(group, Command)
    assert group.examples
    for line, _ in group.examples:
        read(begin, line)


def test_examples_come_before_the_options() -> None:
    shown = CliRunner().invoke(main, ["prune", "--help"], prog_name="noderpc").output
    assert shown.index("noderpc prune chain.db --retain 100000") < shown.index("Options:")


@pytest.mark.features
def test_help_of_follow_has_what_it_reads_alone() -> None:
    shown = CliRunner().invoke(main, ["follow", "--help"]).output
    assert "--upstream-rate NUMBER" in shown
    assert "--database PATH" in shown
    assert "--workers" not in shown
    # noderpc start reads this setting from the same environment and file.
    found = CliRunner().invoke(main, ["follow", "--workers", "0"])
    assert "--workers = '0'" in found.output


@pytest.mark.parametrize(("begin", "name", "command"), COMMANDS)
def test_types_of_values_are_words_of_their_own(
    begin: str, name: str, command: Command
) -> None:
    shown = CliRunner().invoke(GROUPS[begin], [name, "--help"]).output
    assert "Examples:" in shown
    assert "RANGE" not in shown


def completions(shell: ShellComplete, words: list[str], incomplete: str) -> list[str]:
    return [item.value for item in shell.get_completions(words, incomplete)]


def test_flags_and_values_are_completed() -> None:
    shell = BashComplete(main, {}, "noderpc", "_NODERPC_COMPLETE")
    assert completions(shell, ["start"], "--da") == ["--database"]
    assert completions(shell, ["start", "--application"], "m") == ["merkle"]
    assert completions(shell, ["start", "--dialect"], "comet-0.3") == [
        f"comet-0.3{number}" for number in (4, 7, 8, 9)
    ]
    (file,) = shell.get_completions(["start", "--tls-cert-file"], "ce")
    assert (file.value, file.type) == ("ce", "file")
    assert completions(shell, [], "mi") == ["migrate"]


def test_the_installed_program_completes_for_bash() -> None:
    program = Path(sys.executable).with_name("noderpc")
    env = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "_NODERPC_COMPLETE": "bash_complete",
        "COMP_WORDS": "noderpc start --da",
        "COMP_CWORD": "2",
    }
    found = subprocess.run(
        [program], env=env, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert found.stdout == "plain,--database\n"


@pytest.mark.parametrize("words", [["start", "--workers", "0"], ["prune", "--help"]])
def test_colours_are_for_terminals_unless_the_environment_wants_others(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    has_colours = {}
    for env in (
        {},
        {"FORCE_COLOR": "1"},
        {"FORCE_COLOR": "1", "NO_COLOR": "1"},
        {"NO_COLOR": "1"},
    ):
        found = CliRunner().invoke(main, words, env=env)
        has_colours[",".join(env)] = found.output != click.unstyle(found.output)
    assert has_colours == {
        "": False,
        "FORCE_COLOR": True,
        "FORCE_COLOR,NO_COLOR": False,
        "NO_COLOR": False,
    }
