"""Test double of an Ethermint chain: transactions and their events, without an EVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ..backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockLimits,
    BlockRequest,
    Changes,
    InitChain,
)
from ..domain.abci import AppInfo, Event, ExecTxResult, QueryResult
from ..domain.genesis import Genesis
from .domain import execution
from .domain.forks import PRAGUE
from .domain.records import Transaction
from .protocol import rlp
from .protocol.ethermint import Layout, TransactionResult, event, tx_events
from .protocol.execution import created_address, ethereum_transactions
from .protocol.forms import WORD
from .protocol.validity import intrinsic_gas

_LOGS, _FAILS = b"\x10\x95", b"\xfa\x11"

# Gas prices of the Yellow Paper.
_GAS_LOG, _GAS_TOPIC, _GAS_LOG_BYTE = 375, 375, 8


@dataclass(frozen=True, slots=True)
class EmittedLog:
    """Data and topics of a log to emit; a topic has 32 bytes."""

    topics: tuple[bytes, ...] = ()
    data: bytes = b""


def log_contract(number: int = 0) -> bytes:
    """Return the address of a contract that emits the logs in its calldata."""
    return _LOGS + number.to_bytes(18)


def failing_contract(number: int = 0) -> bytes:
    """Return the address of a contract that reverts."""
    return _FAILS + number.to_bytes(18)


def log_calldata(*logs: EmittedLog) -> bytes:
    """Return calldata that makes a :func:`log_contract` emit these logs."""
    return rlp.encode([[log.topics, log.data] for log in logs])


def run(tx: Transaction) -> TransactionResult:
    """Return the result of a transaction; only calls to the two kinds of contracts run
    code."""
    gas = intrinsic_gas(PRAGUE, tx.data, tx.to is None)
    if tx.to is None or tx.to[:2] not in (_LOGS, _FAILS):
        return TransactionResult(tx, gas)
    if tx.to[:2] == _FAILS:
        return TransactionResult(tx, gas, "execution reverted")
    try:
        logs = _logs(tx.data)
    except rlp.Malformed:
        return TransactionResult(tx, gas, "execution reverted")
    gas += sum(_log_gas(log) for log in logs)
    if gas > tx.gas:
        return TransactionResult(tx, tx.gas, "out of gas")
    emitted = tuple(execution.EmittedLog(tx.to, log.topics, log.data) for log in logs)
    return TransactionResult(tx, gas, logs=emitted)


def _log_gas(log: EmittedLog) -> int:
    return _GAS_LOG + _GAS_TOPIC * len(log.topics) + _GAS_LOG_BYTE * len(log.data)


def _logs(data: bytes) -> tuple[EmittedLog, ...]:
    logs = []
    items = rlp.Reader(data).list("logs")
    while not items.done:
        log = items.list("a log")
        topics = log.list("topics")
        logs.append(EmittedLog(_topics(topics), log.string("data")))
    return tuple(logs)


def _topics(items: rlp.Reader) -> tuple[bytes, ...]:
    topics = []
    while not items.done:
        topics.append(items.string("a topic"))
    # The EVM has LOG0 to LOG4.
    if len(topics) > 4 or any(len(topic) != WORD for topic in topics):
        raise rlp.Malformed("expected at most 4 topics of 32 bytes in a log")
    return tuple(topics)


FUNDS = 10**24
"""Initial balance of every account in wei."""

BASE_FEE = 10**9

_HEIGHT, _APP_HASH = b"height", b"app_hash"

# Cosmos SDK: types/errors/errors.go.
_TX_DECODE, _INSUFFICIENT_FUNDS, _OUT_OF_GAS, _INVALID_SEQUENCE = 2, 5, 11, 32


@dataclass(frozen=True, slots=True)
class Account:
    """State of an address; the balance is in wei."""

    nonce: int = 0
    balance: int = FUNDS


class _Refused(Exception):
    """Refusal of a transaction, with an error code of the Cosmos SDK and a reason."""

    def __init__(self, code: int, log: str) -> None:
        self.result = ExecTxResult(code=code, log=log)
        super().__init__(log)


class EthermintDouble(Application):
    """Application that accepts Ethereum transactions, bare or in Cosmos SDK transactions, and
    emits Ethermint's events.

    Transactions move value, increase nonces and pay for gas. The only contracts are those of
    :func:`log_contract` and :func:`failing_contract`. Every account starts with ``FUNDS``. With
    ``base_fee=None`` the chain has no fee market.
    """

    def __init__(
        self, state: AppState, layout: Layout = Layout.SPLIT, base_fee: int | None = BASE_FEE
    ) -> None:
        self._state, self._layout, self._base_fee = state, layout, base_fee

    def info(self) -> AppInfo:
        """Return name, version and latest height."""
        return AppInfo(
            data="ethermint-double",
            version="1",
            last_block_height=int(self._state.get(_HEIGHT) or b"0"),
            last_block_app_hash=self._state.get(_APP_HASH) or b"",
        )

    def init_chain(self, genesis: Genesis) -> InitChain:
        """Return an empty state."""
        return InitChain(app_hash=bytes(32), changes={_APP_HASH: bytes(32)})

    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Return code 0 if a transaction is signed, can be paid for, and has the sender's next
        nonce or a later one."""
        transactions = ethereum_transactions(tx, unsigned=False)
        try:
            _check_known(transactions)
            for each in transactions:
                account = self.account(each.sender)
                if each.nonce < account.nonce:
                    raise _Refused(_INVALID_SEQUENCE, "nonce too low")
                self._check_paid(each, account)
        except _Refused as refused:
            return refused.result
        return ExecTxResult(gas_wanted=sum(each.gas for each in transactions))

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        """Return the transactions without nonce gaps, by nonce; the others stay pending."""
        known = [
            (found, tx) for tx in txs if (found := ethereum_transactions(tx, unsigned=False))
        ]
        next_nonces: dict[bytes, int] = {}
        ready = []
        for found, tx in sorted(known, key=lambda pair: pair[0][0].nonce):
            sender, nonce = found[0].sender, found[0].nonce
            if nonce == next_nonces.setdefault(sender, self.account(sender).nonce):
                next_nonces[sender] += len(found)
                ready.append(tx)
        return tuple(ready)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        """Execute the block's transactions; return results, events and changes of the
        state."""
        accounts: dict[bytes, Account] = {}
        results: list[ExecTxResult] = []
        count = 0
        for tx in block.txs:
            try:
                runs = tuple(self._run_all(ethereum_transactions(tx, unsigned=False), accounts))
            except _Refused as refused:
                results.append(refused.result)
                continue
            events = tx_events(runs, self._layout, sha256(tx).digest(), count, block.height)
            count += len(runs)
            results.append(_result(runs, events))
        return self._execution(block.height, tuple(results), accounts)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Refuse every query."""
        return QueryResult(log="does not exist", key=data)

    def account(self, address: bytes) -> Account:
        """Return nonce and balance after the last block."""
        stored = self._state.get(_account_key(address))
        if stored is None:
            return Account()
        return Account(int.from_bytes(stored[:8]), int.from_bytes(stored[8:]))

    def _run_all(
        self, transactions: Sequence[Transaction], accounts: dict[bytes, Account]
    ) -> Iterator[TransactionResult]:
        """Run the Ethereum transactions in one node transaction; if one is refused, none of
        them changes an account."""
        _check_known(transactions)
        changed: dict[bytes, Account] = {}
        for tx in transactions:
            done = run(tx)
            self._pay(done, accounts, changed)
            yield done
        accounts.update(changed)

    def _pay(
        self,
        done: TransactionResult,
        accounts: dict[bytes, Account],
        changed: dict[bytes, Account],
    ) -> None:
        def now(address: bytes) -> Account:
            return changed.get(address) or accounts.get(address) or self.account(address)

        tx = done.tx
        payer = now(tx.sender)
        if tx.nonce != payer.nonce:
            side = "low" if tx.nonce < payer.nonce else "high"
            raise _Refused(_INVALID_SEQUENCE, f"nonce too {side}")
        self._check_paid(tx, payer)
        value = 0 if done.error else tx.value
        fee = done.gas_used * tx.gas_price_at(self._base_fee)
        changed[tx.sender] = Account(payer.nonce + 1, payer.balance - fee - value)
        address = created_address(tx.sender, tx.nonce) if tx.to is None else tx.to
        payee = now(address)
        changed[address] = Account(payee.nonce, payee.balance + value)

    def _check_paid(self, tx: Transaction, account: Account) -> None:
        if tx.gas < intrinsic_gas(PRAGUE, tx.data, tx.to is None):
            raise _Refused(_OUT_OF_GAS, "intrinsic gas too low")
        if tx.value + tx.gas * tx.gas_price_at(self._base_fee) > account.balance:
            text = "insufficient funds for gas * price + value"
            raise _Refused(_INSUFFICIENT_FUNDS, text)

    def _execution(
        self, height: int, results: tuple[ExecTxResult, ...], accounts: dict[bytes, Account]
    ) -> BlockExecution:
        changes: Changes = {
            _account_key(address): account.nonce.to_bytes(8) + account.balance.to_bytes(16)
            for address, account in accounts.items()
        }
        digest = sha256(self._state.get(_APP_HASH) or b"")
        for key, value in sorted(changes.items()):
            digest.update(key + (value or b""))
        app_hash = digest.digest()
        gas = sum(result.gas_used for result in results)
        fee = str(self._base_fee)
        return BlockExecution(
            tx_results=results,
            app_hash=app_hash,
            begin_events=() if self._base_fee is None else (event("fee_market", base_fee=fee),),
            end_events=(event("block_gas", height=str(height), amount=str(gas)),),
            changes={**changes, _APP_HASH: app_hash, _HEIGHT: str(height).encode()},
        )


def _check_known(transactions: Sequence[Transaction]) -> None:
    if not transactions:
        raise _Refused(_TX_DECODE, "expected at least one Ethereum transaction")


def _result(runs: Sequence[TransactionResult], events: tuple[Event, ...]) -> ExecTxResult:
    return ExecTxResult(
        gas_wanted=sum(run.tx.gas for run in runs),
        gas_used=sum(run.gas_used for run in runs),
        events=events,
    )


def _account_key(address: bytes) -> bytes:
    return b"account:" + address
