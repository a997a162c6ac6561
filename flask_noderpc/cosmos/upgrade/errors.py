"""Errors of x/upgrade; SDK: x/upgrade/types/errors.go."""

from __future__ import annotations

from ..bank.errors import Code

NO_VERSION = Code(2, "module version not found", "upgrade")
