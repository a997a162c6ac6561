"""What our node answers, against what real nodes of each version said of the same chain."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from . import explained, run
from .sides import VERSIONS, Version, ours

each_version = pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())


@each_version
def test_no_answer_differs_without_a_reason(
    version: Version, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "werkzeug")
    files, theirs = run.read(version)
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    for name, content in files.items():
        (home / "config" / name).write_text(content)

    with ours(home, tmp_path / "ours", version) as side:
        own = run.hear(side, version)

    unexplained = [
        str(one)
        for one in run.all_differences(theirs, own)
        if explained.reason(version.name, one) is None
    ]
    assert unexplained == []
