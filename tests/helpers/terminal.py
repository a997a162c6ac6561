"""Run a program whose stderr is a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from .until import PATIENCE


def run_on_terminal(command: Sequence[str], **env: str) -> tuple[str, str]:
    """Return what a program writes to stdout, and to the terminal."""
    own, terminal = pty.openpty()
    shown = b""
    with subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **env},
        stdout=subprocess.PIPE,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        # On Linux, EIO means that no process has the terminal open.
        with suppress(OSError):
            while part := os.read(own, 4096):
                shown += part
        os.close(own)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, shown
    return out.decode(), shown.decode()
