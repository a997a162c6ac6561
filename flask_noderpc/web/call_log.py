"""Log of calls: one line for each, with its client, method and outcome.

Parameters are never logged: they may be transactions or private queries.
"""

from __future__ import annotations

import logging

from flask import has_request_context, request

log = logging.getLogger("flask_noderpc.calls")


def log_call(*, method: str, seconds: float, outcome: int, transport: str) -> None:
    """Log a call with the values of :data:`~flask_noderpc.signals.rpc_called`."""
    record = {
        "method": method,
        "outcome": outcome,
        "milliseconds": round(seconds * 1000, 3),
        "transport": transport,
        "client": (request.remote_addr if has_request_context() else None) or "-",
    }
    # As text for readers of lines, and as attributes for JSON formatters.
    log.info(" ".join(f"{name}=%s" for name in record), *record.values(), extra=record)
