"""Types of messages, and those of the module bank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .fields import AnyValue, InvalidMessage, Kind, Values, declared


@dataclass(frozen=True, slots=True)
class MessageType:
    """A type of messages: its name, its fields and its names for others."""

    type_url: str
    """Such as ``/cosmos.bank.v1beta1.MsgSend``."""
    kind: Kind
    amino_name: str = ""
    """Its name in amino JSON; empty lets nobody sign it so, as with Ledger's devices."""

    @property
    def response_url(self) -> str:
        """The name of the response."""
        return f"{self.type_url}Response"

    @property
    def module(self) -> str:
        """The module, as the SDK reads it from the name."""
        parts = self.type_url.split(".")
        return parts[1] if len(parts) > 1 else ""


@dataclass(frozen=True, slots=True)
class Msg:
    """A message: its type and its values."""

    type: MessageType
    values: Values

    def signers(self) -> Iterator[str]:
        """Yield the addresses of those who must sign it."""
        return self.type.kind.signers(self.values)

    def amino_json(self) -> object:
        """Return it in amino JSON; raise :exc:`InvalidMessage` if its type has none."""
        if not self.type.amino_name:
            raise InvalidMessage(f"{self.type.type_url} has no name in amino JSON")
        value = self.type.kind.amino_json(self.values)
        return {"type": self.type.amino_name, "value": value}


def decode(given: AnyValue, known: MessageType | None) -> Msg:
    """Return the message of an ``Any``; raise :exc:`InvalidMessage`."""
    if known is None:
        raise InvalidMessage(
            f"no concrete type registered for type URL {given.type_url} against interface"
            " *interface { ProtoMessage(); Reset(); String() string }"
        )
    return Msg(known, known.kind.decode(given.value))


MSG_SEND = MessageType(
    "/cosmos.bank.v1beta1.MsgSend",
    declared("*types.MsgSend", "cosmos.bank.v1beta1.MsgSend", signer="from_address"),
    "cosmos-sdk/MsgSend",
)
MSG_MULTI_SEND = MessageType(
    "/cosmos.bank.v1beta1.MsgMultiSend",
    declared(
        "*types.MsgMultiSend",
        "cosmos.bank.v1beta1.MsgMultiSend",
        signer="inputs",
        inputs=declared("*types.Input", "Input", signer="address"),
        outputs=declared("*types.Output", "Output"),
    ),
    "cosmos-sdk/MsgMultiSend",
)
