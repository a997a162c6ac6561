"""Differences that are allowed between a companion and its node, each with its reason."""

from __future__ import annotations

from .compare import Difference
from .explained import Reason, reason

ALLOWED = (
    Reason(
        r"net genesis_chunked\?chunk=1",
        r"body\.error\.data",
        "fixed: as many chunks are named as there are",
    ),
    Reason(
        "net status",
        r"body\.result\.node_info\.version",
        "tag v0.40.0 that go install built says 0.39.0",
        r"0\.40.*",
    ),
    Reason(
        "net net_info",
        r"body\.result\.peers\[\d+\]\.connection_status\..*",
        "how long a connection has been there and what went over it changes with each call",
    ),
    Reason(
        "net dump_consensus_state",
        r"body\.result\.peers\[\d+\]\.peer_state\.stats\..*",
        "what peers have sent so far changes with each call",
    ),
    Reason(
        "notification tm.event='NewBlock(Header)?'",
        r"replies\[0\]\.result\.data\.value\.result_end_block\.validator_updates",
        "docs/dialects.rst: null without changes, where this application says []",
        r"0\.3[47].*",
    ),
    Reason(
        "net tx_search.*",
        r"body\.result\.(total_count|txs.*)",
        "docs/dialects.rst: 1.0.1 fills pages with index hits, and sorts the transactions of a"
        " block by their hashes",
        r"1\.0.*",
    ),
)


def is_allowed(version: str, one: Difference) -> bool:
    """Return true if a difference has a reason."""
    return any(known.covers(version, one) for known in ALLOWED) or (
        reason(version, one) is not None
    )
