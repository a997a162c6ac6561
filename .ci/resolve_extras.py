"""Check that pip finds a wheel of each dependency: ``python .ci/resolve_extras.py DIST``.

The wheel in the folder DIST is resolved with its extras for each version of Python and each
platform that it supports, as somebody without compilers would install it. Nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLATFORMS = "x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"
# These two have all others among their dependencies.
ALL = "benchmarks,docs"
# py-arkworks-bls12381 and blake2b-py have no wheels for 3.15.
EXTRAS = {
    "3.11": ALL,
    "3.12": ALL,
    "3.13": ALL,
    "3.14": ALL,
    "3.15": "bank,metrics,opentelemetry,postgres",
}
TIMEOUT_S = 120


def main() -> None:
    """End with status 1 if a combination has no solution."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    jobs = [(wheel, *job, platform) for job in EXTRAS.items() for platform in PLATFORMS]
    # Most of the time uv waits for the index.
    with ThreadPoolExecutor(6) as pool:
        failures = list(filter(None, pool.map(lambda job: resolve(*job), jobs)))
    sys.exit("\n".join(failures) or None)


def resolve(wheel: Path, python: str, extras: str, platform: str) -> str | None:
    """Resolve the extras by wheels alone; return why there is no solution."""
    command = ["uv", "pip", "compile", "-", "--quiet", "--only-binary", ":all:"]
    command += ["--python-version", python, "--python-platform", platform]
    done = subprocess.run(
        command,
        input=f"flask-noderpc[{extras}] @ {wheel.as_uri()}",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        return f"[{extras}] on Python {python}, {platform}: {done.stderr}"
    count = sum("==" in line for line in done.stdout.splitlines())
    print(f"[{extras}] on Python {python}, {platform}: {count} wheels", flush=True)
    return None


main()
