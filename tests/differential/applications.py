"""The kvstore as older nodes have it, as far as the story can tell the difference."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from flask_noderpc.backend.application import Changes
from flask_noderpc.chain.kvstore import KVStore
from flask_noderpc.domain.abci import AppInfo, QueryResult, TxResult


class KVStore1(KVStore):
    """That of 1.0: another version of itself."""

    says: ClassVar[str] = "2.1.0"

    def info(self) -> AppInfo:
        return replace(super().info(), version=self.says)


class KVStore037(KVStore1):
    """That of 0.37: refuses nothing but the empty, begins without a hash, has no paths."""

    says = "1.0.0"

    def check_tx(self, tx: bytes) -> TxResult:
        return TxResult(gas_wanted=1) if tx else TxResult(code=6)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        return super().query("", data, height, prove)

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        return b"", {}


class KVStore034(KVStore037):
    """That of 0.34: refuses nothing."""

    says = "0.17.0"

    def check_tx(self, tx: bytes) -> TxResult:
        return TxResult(gas_wanted=1)
