"""Types of messages, and those of the module bank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .fields import TEXT, AnyValue, Field, InvalidMessage, Kind, Values, coins


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
    Kind(
        "*types.MsgSend",
        {
            1: Field("from_address", TEXT, signer=True),
            2: Field("to_address", TEXT),
            3: coins("amount"),
        },
    ),
    "cosmos-sdk/MsgSend",
)
_INPUT = Kind("*types.Input", {1: Field("address", TEXT, signer=True), 2: coins("coins")})
_OUTPUT = Kind("*types.Output", {1: Field("address", TEXT), 2: coins("coins")})
MSG_MULTI_SEND = MessageType(
    "/cosmos.bank.v1beta1.MsgMultiSend",
    Kind(
        "*types.MsgMultiSend",
        {
            1: Field("inputs", _INPUT, repeated=True, signer=True, always=True),
            2: Field("outputs", _OUTPUT, repeated=True, always=True),
        },
    ),
    "cosmos-sdk/MsgMultiSend",
)
