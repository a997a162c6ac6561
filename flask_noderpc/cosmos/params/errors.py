"""Errors of x/params; SDK: x/params/types/proposal/errors.go."""

from __future__ import annotations

from ..bank.errors import Code

UNKNOWN_SUBSPACE = Code(2, "unknown subspace", "params")
