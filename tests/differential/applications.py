"""The kvstore of older nodes, as far as the scenario can show a difference."""

from __future__ import annotations

from flask_noderpc.backends.base.application import AppState
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import ExecTxResult, QueryResult


class KVStore037(KVStore):
    """The kvstore of 0.37, which refuses only empty transactions and has no query paths."""

    def __init__(self, state: AppState, version: str = "0.37") -> None:
        super().__init__(state, version)

    def check_tx(self, tx: bytes) -> ExecTxResult:
        return ExecTxResult(gas_wanted=1) if tx else ExecTxResult(code=6)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        return super().query("", data, height, prove)


class KVStore034(KVStore037):
    """The kvstore of 0.34, which refuses no transaction."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state, "0.34")

    def check_tx(self, tx: bytes) -> ExecTxResult:
        return ExecTxResult(gas_wanted=1)
