"""A page of docs/, run as its reader runs it: from its first block to its last.

==========================  =====================================================
In the page                 The run
==========================  =====================================================
A block with ``:caption:``  writes that file
``sh``                      runs the commands, each of which has to succeed
``text``                    is what the commands before have printed
``console``                 is a command that runs on, in the terminal that was named
                            last, and what it prints until the page goes on
"in a first terminal"       names a terminal
``:kbd:`Ctrl-C```           is pressed in the terminal that is named after it
==========================  =====================================================

An ``…`` in output is the rest of a line, or on a line of its own any lines; nor does
indentation matter. Lines that install something are left to the reader.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from .until import PATIENCE, until

INSTALL = re.compile(r"^ *(?:npm|go|(?:python -m )?pip) install (.*)\n", re.MULTILINE)
INSTALL_PACKAGE = re.compile(
    r"^ *((?:python -m |\S*/)?pip) install '?(?:\.|flask-noderpc)(?![\w/-])(?:\[(.*?)\])?.*\n",
    re.MULTILINE,
)
"""Line that installs this package: its pip, its extras."""

_STEP = re.compile(
    r"^\.\. code-block:: (?P<language>\w+)\n(?:   :caption: (?P<file>\S+)\n)?\n"
    r"(?P<text>(?:(?:   .*)?\n)+)"
    r"|(?P<key>:kbd:`Ctrl-C`\s+)?in\s+(?:a|the)\s+(?P<terminal>\w+)\s+terminal",
    re.MULTILINE | re.IGNORECASE,
)


class Tutorial:
    """A run in a folder; ``addresses`` maps the page's ports to those of this run."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], addresses: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self._addresses = addresses
        self._terminals: dict[str, _Terminal] = {}
        self._printed = ""

    def run(self, text: str) -> None:
        """Execute the blocks of a page."""
        for old, new in self._addresses.items():
            text = text.replace(old, new)
        terminal = ""
        try:
            for step in _STEP.finditer(text):
                terminal = step["terminal"] or terminal
                if step["key"]:
                    self._terminals.pop(terminal).interrupt()
                elif step["language"]:
                    block = textwrap.dedent(step["text"]).strip() + "\n"
                    self._do(step["language"], step["file"], block, terminal)
        finally:
            for open_terminal in self._terminals.values():
                open_terminal.close()

    def _do(self, language: str, file: str | None, block: str, terminal: str) -> None:
        match language:
            case _ if file:
                path = self._folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block)
            case "sh":
                self._run(INSTALL.sub("", block))
            case "text":
                assert _pattern(block).match(self._printed), self._printed
            case "console":
                assert terminal not in self._terminals, f"something runs in the {terminal}"
                self._terminals[terminal] = self._open(block)
            case _:
                raise AssertionError(f"a block of {language} has no :caption:")

    def _open(self, block: str) -> _Terminal:
        command, _, shown = block.removeprefix("$ ").partition("\n")
        opened = _Terminal(command, self._folder, self._environment)
        try:
            opened.until_shown(shown)
        except BaseException:
            opened.close()
            raise
        return opened

    def _run(self, commands: str) -> None:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        self._printed = ended.stdout
        assert ended.returncode == 0, f"{commands}{ended.stdout}"


class _Terminal:
    """A command that keeps running while the reader continues elsewhere."""

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._command = command
        descriptor, log = tempfile.mkstemp(".log", "terminal-", folder)
        self._log = Path(log)
        with open(descriptor, "wb") as out:
            self._process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until_shown(self, shown: str) -> None:
        """Wait until the command has printed a text."""
        pattern = _pattern(shown)

        def is_there() -> bool:
            has_ended = self._process.poll() is not None
            found = pattern.match(self._log.read_text()) is not None
            assert found or not has_ended, f"{self._command}\n{self._log.read_text()}"
            return found

        try:
            until(is_there, shown)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self._log.read_text()}") from None

    def interrupt(self) -> None:
        """Press Ctrl-C, which a terminal sends to all processes of its command."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(PATIENCE)

    def close(self) -> None:
        """End the command if it still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(PATIENCE)


def _pattern(shown: str) -> re.Pattern[str]:
    """Return a pattern for the beginning of the output; this module's docstring says what may
    be left out."""
    return re.compile("".join(map(_line, shown.strip().splitlines())))


def _line(shown: str) -> str:
    if shown.strip() == "…":
        return r"(?:.*\n)*?"
    text = ".*".join(map(re.escape, shown.strip().split("…")))
    # The last line may have no line end.
    return rf"[ ]*{text}[ ]*(?:\n|\Z)"
