"""Features are found by their folders, and loaded when they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flask_noderpc
from flask_noderpc.feature import features
from tests.helpers.until import PATIENCE

PACKAGE = Path(flask_noderpc.__file__).parent


def test_each_folder_with_a_declaration_is_a_feature() -> None:
    folders = sorted(each.parent.name for each in PACKAGE.glob("*/feature.py"))
    assert [each.name for each in features()] == folders
    assert "ethereum" in folders


_LOADED = """
import sys
import flask_noderpc
from flask_noderpc import DIALECTS, COMETBFT_ROUTES, NodeRPC
import flask_noderpc.testing.plugin
print(*(name for name in sys.modules if name.endswith(".feature") and name.count(".") > 1))
"""


def test_no_feature_is_loaded_before_it_is_used() -> None:
    words = [sys.executable, "-c", _LOADED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout.strip(), done.stderr) == ("", "")


_COMMANDS = """
import sys
import flask_noderpc.feature as feature
feature.features = lambda: (feature.Feature(name="mine", commands=("my_commands",)),)
from flask_noderpc.cli import cli, main
print(*sorted(main.commands), "|", *sorted(cli.commands))
"""
_MINE = """
from flask_noderpc.cli.app import cli
from flask_noderpc.cli.node import main

@main.command("shout")
def shout() -> None:
    "Shout."

@cli.command("whisper")
def whisper() -> None:
    "Whisper."
"""


def test_commands_are_those_of_the_core_and_of_the_features_that_are_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "my_commands.py").write_text(_MINE)
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        env={"PYTHONPATH": f"{tmp_path}:{PACKAGE.parent}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stderr == ""
    of_node, _, of_app = done.stdout.partition("|")
    assert {"shout", "start"} <= set(of_node.split())
    assert {"whisper", "start"} <= set(of_app.split())
    assert not {"conform", "follow", "import"} & {*of_node.split(), *of_app.split()}
