"""Load by wrk on the second core, over keep-alive connections."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

_SPEED = re.compile(r"Requests/sec:\s+([\d.]+)")
_COUNT = re.compile(r"(\d+) requests in")
_PART = r"{}%\s+([\d.]+)(us|ms|s)\b"
_BAD = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}

# Without this function, wrk builds its request once. With it, the first request is not sent.
_SCRIPT = """
local lines, at = {{}}, -1
for line in io.lines("{lines}") do lines[#lines + 1] = line end
local post = {post}
if post then
  wrk.method, wrk.body = "POST", lines[1]
  wrk.headers["Content-Type"] = "application/json"
end
if #lines > 1 then
  request = function()
    local line = lines[math.max(at, 0) % #lines + 1]
    at = at + 1
    if post then return wrk.format(nil, nil, nil, line) end
    return wrk.format(nil, line)
  end
end
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """Requests that are repeated in turn: GETs of paths, or POSTs of bodies."""

    paths: tuple[str, ...] = ("",)
    bodies: tuple[str, ...] = ()
    connections: int = 16
    only_once: bool = False
    """Whether a request may be sent only once."""

    @property
    def first(self) -> tuple[str, str | None]:
        """Path and body of the first request."""
        return self.paths[0], self.bodies[0] if self.bodies else None


@dataclass(frozen=True, slots=True)
class Run:
    """Figures that wrk measured."""

    per_second: float
    p50_ms: float
    p99_ms: float


def load(url: str, ask: Ask, seconds: int) -> Run:
    """Run wrk once; fail if a response is an error."""
    with tempfile.TemporaryDirectory() as folder:
        lines, script = Path(folder) / "lines", Path(folder) / "script.lua"
        lines.write_text("\n".join(ask.bodies or ask.paths) + "\n")
        script.write_text(_SCRIPT.format(lines=lines, post=str(bool(ask.bodies)).lower()))
        words = ["taskset", "-c", "1", "wrk", "--latency", "-t1", f"-c{ask.connections}"]
        words += [f"-d{seconds}s", "-s", str(script), url + ask.paths[0]]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    if bad := _BAD.search(text):
        raise click.ClickException(f"{url}{ask.paths[0]}: {bad[0]}")
    if ask.only_once and int(_found(_COUNT, text)[1]) > len(ask.bodies or ask.paths):
        raise click.ClickException(f"{url}{ask.paths[0]}: asked for more than there is")
    speed = float(_found(_SPEED, text)[1])
    return Run(speed, _milliseconds(50, text), _milliseconds(99, text))


def _milliseconds(part: int, text: str) -> float:
    found = _found(re.compile(_PART.format(part)), text)
    return float(found[1]) * _MILLISECONDS[found[2]]


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.search(text)
    assert found is not None, text
    return found
