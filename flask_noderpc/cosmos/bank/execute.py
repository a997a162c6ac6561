"""Run a transaction to check, simulate or deliver it; SDK: baseapp, ``runTx``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ...domain.abci import Event, ExecTxResult
from ...protocol.protobuf import blob, int64, message, string
from ..protocol import tx as txs
from ..protocol.coins import MissingAmount
from ..protocol.fields import InvalidMessage
from ..protocol.keys import WrongSize
from ..protocol.messages import Msg
from ..protocol.tx import Tx
from .ante import CheckedTx, check
from .balances import event, with_attribute
from .context import Context, Environment, Mode
from .errors import INVALID_REQUEST, OUT_OF_GAS, TX_DECODE, Panic, TxError
from .gas import GasMeter, OutOfGas
from .messages import Registry
from .state import Branch

_DECODE_TWICE = TX_DECODE.text
PANICS = (Panic, MissingAmount, WrongSize, ArithmeticError)
"""Errors at which the SDK panics."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DecodedTx:
    """A decoded transaction, and its decoded messages."""

    tx: Tx
    messages: tuple[Msg, ...]


def decode(raw: bytes, registry: Registry) -> DecodedTx:
    """Decode a transaction; raise :exc:`TxError` for invalid bytes."""
    found: list[Msg] = []
    try:
        tx = txs.decode(
            raw, registry.resolve, lambda given: found.append(registry.decode(given))
        )
    except InvalidMessage as error:
        raise TxError(TX_DECODE, f"{error}: {_DECODE_TWICE}") from None
    if not found:
        raise TxError(INVALID_REQUEST, "must contain at least one message")
    return DecodedTx(tx, tuple(found))


Decode = Callable[[bytes], DecodedTx]


@dataclass
class TxExecution:
    """One run of a transaction, with its gas, events and responses."""

    registry: Registry
    mode: Mode
    environment: Environment
    block_gas: GasMeter | None = None
    """Gas meter of the block in which the transaction is delivered."""
    min_gas_prices: dict[str, tuple[int, int]] = field(default_factory=dict)
    failure: TxError | None = None
    """Error with which the transaction must fail, for tests; ``None`` after it was raised."""
    meter: GasMeter = field(default_factory=GasMeter)
    wanted: int = 0
    events: list[Event] = field(default_factory=list)
    responses: list[bytes] = field(default_factory=list)

    def result(self, raw: bytes, state: Branch, decode: Decode) -> ExecTxResult:
        """Run a transaction, write its changes to ``state`` and return its result; a
        transaction whose messages fail only pays its fee and increments sequences."""
        self.meter.consumed = self.environment.head.params_gas
        try:
            self._run(raw, state, decode)
        except TxError as error:
            return self._failed(error)
        except PANICS as error:
            return self._failed(Panic(str(error)).error())
        finally:
            self._end()
        return ExecTxResult(
            data=b"".join(message(2, each) for each in self.responses),
            gas_wanted=int64(self.wanted),
            gas_used=self.meter.consumed,
            events=tuple(self.events) if self._executes else (),
        )

    @property
    def _executes(self) -> bool:
        return self.mode in (Mode.DELIVER, Mode.SIMULATE)

    def _failed(self, error: TxError) -> ExecTxResult:
        return ExecTxResult(
            code=error.code.code,
            log=error.log,
            codespace=error.code.codespace,
            gas_wanted=int64(self.wanted),
            gas_used=self.meter.consumed,
            events=tuple(self.events),
        )

    def _run(self, raw: bytes, state: Branch, decode: Decode) -> None:
        if self.mode is Mode.DELIVER:
            self._refuse_unreadable(raw, decode)
        if self.block_gas is not None and self.block_gas.is_used_up:
            raise TxError(OUT_OF_GAS, "no block gas left to run tx")
        decoded = decode(raw)
        self.events = self._ante(decoded, state)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        branch = state.branch()
        try:
            events = self._messages(decoded.messages, branch)
            self._charge_block()
        except OutOfGas as error:
            raise TxError(OUT_OF_GAS, self.meter.out_of_gas(error, self.wanted)) from None
        if self._executes:
            state.apply(branch)
            self.events = [*self.events, *events]

    def _refuse_unreadable(self, raw: bytes, decode: Decode) -> None:
        """Raise :exc:`TxError` for bytes that are not a transaction, without charging the
        block gas."""
        try:
            decode(raw)
        except TxError as error:
            if error.code is TX_DECODE:
                self.meter.consumed, self.block_gas = 0, None
                raise TxError(TX_DECODE) from None

    def _ante(self, decoded: DecodedTx, state: Branch) -> list[Event]:
        fee = decoded.tx.fee
        if fee is None:
            raise Panic("runtime error: invalid memory address or nil pointer dereference")
        is_unlimited = self.mode is Mode.SIMULATE or self.environment.is_genesis
        meter = GasMeter(None if is_unlimited else fee.gas_limit)
        branch = state.branch()
        context = Context(branch, self.environment, meter)
        tx = CheckedTx(decoded.tx, decoded.messages, context, self.mode, self.min_gas_prices)
        try:
            check(tx)
        except TxError:
            self.meter, self.wanted = meter, fee.gas_limit
            raise
        except OutOfGas as error:
            self.meter, self.wanted = meter, fee.gas_limit
            text = meter.out_of_gas(error, fee.gas_limit)
            raise TxError(OUT_OF_GAS, text) from None
        self.meter, self.wanted = meter, fee.gas_limit
        state.apply(branch)
        return context.events

    def _messages(self, messages: Sequence[Msg], branch: Branch) -> list[Event]:
        found: list[Event] = []
        for at, given in enumerate(messages if self._executes else ()):
            inner = branch.branch()
            context = Context(inner, self.environment, self.meter)
            try:
                response = self._handle(context, given)
            except TxError as error:
                raise error.wrapped(f"failed to execute message; message index: {at}") from None
            branch.apply(inner)
            self.responses.append(response)
            own = [self._message_event(given, context.events), *context.events]
            found += [with_attribute(each, "msg_index", str(at)) for each in own]
        return found

    def _handle(self, context: Context, given: Msg) -> bytes:
        try:
            response = self.registry.handle(context, given)
            return string(1, given.type.response_url) + blob(2, response)
        except (TxError, OutOfGas, *PANICS):
            raise
        except Exception as error:
            # Report the error as the transaction's result; if it propagated, the producer
            # would retry this block forever.
            log.exception("message handler of %s raised an error", given.type.type_url)
            raise Panic(repr(error)) from None

    def _message_event(self, given: Msg, events: Sequence[Event]) -> Event:
        attributes = {"action": given.type.type_url}
        for signer in self.environment.signers(given):
            attributes["sender"] = self.environment.codec.show(signer)
            break
        has_module = any(a.key == b"module" for each in events for a in each.attributes)
        if not has_module and given.type.module:
            attributes["module"] = given.type.module
        return event("message", **attributes)

    def _charge_block(self) -> None:
        block, self.block_gas = self.block_gas, None
        if block is not None:
            block.consume(self.meter.charged, "block gas meter")

    def _end(self) -> None:
        # Ignore that the block is out of gas: this transaction has failed already, and the
        # next one is refused.
        with suppress(OutOfGas):
            self._charge_block()
