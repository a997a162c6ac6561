"""The application ``bank``, whose accounts, balances, modules and transactions are the Cosmos
SDK's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ...backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockRequest,
    Changes,
    InitChain,
)
from ...backends.base.capabilities import Capability
from ...backends.base.location import location_of
from ...backends.base.reads import ChainReads
from ...chain import home
from ...domain.abci import AppInfo, Event, EventAttribute, ExecTxResult, QueryResult
from ...domain.genesis import Genesis
from ...domain.validator import PublicKey
from ...errors import InvalidSetting
from ...lru import CacheMemory, LRUCache
from ...settings import Settings
from ..modules import MODULES, in_begin_order, in_end_order
from ..rest.routes import REST_ROUTES, of_module
from ..settings import CosmosSettings
from ..staking.faults import FAULTS, Faults
from . import consensus, queries, state
from .context import Context, Environment, Mode
from .errors import Code, TxError
from .execute import DecodedTx, TxExecution, decode
from .gas import GasMeter
from .genesis import DEFAULT_PREFIX, GenesisReader, check_prefix, describe
from .messages import BANK_HANDLERS, Handler, Registry
from .module import Module, check_modules
from .pending import PendingState, Recheck
from .prices import Prices, parse_prices, show_prices
from .state import (
    RETAINED_HEIGHTS,
    Branch,
    Committed,
    Head,
    app_hash,
    block_changes,
    find_head,
    head,
)

# Decoded transactions are cached, as each is checked, rechecked and delivered.
_DECODED_TXS, _DECODED_BYTES = 10_000, 32 << 20


class Bank(Application):
    """Application with accounts and balances, like the SDK's modules auth and bank.

    ``prefix`` is the address prefix of a new chain whose genesis has no addresses;
    ``retained_heights`` is the number of latest heights that can be queried and reverted to;
    ``min_gas_prices``, such as ``0.025stake``, is the price that a transaction must pay to be
    accepted. A subclass adds its own messages to ``handlers``, and its own modules to
    ``modules``. ``held`` returns the validators' keys of a development node; other validators
    take no part in consensus then.
    """

    name = "bank"
    makes_empty_blocks_together = True
    checks_in_turn = True
    handlers: Iterable[Handler] = BANK_HANDLERS
    modules: tuple[Module, ...] = MODULES

    def __init__(
        self,
        app_state: AppState,
        *,
        prefix: str = DEFAULT_PREFIX,
        retained_heights: int = RETAINED_HEIGHTS,
        min_gas_prices: str = "",
        held: Callable[[], Iterable[PublicKey]] | None = None,
    ) -> None:
        if retained_heights < 1:
            raise InvalidSetting(
                f"NODERPC_BANK_HEIGHTS: expected at least 1, got {retained_heights}"
            )
        check_prefix(prefix)
        self._state, self._prefix, self._retained = app_state, prefix, retained_heights
        self._prices: Prices = parse_prices(min_gas_prices)
        self._held = held
        self._registry = cache(self._registry_of)
        self._decoded = LRUCache[bytes, DecodedTx](
            _DECODED_TXS, _DECODED_BYTES, lambda each: 4 * each.tx.size + 2048
        )
        self._pending = PendingState(app_state, self._run)
        self._recheck: Recheck | None = None
        self._failing_check: ExecTxResult | None = None
        self._failing: TxError | None = None
        # The configured failure, if a transaction of the block that is being committed had it.
        self._failed: TxError | None = None
        self._faults = Faults(self._latest)
        check_modules(self.modules, self.handlers)
        self._routes = tuple(
            route
            for each in self.modules
            if each not in MODULES
            for route in of_module(each.name, each.service, each.routes, each.queries)
        )

    def info(self) -> AppInfo:
        latest = find_head(self._state.get)
        return AppInfo(
            data="bank",
            version="1",
            app_version=0,
            last_block_height=latest.height if latest else 0,
            last_block_app_hash=latest.app_hash if latest else b"",
        )

    def _registry_of(self, modules: tuple[str, ...]) -> Registry:
        return Registry(
            [*self.handlers, *(each for own in self._named(modules) for each in own.handlers)]
        )

    def _named(self, names: tuple[str, ...]) -> tuple[Module, ...]:
        return tuple(each for each in self.modules if each.name in names)

    def _environment(self, latest: Head, height: int, time: int) -> Environment:
        modules, messages = self._named(latest.modules), self._registry(latest.modules)
        return Environment(latest, height, time, modules, messages)

    def _latest(self) -> Context:
        """Return a context of the latest block."""
        latest = head(self._state)
        environment = self._environment(latest, latest.height, latest.time)
        return Context(Branch(Committed(self._state)), environment)

    def _genesis(self) -> GenesisReader:
        return GenesisReader(self._prefix, self.modules, self._deliver_genesis_tx, self._held)

    def _deliver_genesis_tx(
        self, branch: Branch, environment: Environment, tx: bytes
    ) -> ExecTxResult:
        registry = self._registry(environment.head.modules)
        run = TxExecution(registry, Mode.DELIVER, environment)
        return run.result(tx, branch, partial(decode, registry=registry))

    def init_chain(self, genesis: Genesis) -> InitChain:
        found = self._genesis().read(genesis)
        first = replace(found.head, app_hash=app_hash(b"", found.branch.writes))
        return InitChain(
            app_hash=first.app_hash,
            validators=found.validators,
            changes={**found.branch.writes, **state.head_changes(first)},
        )

    def describe_genesis(self, genesis: Genesis) -> Mapping[str, str]:
        return describe(genesis, self._genesis().read(genesis))

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
        if result is None:
            self._faults.clear()

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

    def _run(self, mode: Mode, tx: bytes, branch: Branch, latest: Head) -> ExecTxResult:
        # Before the first block, transactions are checked as in that block.
        height = latest.height or latest.initial_height
        environment = self._environment(latest, height, latest.time)
        registry = self._registry(latest.modules)
        run = TxExecution(registry, mode, environment, min_gas_prices=self._prices)
        return run.result(tx, branch, partial(self._decode, registry))

    def _decode(self, registry: Registry, raw: bytes) -> DecodedTx:
        found = self._decoded.get(raw)
        if found is None:
            found = self._decoded.put(raw, decode(raw, registry))
        return found

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        before = self._latest()
        latest, branch = before.environment.head, before.branch
        environment = self._environment(latest, block.height, block.time)
        info = self._faults.apply(consensus.block_info(branch, block), before, block.height)
        own = replace(environment, block=info)
        modules = Context(branch, own)
        for module in in_begin_order(own.modules):
            module.begin_block(modules)
        begin_events, modules.events = _in_mode("BeginBlock", modules.events), []
        results = self._deliver(block, branch, environment)
        for module in in_end_order(own.modules):
            module.end_block(modules)
        updates = consensus.end(branch, modules.validator_updates) if own.modules else ()
        new = replace(
            latest,
            height=block.height,
            time=block.time,
            app_hash=app_hash(latest.app_hash, branch.changed_values()),
        )
        return BlockExecution(
            tx_results=results,
            app_hash=new.app_hash,
            begin_events=begin_events,
            end_events=_in_mode("EndBlock", modules.events),
            validator_updates=updates,
            changes=block_changes(self._state, branch, new, self._retained),
        )

    def _deliver(
        self, block: BlockRequest, branch: Branch, environment: Environment
    ) -> tuple[ExecTxResult, ...]:
        latest = environment.head
        block_gas = GasMeter(latest.max_gas if latest.max_gas > 0 else None)
        registry = self._registry(latest.modules)
        results, asked = [], self._failing
        failing = asked
        for tx in block.txs:
            run = TxExecution(registry, Mode.DELIVER, environment, block_gas, failure=failing)
            results.append(run.result(tx, branch, partial(self._decode, registry)))
            failing = run.failure
        self._failed = None if failing else asked
        return tuple(results)

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

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        return {REST_ROUTES: self._routes, FAULTS: self._faults}

    def sdk_prefix(self) -> str:
        return head(self._state).prefix

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        names = head(self._state).modules
        prices = show_prices(self._prices)
        node = queries.Node(self.simulate, prices, self._registry(names))
        modules = self._named(names)
        asked = queries.Query(path, data, height, prove)
        return queries.answer(self._state, modules, asked, node)


def _in_mode(mode: str, events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events of modules at the beginning or the end of a block; SDK: baseapp,
    ``beginBlock``."""
    attribute = EventAttribute(b"mode", mode.encode())
    return tuple(replace(each, attributes=(*each.attributes, attribute)) for each in events)


def bank(settings: Settings, path: str, memory: CacheMemory) -> Callable[[AppState], Bank]:
    """Return a function that makes the application with a mount's settings."""
    own = settings.of(CosmosSettings)
    folder = settings.home or location_of(path).folder
    return partial(
        Bank,
        prefix=own.bank_prefix,
        retained_heights=own.bank_heights,
        held=partial(_keys, Path(folder)) if settings.dev and folder else None,
    )


def _keys(folder: Path) -> Iterable[PublicKey]:
    return [key.public for key in home.load(folder, 0).validator_keys]
