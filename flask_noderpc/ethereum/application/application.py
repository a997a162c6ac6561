"""Application of a chain that executes Ethereum transactions.

Its transactions are raw signed Ethereum transactions. Its events are Ethermint's, so that
clients of Ethermint chains can read them; the app hash is the state root.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockLimits,
    BlockRequest,
    Changes,
    InitChain,
    SenderNonce,
)
from ...backends.base.capabilities import Capability
from ...backends.base.reads import ChainReads
from ...domain.abci import AppInfo, Event, ExecTxResult, QueryResult
from ...domain.genesis import BlockParams, ConsensusParamsUpdate, Genesis
from ...domain.time import SECOND
from ...errors import (
    BackendError,
    BlockNotExecuted,
    ConfigurationError,
    ExecutionFailed,
    InvalidTransaction,
    StoreError,
)
from ...lru import LRUCache
from ...protocol.comet.hashes import tx_hash
from ..dev_log import log_transactions
from ..domain.execution import (
    NO_STORAGE,
    Account,
    AccountOverride,
    Environment,
    Outcome,
    Overrides,
    StateChange,
    history_slot,
)
from ..domain.forks import (
    HISTORY_ADDRESS,
    HISTORY_CODE,
    Activation,
    Schedule,
    extended,
    fork_at,
)
from ..domain.records import ZERO_HASH, Transaction
from ..engine.jobs import ExecuteBlock, ExecutedBlock, Patch, RefusedTransaction
from ..engine.state import State
from ..engine.stored import StoredState
from ..protocol import accounts, validity
from ..protocol.ethermint import (
    COINBASE,
    PREV_RANDAO,
    Layout,
    TransactionResult,
    event,
    tx_events,
)
from ..protocol.transactions import decode, refuse_long_lists
from ..settings import CHAIN_ID, DEV_CHAIN_ID
from ..state import EVM_STATE
from . import patches as evm_genesis
from .patches import LaterBlockChanges, change_of, is_patch
from .proposals import Backoff, select_txs
from .state import (
    BLOCKS_NEEDED,
    ChainRules,
    EvmHead,
    EvmRuntime,
    ForkPoint,
    calls_changes,
    fork_point,
    head,
    head_at,
    head_records,
    schedule,
    schedule_record,
    undo_changes,
    verify_records,
)

_MAX_GAS = (1 << 63) - 1

BLOCK_GAS = 15_000_000
"""Default gas limit of a block; the engine takes some seconds to use so much gas."""

log = logging.getLogger(__name__)

CODE_REFUSED = 1
CODESPACE = "evm"

# Limits of the cache of decoded transactions. It includes rejected ones, which may have a
# megabyte each.
_DECODED_TXS, _DECODED_BYTES = 10_000, 32 << 20
# Revert data above this size is not stored; a reason or a custom error has some hundred bytes.
_MAX_REASON_BYTES = 4 << 10
# Approximate size in memory of a decoded transaction without its data.
_TX_OBJECT_BYTES = 2048


class EvmApplication(Application):
    """Application ``evm``, which executes Ethereum transactions.

    With ``dev`` it also accepts patches of the state, unsigned transactions of any sender that
    the node itself submits, and transactions of accounts with code.
    """

    name = "evm"
    selects_txs = True
    makes_empty_blocks_together = True

    needs_blocks = BLOCKS_NEEDED

    def __init__(
        self,
        state: AppState,
        runtime: EvmRuntime,
        chain_id: int | None = None,
        *,
        dev: bool = False,
        takes_unprotected_txs: bool = False,
        rules: ChainRules | None = None,
    ) -> None:
        self._state, self._runtime, self._chain_id = state, runtime, chain_id
        self._dev, self._takes_unprotected_txs = dev, takes_unprotected_txs
        runtime.rules = self._rules = rules or ChainRules()
        self.keeps_chain_time = runtime.fork is not None
        # The latest block, and the environment of the next one.
        self._next: tuple[EvmHead, Environment] | None = None
        self._is_checked = False
        self._decoded = LRUCache[bytes, Transaction](
            _DECODED_TXS, _DECODED_BYTES, _weight, runtime.memory
        )
        self._backoff = Backoff()

    def _check_scheduled(self, latest: EvmHead | None) -> Schedule:
        """Return the forks of the chain; refuse a setting that it can't have."""
        first = (Activation(0, self._rules.first),)
        recorded = first if latest is None else schedule(self._state)
        height = 1 if latest is None else latest.height + 1
        try:
            return extended(recorded, self._rules.scheduled, height)
        except ValueError as error:
            raise ConfigurationError(f"NODERPC_EVM_FORKS: {error}") from None

    def _check_chain_id(self) -> None:
        """Refuse a setting that differs from the chain ID with which the chain began.

        The current chain ID may differ after ``anvil_setChainId``: the command that started
        the chain must be able to start it again.
        """
        first = head_at(self._state, 0)
        if first is None or not (first.chain_id and self._chain_id):
            return
        if first.chain_id != self._chain_id:
            raise ConfigurationError(
                f"NODERPC_EVM_CHAIN_ID: expected {first.chain_id}, with which the chain began,"
                f" got {self._chain_id}; remove the setting, or set NODERPC_DATABASE to a new"
                " file to start another chain (noderpc start: --home)"
            )

    def _check_fork(self) -> None:
        """Refuse to go on with a chain whose fork is not the one of the settings."""
        point, fork = fork_point(self._state), self._runtime.fork
        if head(self._state) is None or (point is None and fork is None):
            return
        if point is None:
            raise ConfigurationError(
                "NODERPC_FORK_URL: expected no fork, as the chain began without one, got one"
                f" with the values in {fork.path if fork else ''}; remove the setting, and that"
                " file if it exists, or set NODERPC_DATABASE to a new file to start another"
                " chain (noderpc start: --home)"
            )
        if fork is None:
            raise ConfigurationError(
                "NODERPC_FORK_URL: expected the settings with which the chain began, after"
                f" block {point.number} (0x{point.hash.hex()}), got none; set it, or"
                " NODERPC_FORK_CACHE to the file of the values"
            )
        _ = fork.block

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        return {EVM_STATE: self._runtime}

    def close(self) -> None:
        self._runtime.close()

    def info(self) -> AppInfo:
        latest = head(self._state)
        if not self._is_checked:
            # The chain's start asks this, and refuses a wrong setting.
            self._check_scheduled(latest)
            self._check_chain_id()
            self._check_fork()
            self._is_checked = True
        return AppInfo(
            data="evm",
            version="1",
            app_version=1,
            last_block_height=latest.height if latest and not self._is_genesis(latest) else 0,
            last_block_app_hash=latest.root if latest else b"",
        )

    def _is_genesis(self, latest: EvmHead) -> bool:
        genesis = head_at(self._state, 0)
        return genesis is not None and genesis.height == latest.height

    def new_genesis(self, genesis: Genesis) -> Genesis:
        """Return the document of a new chain; a forked one goes on after the other chain's
        block."""
        fork = self._runtime.fork
        if fork is None:
            return genesis
        header = fork.block.header
        return replace(
            genesis,
            initial_height=header.number + 1,
            genesis_time=(header.timestamp + 1) * SECOND,
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        # A chain without blocks begins again when it starts.
        self._check_fork()
        overrides = evm_genesis.accounts(genesis.app_state)
        fork = self._runtime.fork
        block = fork.block if fork else None
        root, written = (
            accounts.forked_state(block.header.number) if block else (NO_STORAGE, {})
        )
        if block is not None:
            # The other chain may have code for the well-known development accounts (EIP-7702),
            # so an account of the genesis replaces the code as well.
            overrides = {
                address: replace(each, code=each.code or b"")
                for address, each in overrides.items()
            }
        if self._dev and self._rules.first.has_history_contract:
            # Deploy the contract of EIP-2935, as in anvil's genesis.
            contract = AccountOverride(nonce=1, code=HISTORY_CODE)
            overrides = {HISTORY_ADDRESS: contract, **overrides}
        change = StateChange(root)
        if overrides:
            change = self._runtime.execute(Patch(root, overrides))
        limit = genesis.consensus_params.block.max_gas
        update = None
        if limit < 0:
            limit = min(block.header.gas_limit, _MAX_GAS) if block else BLOCK_GAS
            max_bytes = genesis.consensus_params.block.max_bytes
            update = ConsensusParamsUpdate(block=BlockParams(max_bytes, limit))
        default = block.chain_id if block else DEV_CHAIN_ID if self._dev else CHAIN_ID
        chain_id = self._chain_id or default
        # The block before the first: block 0, or the one after which the chain is forked.
        first = EvmHead(
            genesis.initial_height - 1,
            change.root,
            validity.INITIAL_BASE_FEE,
            0,
            limit,
            chain_id=chain_id,
        )
        if block is not None:
            header = block.header
            # Without a coinbase, tips would go to the validator. Each home has another one, so
            # each run would read another account.
            first = replace(
                first,
                base_fee=header.base_fee or 0,
                gas_used=header.gas_used,
                coinbase=header.miner or b"",
            )
            written = {
                **written,
                **ForkPoint(header.hash or b"", header.number, block.is_proven).record(),
            }
        return InitChain(
            app_hash=change.root,
            consensus_params=update,
            changes={
                **written,
                **change.written,
                **head_records(first, 0),
                **schedule_record(self._check_scheduled(None)),
            },
        )

    def describe_genesis(self, genesis: Genesis) -> Mapping[str, str]:
        accounts = evm_genesis.accounts(genesis.app_state)
        supply = sum(each.balance or 0 for each in accounts.values())
        contracts = sum(bool(each.code) for each in accounts.values())
        return {
            "accounts": f"{len(accounts)}, {contracts} of them with code",
            "supply": f"{supply} wei",
        }

    def check_tx(self, tx: bytes) -> ExecTxResult:
        result = self._check(tx, unsigned=False)
        if result.code:
            return result
        decoded = self._decode(tx)
        try:
            if not self._takes_unprotected_txs:
                validity.check_protected(decoded)
            # recheck_tx does not check the fee, so a pending transaction stays in the mempool
            # if the base fee rises.
            validity.check_tip(decoded, self._head().next_base_fee)
        except InvalidTransaction as error:
            return _rejected(str(error))
        return result

    def recheck_tx(self, tx: bytes) -> ExecTxResult:
        if self._dev and is_patch(tx):
            return ExecTxResult()
        return self._check(tx, unsigned=self._dev)

    def _check(self, tx: bytes, *, unsigned: bool) -> ExecTxResult:
        if self._backoff.is_poison(tx):
            return _rejected(
                "the transaction takes longer than a block may; split it into smaller ones"
            )
        try:
            refuse_long_lists(tx)
            decoded = self._decode(tx)
            if not (decoded.is_signed or unsigned):
                raise InvalidTransaction("invalid transaction v, r, s values")
            latest = self._head()
            validity.check_form(decoded, self._next_environment(latest))
            account = self._account(latest, decoded.sender)
            validity.check_nonce(decoded, account)
            if not self._dev:
                code = accounts.code_of(self._runtime.record, account)
                validity.check_sender(decoded, code)
            validity.check_funds(decoded, account)
        except InvalidTransaction as error:
            return _rejected(str(error))
        return ExecTxResult(gas_wanted=decoded.gas)

    def sender_nonce(self, tx: bytes) -> SenderNonce | None:
        if is_patch(tx):
            return None
        decoded = self._decode(tx)
        return SenderNonce(
            hash=decoded.hash,
            sender=decoded.sender,
            nonce=decoded.nonce,
            next_nonce=self._account(self._head(), decoded.sender).nonce,
            fee_cap=decoded.fee_cap,
            tip=decoded.tip_cap,
        )

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        latest = self._head()
        txs = [tx for tx in txs if not self._backoff.is_poison(tx)]
        patches = tuple(filter(is_patch, txs))
        if self._dev and patches:
            # A patch gets a block of its own: traces replay the transactions of a block on
            # its parent's state, so no patch may come between.
            return self._backoff.limit(patches[:1])
        pending = (self._decode(tx) for tx in txs if not is_patch(tx))
        selected = select_txs(
            # A chain that used NODERPC_DEV before may still have unsigned ones pending.
            (tx for tx in pending if self._dev or tx.is_signed),
            lambda sender: self._account(latest, sender),
            latest.next_base_fee,
            limits,
            self._next_environment(latest).fork,
        )
        return self._backoff.limit(selected)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        latest = self._head()
        patched = LaterBlockChanges(latest.next_base_fee, latest.prev_randao)
        txs: list[bytes | Overrides] = []
        for tx in block.txs:
            if self._dev and is_patch(tx):
                txs.append(patched.add(change_of(tx)))
            else:
                txs.append(tx)
        environment = replace(
            self._next_environment(latest),
            timestamp=block.time // SECOND,
            coinbase=latest.coinbase or block.proposer_address,
            base_fee=patched.base_fee,
            prev_randao=patched.prev_randao or ZERO_HASH,
            parent_hash=block.last_commit.block_id.hash or self._hash_before_first(),
        )
        if patched.state is not None:
            executed = ExecutedBlock(patched.state, (None,) * len(txs))
        else:
            job = ExecuteBlock(
                latest.root,
                environment,
                tuple(txs),
                contracts_send=self._dev,
                records_calls=self._rules.records_calls,
            )
            executed = self._executed(block, job)
        if self._dev:
            log_transactions(executed)
        results = tuple(_results(block, executed, with_reason=self._dev))
        gas = sum(result.gas_used for result in results)
        new_head = EvmHead(
            block.height,
            executed.change.root,
            environment.base_fee,
            gas,
            latest.gas_limit if patched.block is None else patched.block.max_gas,
            patched.coinbase or latest.coinbase,
            patched.chain_id or latest.chain_id,
            patched.next_prev_randao,
        )
        return BlockExecution(
            tx_results=results,
            app_hash=new_head.root,
            begin_events=_begin_events(latest, environment),
            end_events=(event("block_gas", height=str(block.height), amount=str(gas)),),
            consensus_param_updates=patched.updates(),
            changes={
                **executed.change.written,
                **head_records(new_head),
                **self._new_schedule(),
                **calls_changes(self._state, block.height, records=self._rules.records_calls),
            },
        )

    def _hash_before_first(self) -> bytes:
        """Return the hash of the block after which the chain was forked, else zeros."""
        point = fork_point(self._state)
        return point.hash if point else ZERO_HASH

    def _next_environment(self, latest: EvmHead) -> Environment:
        """Return the environment of the next block, without its time and coinbase."""
        # Another thread, whose latest block is another one, may replace the pair meanwhile.
        known = self._next
        if known is None or known[0] != latest:
            known = self._next = latest, self._environment_after(latest)
        return known[1]

    def _environment_after(self, latest: EvmHead) -> Environment:
        height = latest.height + 1
        return Environment(
            chain_id=latest.chain_id or self._chain_id or CHAIN_ID,
            number=height,
            timestamp=0,
            gas_limit=latest.gas_limit,
            base_fee=latest.next_base_fee,
            code_size_limit=self._rules.code_size_limit,
            fork=fork_at(self._runtime.forks(), height),
            caps_tx_gas=self._rules.caps_tx_gas,
            keeps_console=self._dev,
        )

    def _new_schedule(self) -> Mapping[bytes, bytes]:
        """Return the new record of the forks; empty if the setting does not change it."""
        forks = self._runtime.forks()
        if forks == schedule(self._state):
            return {}
        shown = ", ".join(f"{each.fork.name}:{each.height}" for each in forks)
        log.info("the forks of the chain are %s from now on, by NODERPC_EVM_FORKS", shown)
        return schedule_record(forks)

    def _executed(self, block: BlockRequest, job: ExecuteBlock) -> ExecutedBlock:
        if not block.txs and not self._backoff.has_suspects():
            self._backoff.record_success(block.txs)
            return ExecutedBlock(self._empty_change(job), ())
        try:
            executed = self._runtime.execute(job)
        except Exception as error:
            if isinstance(error, BackendError) and not isinstance(error, ExecutionFailed):
                raise
            # An unexpected exception of the engine counts as a failed block, too.
            self._backoff.record_failure(block.txs)
            if not block.txs:
                raise
            reason = error.text if isinstance(error, ExecutionFailed) else repr(error)
            raise BlockNotExecuted(block.height, len(block.txs), reason) from None
        self._backoff.record_success(block.txs)
        return executed

    def _empty_change(self, job: ExecuteBlock) -> StateChange:
        """Compute the change of the state by an empty block, without an executor process.

        There are no rewards or withdrawals; only the history contract, if the chain has it,
        stores the parent's hash (EIP-2935).
        """
        state = State(StoredState(self._runtime.record, job.root), keeps_names=self._dev)
        if not state.code(HISTORY_ADDRESS):
            return StateChange(job.root)
        slot, parent_hash = history_slot(job.environment.number), job.environment.parent_hash
        state.override_storage(HISTORY_ADDRESS, slot, int.from_bytes(parent_hash))
        state.persist()
        return StateChange(state.root, state.written())

    def undo_changes(self, height: int) -> Changes:
        return undo_changes(self._state, self._head().height, height)

    def verify_state(self, chain: ChainReads) -> None:
        # The settings are not needed: the store has all records of the state's tries.
        self._is_checked = True
        super().verify_state(chain)
        latest = self._head()
        verify_records(self._state.get, latest.height, latest.root)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Return an error, as Ethereum's JSON-RPC reads the state instead."""
        log = (
            "abci_query: the application 'evm' has no queries; read the state with Ethereum's"
            " JSON-RPC, such as eth_call"
        )
        return QueryResult(code=CODE_REFUSED, log=log, key=data, codespace=CODESPACE)

    def _head(self) -> EvmHead:
        latest = head(self._state)
        if latest is None:
            raise StoreError(
                "the store has no state of the application 'evm'; check NODERPC_APPLICATION"
                " and NODERPC_DATABASE"
            )
        return latest

    def _account(self, latest: EvmHead, address: bytes) -> Account:
        return accounts.account(self._runtime.record, latest.root, address)

    def _decode(self, raw: bytes) -> Transaction:
        # Cache decoded transactions, as each block needs all pending ones.
        decoded = self._decoded.get(raw)
        if decoded is None:
            decoded = self._decoded.put(raw, decode(raw, unsigned=True))
        return decoded


def _results(
    block: BlockRequest, executed: ExecutedBlock, *, with_reason: bool
) -> Iterator[ExecTxResult]:
    count = 0
    for tx, outcome in zip(block.txs, executed.outcomes, strict=True):
        if outcome is None:
            yield ExecTxResult()
        elif isinstance(outcome, RefusedTransaction):
            yield _rejected(outcome.reason)
        else:
            yield _result(tx, *outcome, count, block.height, with_reason=with_reason)
            count += 1


def _begin_events(latest: EvmHead, environment: Environment) -> tuple[Event, ...]:
    events = [event("fee_market", base_fee=str(environment.base_fee))]
    if latest.coinbase:
        events.append(event(COINBASE, address=f"0x{latest.coinbase.hex()}"))
    if environment.prev_randao != ZERO_HASH:
        events.append(event(PREV_RANDAO, value=f"0x{environment.prev_randao.hex()}"))
    return tuple(events)


def _weight(tx: Transaction) -> int:
    # Four times the encoded size: for the raw bytes, the decoded data, and access lists, which
    # take up to twice their encoded size.
    return _TX_OBJECT_BYTES + 4 * len(tx.raw)


def _rejected(reason: str) -> ExecTxResult:
    return ExecTxResult(code=CODE_REFUSED, log=reason, codespace=CODESPACE)


def _result(
    raw: bytes, tx: Transaction, outcome: Outcome, index: int, height: int, *, with_reason: bool
) -> ExecTxResult:
    shown = with_reason and outcome.reverted and len(outcome.output) <= _MAX_REASON_BYTES
    run = TransactionResult(
        tx,
        outcome.gas_used,
        outcome.error,
        outcome.logs,
        outcome.calls,
        outcome.output if shown else None,
    )
    return ExecTxResult(
        gas_wanted=tx.gas,
        gas_used=outcome.gas_used,
        events=_events(raw, run, index, height),
    )


def _events(raw: bytes, run: TransactionResult, index: int, height: int) -> tuple[Event, ...]:
    return tx_events((run,), Layout.SINGLE, tx_hash(raw), index, height)
