"""Filters of receipt subscriptions."""

from __future__ import annotations

from typing import Any

from ...wire.params import ParamField
from ..errors import EvmError
from .members import Members
from .params import Hash, mismatch

# geth: eth/filters/api.go, maxTxHashes.
_MOST_HASHES = 200
_MEMBERS = Members("transactionHashes")


class ReceiptFilter(ParamField):
    """The hashes of the transactions that are meant; none are all."""

    json_type = "object"

    def from_json(self, value: Any) -> frozenset[bytes]:
        """The hashes; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, dict):
            raise mismatch(value, "filters.input")
        hashes = _MEMBERS.of(value).get("transactionHashes")
        if not isinstance(hashes, list | None):
            raise mismatch(hashes, "[]common.Hash")
        if len(hashes or ()) > _MOST_HASHES:
            raise EvmError(
                "exceed max number of transaction hashes allowed per transactionReceipts"
                " subscription"
            )
        return frozenset(map(Hash().from_json, hashes or ()))
