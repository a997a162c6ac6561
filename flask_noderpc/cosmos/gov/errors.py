"""Errors of x/gov; SDK: x/gov/types/errors.go."""

from __future__ import annotations

from functools import partial

from ..bank.errors import Code

_code = partial(Code, codespace="gov")

INACTIVE_PROPOSAL = _code(3, "inactive proposal")
INVALID_CONTENT = _code(5, "invalid proposal content")
INVALID_PROPOSAL_TYPE = _code(6, "invalid proposal type")
INVALID_VOTE = _code(7, "invalid vote option")
NO_CONTENT_HANDLER = _code(9, "no handler exists for proposal type")
NO_MESSAGES = _code(11, "no messages proposed")
INVALID_MESSAGE = _code(12, "invalid proposal message")
METADATA_TOO_LONG = _code(15, "metadata too long")
DEPOSIT_TOO_SMALL = _code(16, "minimum deposit is too small")
INVALID_PROPOSER = _code(18, "invalid proposer")
VOTING_ENDED = _code(20, "voting period already ended")
INVALID_PROPOSAL = _code(21, "invalid proposal")
SUMMARY_TOO_LONG = _code(22, "summary too long")
INVALID_DEPOSIT_DENOM = _code(23, "invalid deposit denom")
