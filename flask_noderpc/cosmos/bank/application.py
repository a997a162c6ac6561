"""The application ``bank``, whose accounts, balances and transactions are the Cosmos SDK's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from ...backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockRequest,
    Changes,
    InitChain,
)
from ...backends.base.reads import ChainReads
from ...domain.abci import AppInfo, ExecTxResult, QueryResult
from ...domain.genesis import Genesis
from ...errors import InvalidSetting
from ...lru import CacheMemory, LRUCache
from ...settings import Settings
from ..settings import CosmosSettings
from . import queries, state
from .context import Environment, Mode
from .errors import Code, TxError
from .execute import DecodedTx, TxExecution, decode
from .gas import GasMeter
from .genesis import DEFAULT_PREFIX, check_prefix, describe, first_state
from .messages import BANK_HANDLERS, Handler, Registry
from .pending import PendingState, Recheck
from .prices import Prices, parse_prices, show_prices
from .state import RETAINED_HEIGHTS, Branch, app_hash, block_changes, find_head, head

# Decoded transactions are cached, as each is checked, rechecked and delivered.
_DECODED_TXS, _DECODED_BYTES = 10_000, 32 << 20


class Bank(Application):
    """Application with accounts and balances, like the SDK's modules auth and bank.

    ``prefix`` is the address prefix of a new chain whose genesis has no addresses;
    ``retained_heights`` is the number of latest heights that can be queried and reverted to;
    ``min_gas_prices``, such as ``0.025stake``, is the price that a transaction must pay to be
    accepted. A subclass adds its own messages to ``handlers``.
    """

    name = "bank"
    makes_empty_blocks_together = True
    checks_in_turn = True
    handlers: Iterable[Handler] = BANK_HANDLERS

    def __init__(
        self,
        app_state: AppState,
        *,
        prefix: str = DEFAULT_PREFIX,
        retained_heights: int = RETAINED_HEIGHTS,
        min_gas_prices: str = "",
    ) -> None:
        if retained_heights < 1:
            raise InvalidSetting(
                f"NODERPC_BANK_HEIGHTS: expected at least 1, got {retained_heights}"
            )
        check_prefix(prefix)
        self._state, self._prefix, self._retained = app_state, prefix, retained_heights
        self._prices: Prices = parse_prices(min_gas_prices)
        self._registry = Registry(self.handlers)
        self._decoded = LRUCache[bytes, DecodedTx](
            _DECODED_TXS, _DECODED_BYTES, lambda each: 4 * each.tx.size + 2048
        )
        self._pending = PendingState(app_state, self._run)
        self._recheck: Recheck | None = None
        self._failing_check: ExecTxResult | None = None
        self._failing: TxError | None = None
        # The configured failure, if a transaction of the block that is being committed had it.
        self._failed: TxError | None = None

    def info(self) -> AppInfo:
        latest = find_head(self._state.get)
        return AppInfo(
            data="bank",
            version="1",
            app_version=0,
            last_block_height=latest.height if latest else 0,
            last_block_app_hash=latest.app_hash if latest else b"",
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        branch, first = first_state(genesis, self._prefix)
        first = replace(first, app_hash=app_hash(b"", branch.writes))
        return InitChain(
            app_hash=first.app_hash,
            changes={**branch.writes, **state.head_changes(first)},
        )

    def describe_genesis(self, genesis: Genesis) -> Mapping[str, str]:
        first_state(genesis, self._prefix)
        return describe(genesis)

    def check_tx(self, tx: bytes) -> ExecTxResult:
        failing, self._failing_check = self._failing_check, None
        if failing is not None:
            return failing
        return self._pending.run(Mode.CHECK, tx)

    def fail_next_tx(self, result: ExecTxResult | None, *, in_check: bool = False) -> None:
        if in_check or result is None:
            self._failing_check = result
        if not in_check:
            code = Code(result.code, result.log, result.codespace) if result else None
            self._failing = TxError(code) if code else None

    def begin_recheck(self) -> None:
        self._recheck = Recheck(self._state, self._run)

    def recheck_tx(self, tx: bytes) -> ExecTxResult:
        if self._recheck is None:
            return self.check_tx(tx)
        return self._recheck.check(tx)

    def simulate(self, tx: bytes) -> ExecTxResult:
        """Return the result of a transaction after the pending ones; signatures are not
        checked and gas is not limited."""
        return self._pending.run(Mode.SIMULATE, tx)

    def _run(
        self, mode: Mode, tx: bytes, branch: Branch, environment: Environment
    ) -> ExecTxResult:
        run = TxExecution(self._registry, mode, environment, min_gas_prices=self._prices)
        return run.result(tx, branch, self._decode)

    def _decode(self, raw: bytes) -> DecodedTx:
        found = self._decoded.get(raw)
        if found is None:
            found = self._decoded.put(raw, decode(raw, self._registry))
        return found

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        latest = head(self._state)
        environment = Environment(latest, block.height, block.time)
        branch = Branch(self._state.get)
        limit = latest.max_gas if latest.max_gas > 0 else None
        block_gas = GasMeter(limit)
        results, asked = [], self._failing
        failing = asked
        for tx in block.txs:
            run = TxExecution(
                self._registry, Mode.DELIVER, environment, block_gas, failure=failing
            )
            results.append(run.result(tx, branch, self._decode))
            failing = run.failure
        self._failed = None if failing else asked
        new = replace(
            latest,
            height=block.height,
            time=block.time,
            app_hash=app_hash(latest.app_hash, branch.changed_values()),
        )
        return BlockExecution(
            tx_results=tuple(results),
            app_hash=new.app_hash,
            changes=block_changes(self._state, branch, new, self._retained),
        )

    def commit(self, height: int) -> None:
        # Keep a failure that was configured since the block was executed.
        if self._failing is self._failed:
            self._failing = None

    def undo_changes(self, height: int) -> Changes:
        self._pending.forget()
        return state.undo_changes(self._state, head(self._state), height)

    def verify_state(self, chain: ChainReads) -> None:
        super().verify_state(chain)
        state.verify(self._state, chain)

    def sdk_prefix(self) -> str:
        return head(self._state).prefix

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        node = queries.Node(self.simulate, show_prices(self._prices))
        return queries.answer(self._state, path, data, height, prove, node)


def bank(settings: Settings, path: str, memory: CacheMemory) -> Callable[[AppState], Bank]:
    """Return a function that makes the application with a mount's settings."""
    own = settings.of(CosmosSettings)
    return partial(
        Bank,
        prefix=own.bank_prefix,
        retained_heights=own.bank_heights,
    )
