"""An ABCI application of your own: a counter that transactions add to."""

from pathlib import Path

from flask import Flask

from flask_noderpc import (
    Application,
    AppState,
    BlockExecution,
    BlockRequest,
    EmbeddedChain,
    InitChain,
    NodeRPC,
)
from flask_noderpc.domain.abci import AppInfo, Event, EventAttribute, ExecTxResult, QueryResult
from flask_noderpc.domain.genesis import Genesis

MAX_DIGITS = 18


class Counter(Application):
    """Adds up the numbers that transactions carry as text."""

    name = "acme-counter"
    # info() and query() follow from the state alone, so their answers may be cached.
    is_chain_only = True

    def __init__(self, state: AppState) -> None:
        self._state = state

    def _stored(self, key: bytes) -> int:
        return int(self._state.get(key) or b"0")

    def info(self) -> AppInfo:
        """Return the app hash after the last block: the total."""
        return AppInfo(
            data="counter",
            version="1",
            last_block_height=self._stored(b"height"),
            last_block_app_hash=self._stored(b"total").to_bytes(32),
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        """Begin with 0."""
        return InitChain(app_hash=bytes(32))

    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Accept a number of few digits."""
        if tx.isdigit() and len(tx) <= MAX_DIGITS:
            return ExecTxResult()
        return ExecTxResult(code=1, log=f"expected at most {MAX_DIGITS} digits")

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        """Add the transactions; the changes are stored together with the block."""
        total, results = self._stored(b"total"), []
        for tx in block.txs:
            # Other nodes' blocks may have transactions that this node never checked.
            result = self.check_tx(tx)
            if result.code == 0:
                total += int(tx)
                added = Event("added", (EventAttribute(b"number", tx),))
                result = ExecTxResult(events=(added,))
            results.append(result)
        changes = {b"total": b"%d" % total, b"height": b"%d" % block.height}
        return BlockExecution(tuple(results), total.to_bytes(32), changes=changes)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Return the total, for any path."""
        return QueryResult(
            key=data, value=b"%d" % self._stored(b"total"), height=self._stored(b"height")
        )


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app whose chain runs the counter."""
    app = Flask(__name__, instance_path=instance_path)
    chain = EmbeddedChain(Path(app.instance_path) / "counter.db", application=Counter)
    NodeRPC(app, backend=chain)
    return app
