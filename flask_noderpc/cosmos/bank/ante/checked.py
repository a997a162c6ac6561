"""A transaction that is being checked, with the values that all checks share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...protocol import tx as txs
from ...protocol.fields import InvalidMessage
from ...protocol.keys import Secp256k1Key
from ...protocol.messages import Msg
from ...protocol.tx import Signature, Tx
from ..accounts import Account, Params
from ..context import Context, Mode
from ..errors import (
    INTERNAL,
    TX_DECODE,
    UNKNOWN_ADDRESS,
    Panic,
    TxError,
)

# Public key that a simulation assumes for a signer without a key, to charge gas for it.
SIMULATED_KEY = Secp256k1Key(
    bytes.fromhex("035ad6810a47f073553ff30d2fcc7e0d3b1c0b74b61a1aaa2582344037151e143a")
)


@dataclass(frozen=True)
class CheckedTx:
    """A transaction that is being checked, and the purpose and context of the check."""

    tx: Tx
    messages: tuple[Msg, ...]
    context: Context
    mode: Mode
    min_gas_prices: dict[str, tuple[int, int]]
    """Minimum gas prices: numerator and denominator of the price, by denomination."""

    @property
    def simulates(self) -> bool:
        """True in a simulation, which requires neither signatures nor fees."""
        return self.mode is Mode.SIMULATE

    @property
    def params(self) -> Params:
        """Parameters of x/auth; each access reads the store and costs gas, as in the SDK."""
        return self.context.accounts.params()

    @property
    def fee(self) -> txs.Fee:
        """The fee of the transaction."""
        assert self.tx.fee is not None
        return self.tx.fee

    @cached_property
    def signers(self) -> tuple[bytes, ...]:
        """Addresses that must sign, without duplicates; raise :exc:`TxError` for an invalid
        address."""
        signers = self.context.environment.signers
        found = [each for message in self.messages for each in signers(message)]
        if self.fee.payer:
            found.append(self.context.codec.parse(self.fee.payer))
        return tuple(dict.fromkeys(found))

    @property
    def payer(self) -> bytes:
        """Address of the account that pays the fee."""
        if self.fee.payer:
            return self.context.codec.parse(self.fee.payer)
        if not self.signers:
            raise Panic("runtime error: index out of range [0] with length 0")
        return self.signers[0]

    @property
    def signatures(self) -> tuple[tuple[Signature | None, int], ...]:
        """Signatures with the sequences of their signers; raise :exc:`TxError` if they are
        invalid."""
        infos, given = self.tx.signers, self.tx.signatures
        if len(given) != len(infos):
            raise TxError(TX_DECODE, f"expected {len(infos)} signatures, got {len(given)}")
        return self._signatures

    @cached_property
    def _signatures(self) -> tuple[tuple[Signature | None, int], ...]:
        found: list[tuple[Signature | None, int]] = []
        for info, given in zip(self.tx.signers, self.tx.signatures, strict=True):
            if not info.has_mode:
                found.append((None, 0))
                continue
            try:
                found.append((txs.signature_of(info.mode, given), info.sequence))
            except InvalidMessage as error:
                raise TxError(INTERNAL, str(error)) from None
            except txs.NoMode as error:
                raise Panic(str(error)) from None
        return tuple(found)

    def account(self, address: bytes) -> Account:
        """Return a signer's account; raise :exc:`TxError` if it does not exist."""
        found = self.context.accounts.get(address)
        if found is None:
            shown = self.context.codec.show(address)
            raise TxError(UNKNOWN_ADDRESS, f"account {shown} does not exist")
        return found
