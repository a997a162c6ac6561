"""A line in the log for each call: who asked for what, and how it went.

Parameters are never in it: they may be transactions, and what somebody looks for.
"""

from __future__ import annotations

import logging

from flask import has_request_context, request

log = logging.getLogger("flask_noderpc.calls")


def log_call(*, method: str, seconds: float, outcome: int, transport: str) -> None:
    """Log what :data:`~flask_noderpc.signals.rpc_called` says of a call."""
    told = {
        "method": method,
        "outcome": outcome,
        "milliseconds": round(seconds * 1000, 3),
        "transport": transport,
        "client": (request.remote_addr if has_request_context() else None) or "-",
    }
    # Once for those who read lines, and once for those who make JSON of records.
    log.info(" ".join(f"{name}=%s" for name in told), *told.values(), extra=told)
