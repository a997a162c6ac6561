"""Which of web3.py's tests fail, and why: test by pattern, reason."""

from __future__ import annotations

FAILURES: tuple[tuple[str, str], ...] = ()
