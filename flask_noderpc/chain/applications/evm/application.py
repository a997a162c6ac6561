"""The application of a chain that runs Ethereum's transactions.

Its transactions are raw signed Ethereum bytes. It tells of them in Ethermint's events, so
that whatever reads an Ethermint chain reads this one; the app hash is the state's root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockLimits,
    BlockRequest,
    Changes,
    InitChain,
    SenderNonce,
)
from ....backends.base.evm_state import Evm
from ....domain.abci import AppInfo, Event, QueryResult, TxResult
from ....domain.ethereum import Transaction
from ....domain.evm import NO_STORAGE, Account, Environment, Outcome, Overrides, StateChange
from ....domain.genesis import Genesis
from ....domain.params import BlockParams, ConsensusParamsUpdate
from ....domain.time import SECOND
from ....engine.jobs import ExecuteBlock, Executed, Patch, Refused
from ....errors import (
    BackendError,
    BlockNotExecuted,
    ExecutionFailed,
    InvalidTransaction,
    StoreError,
)
from ....lru import LRUCache
from ....protocol.comet.hashes import tx_hash
from ....protocol.ethereum import accounts, validity
from ....protocol.ethereum.ethermint import COINBASE
from ....protocol.ethereum.ethermint_events import Layout, Run, event, tx_events
from ....protocol.ethereum.transactions import decode
from . import genesis as documents
from .head import BLOCKS_NEEDED, INITIAL_BASE_FEE, EvmHead, head, undo_changes, written
from .patches import LaterBlockChanges, change_of, is_patch
from .pool import select_txs
from .proposal_backoff import Backoff
from .runtime import EvmRuntime

BLOCK_GAS = 15_000_000
"""The gas limit of a block, unless the genesis has one: some seconds of the engine's time."""

CODE_REFUSED = 1
CODESPACE = "evm"

# Also of those that are refused, which may have a megabyte each.
_DECODED_TXS, _DECODED_BYTES = 10_000, 32 << 20
# What a transaction weighs beside its bytes, about.
_TX_BYTES = 2048


class EvmApplication(Application):
    """Runs Ethereum's transactions.

    With ``dev`` accounts are also changed by hand, and its own node may send in any name.
    """

    name = "evm"
    selects_txs = True

    needs_blocks = BLOCKS_NEEDED

    def __init__(
        self, state: AppState, runtime: EvmRuntime, chain_id: int, *, dev: bool = False
    ) -> None:
        self._state, self._runtime, self._chain_id = state, runtime, chain_id
        self._dev = dev
        self._decoded = LRUCache[bytes, Transaction](
            _DECODED_TXS, _DECODED_BYTES, _weight, runtime.memory
        )
        self._backoff = Backoff()

    def evm(self) -> Evm:
        return self._runtime

    def close(self) -> None:
        self._runtime.close()

    def info(self) -> AppInfo:
        own = head(self._state)
        return AppInfo(
            data="evm",
            version="1",
            app_version=1,
            last_block_height=own.height if own else 0,
            last_block_app_hash=own.root if own else b"",
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        overrides = documents.accounts(genesis.app_state)
        change = StateChange(NO_STORAGE)
        if overrides:
            change = self._runtime.execute(Patch(NO_STORAGE, overrides))
        limit = genesis.consensus_params.block.max_gas
        update = None
        if limit < 0:
            limit = BLOCK_GAS
            block = genesis.consensus_params.block
            update = ConsensusParamsUpdate(block=BlockParams(block.max_bytes, limit))
        first = EvmHead(0, change.root, INITIAL_BASE_FEE, 0, limit)
        return InitChain(
            app_hash=change.root,
            consensus_params=update,
            changes={**change.written, **written(first)},
        )

    def check_tx(self, tx: bytes) -> TxResult:
        result = self._check(tx, unsigned=False)
        if result.code:
            return result
        try:
            # What waits already keeps its place while the base fee rises.
            validity.check_tip(self._decode(tx), self._head().next_base_fee)
        except InvalidTransaction as error:
            return _refusal(str(error))
        return result

    def recheck_tx(self, tx: bytes) -> TxResult:
        if self._dev and is_patch(tx):
            return TxResult()
        return self._check(tx, unsigned=self._dev)

    def _check(self, tx: bytes, *, unsigned: bool) -> TxResult:
        if self._backoff.is_poison(tx):
            return _refusal("the transaction takes longer than a block may")
        try:
            found = self._decode(tx)
            if not (found.is_signed or unsigned):
                raise InvalidTransaction("invalid transaction v, r, s values")
            own = self._head()
            validity.check_form(found, self._chain_id, own.gas_limit)
            account = self._account(own, found.sender)
            validity.check_nonce(found, account)
            validity.check_funds(found, account)
        except InvalidTransaction as error:
            return _refusal(str(error))
        return TxResult(gas_wanted=found.gas)

    def sender_nonce(self, tx: bytes) -> SenderNonce | None:
        if is_patch(tx):
            return None
        found = self._decode(tx)
        return SenderNonce(
            hash=found.hash,
            sender=found.sender,
            nonce=found.nonce,
            next_nonce=self._account(self._head(), found.sender).nonce,
            fee_cap=found.fee_cap,
            tip=found.tip_cap,
        )

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        own = self._head()
        txs = [tx for tx in txs if not self._backoff.is_poison(tx)]
        patches = tuple(filter(is_patch, txs))
        if self._dev and patches:
            # Alone: a block's Ethereum transactions run again on the state before it.
            return self._backoff.limit(patches[:1])
        waiting = (self._decode(tx) for tx in txs if not is_patch(tx))
        chosen = select_txs(
            # A chain that was one for development may still have unsigned ones.
            (tx for tx in waiting if self._dev or tx.is_signed),
            lambda sender: self._account(own, sender),
            own.next_base_fee,
            limits,
        )
        return self._backoff.limit(chosen)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        own = self._head()
        patched = LaterBlockChanges(own.next_base_fee)
        txs: list[bytes | Overrides] = []
        for tx in block.txs:
            if self._dev and is_patch(tx):
                txs.append(patched.add(change_of(tx)))
            else:
                txs.append(tx)
        environment = Environment(
            chain_id=self._chain_id,
            number=block.height,
            timestamp=block.time // SECOND,
            coinbase=own.coinbase or block.proposer_address,
            gas_limit=own.gas_limit,
            base_fee=patched.base_fee,
        )
        if patched.state is not None:
            executed = Executed(patched.state, (None,) * len(txs))
        else:
            executed = self._executed(block, ExecuteBlock(own.root, environment, tuple(txs)))
        results = tuple(_results(block, executed))
        gas = sum(result.gas_used for result in results)
        made = EvmHead(
            block.height,
            executed.change.root,
            environment.base_fee,
            gas,
            own.gas_limit if patched.block is None else patched.block.max_gas,
            patched.coinbase or own.coinbase,
        )
        return BlockExecution(
            tx_results=results,
            app_hash=made.root,
            begin_events=_begin_events(own, environment),
            end_events=(event("block_gas", height=str(block.height), amount=str(gas)),),
            consensus_param_updates=patched.updates(),
            changes={**executed.change.written, **written(made)},
        )

    def _executed(self, block: BlockRequest, job: ExecuteBlock) -> Executed:
        if not block.txs and not self._backoff.has_suspects():
            # It has no system calls, rewards or withdrawals: the state stays as it is.
            self._backoff.done(block.txs)
            return Executed(StateChange(job.root), ())
        try:
            executed = self._runtime.execute(job)
        except Exception as error:
            if isinstance(error, BackendError) and not isinstance(error, ExecutionFailed):
                raise
            # The engine is foreign code: what it can't run is left out as well.
            self._backoff.failed(block.txs)
            if not block.txs:
                raise
            text = error.text if isinstance(error, ExecutionFailed) else repr(error)
            raise BlockNotExecuted(block.height, len(block.txs), text) from None
        self._backoff.done(block.txs)
        return executed

    def undo_changes(self, height: int) -> Changes:
        return undo_changes(self._state, self._head().height, height)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Nothing is asked here: the EVM layer has its own methods."""
        log = "nothing can be asked by abci_query: the methods of the EVM layer read the state"
        return QueryResult(code=CODE_REFUSED, log=log, key=data, codespace=CODESPACE)

    def _head(self) -> EvmHead:
        own = head(self._state)
        if own is None:
            raise StoreError("the state is that of another application")
        return own

    def _account(self, own: EvmHead, address: bytes) -> Account:
        return accounts.account(self._runtime.record, own.root, address)

    def _decode(self, raw: bytes) -> Transaction:
        """A transaction; what waits is looked at for every block."""
        found = self._decoded.get(raw)
        return self._decoded.put(raw, decode(raw, unsigned=True)) if found is None else found


def _results(block: BlockRequest, executed: Executed) -> Iterator[TxResult]:
    count = 0
    for tx, found in zip(block.txs, executed.outcomes, strict=True):
        if found is None:
            yield TxResult()
        elif isinstance(found, Refused):
            yield _refusal(found.reason)
        else:
            yield _result(tx, *found, count, block.height)
            count += 1


def _begin_events(own: EvmHead, environment: Environment) -> tuple[Event, ...]:
    fee = event("fee_market", base_fee=str(environment.base_fee))
    if not own.coinbase:
        return (fee,)
    return fee, event(COINBASE, address=f"0x{own.coinbase.hex()}")


def _weight(tx: Transaction) -> int:
    # Its data, or lists of twice their size.
    return _TX_BYTES + 4 * len(tx.raw)


def _refusal(reason: str) -> TxResult:
    return TxResult(code=CODE_REFUSED, log=reason, codespace=CODESPACE)


def _result(raw: bytes, tx: Transaction, outcome: Outcome, index: int, height: int) -> TxResult:
    run = Run(tx, outcome.gas_used, outcome.error, outcome.logs)
    return TxResult(
        gas_wanted=tx.gas,
        gas_used=outcome.gas_used,
        events=_events(raw, run, index, height),
    )


def _events(raw: bytes, run: Run, index: int, height: int) -> tuple[Event, ...]:
    return tx_events((run,), Layout.SINGLE, tx_hash(raw), index, height)
