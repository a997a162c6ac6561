"""Log of development chains: the messages of ``console.log``, and why transactions failed."""

from __future__ import annotations

import logging

from .domain.execution import Outcome
from .engine.base import reason
from .engine.jobs import ExecutedBlock
from .protocol import console

log = logging.getLogger("flask_noderpc.contracts")

# Maximum bytes of revert data that a line shows in hex, and characters of a reason.
_MAX_SHOWN, _MAX_REASON = 256, 2_048


def log_messages(source: str, outcome: Outcome) -> None:
    """Log what the contracts of a transaction or a call printed; ``source`` names it."""
    if not log.isEnabledFor(logging.INFO):
        return
    for data in outcome.console:
        log.info("%s: console.log: %s", source, console.message(data))


def log_transactions(executed: ExecutedBlock) -> None:
    """Log what the contracts of a block's transactions printed, and why transactions failed."""
    for each in executed.outcomes:
        if isinstance(each, tuple):
            tx, outcome = each
            source = f"transaction 0x{tx.hash.hex()}"
            log_messages(source, outcome)
            if outcome.error:
                log.info("%s failed: %s", source, _failure(outcome))


def _failure(outcome: Outcome) -> str:
    if not outcome.reverted:
        return outcome.error
    why = console.escaped(reason(outcome.output)[:_MAX_REASON])
    data = outcome.output[:_MAX_SHOWN].hex()
    return f"{outcome.error}: {why or f'0x{data}'}" if outcome.output else outcome.error
