"""Message types of transactions, and the messages of the modules auth and bank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .fields import AnyValue, InvalidMessage, Kind, Values, declared


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message type: type URL, fields, and name in amino JSON."""

    type_url: str
    """Type URL, such as ``/cosmos.bank.v1beta1.MsgSend``."""
    kind: Kind
    amino_name: str = ""
    """Name in amino JSON; if empty, the message can't be signed in that sign mode, which
    Ledger devices use."""
    binary_name: str = ""
    """Name in binary amino, if it is not ``amino_name``."""
    nested: Mapping[str, Kind] = field(default_factory=dict)
    """Types of the messages that may be in an ``Any`` of the message, by type URL."""
    interface: str = ""
    """Name of the interface that the types in ``nested`` implement."""
    messages: str = ""
    """Name of the field whose ``Any`` values are messages themselves, if there is one."""
    is_signed_by_operator: bool = False
    """True if the signer is given as the address of a validator's operator."""

    @property
    def response_url(self) -> str:
        """Type URL of the message's response."""
        return f"{self.type_url}Response"

    @property
    def module(self) -> str:
        """Name of the module: the second part of the type URL, as in the SDK."""
        parts = self.type_url.split(".")
        return parts[1] if len(parts) > 1 else ""


@dataclass(frozen=True, slots=True)
class Msg:
    """A decoded message: its type, and the values of its fields."""

    type: MessageType
    values: Values

    def signers(self) -> Iterator[str]:
        """Yield the addresses that must sign the message."""
        return self.type.kind.signers(self.values)

    def amino_json(self) -> object:
        """Return the message in amino JSON; raise :exc:`InvalidMessage` if its type has no
        amino name."""
        if not self.type.amino_name:
            raise InvalidMessage(
                f"{self.type.type_url} has no amino name; sign it in SIGN_MODE_DIRECT"
            )
        value = self.type.kind.amino_json(self.values)
        return {"type": self.type.amino_name, "value": value}


def decode(given: AnyValue, known: MessageType | None) -> Msg:
    """Decode the message in an ``Any`` as the type ``known``; raise :exc:`InvalidMessage`."""
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
_SEND_ENABLED = declared("*types.SendEnabled", "SendEnabled")
MSG_UPDATE_BANK_PARAMS = MessageType(
    "/cosmos.bank.v1beta1.MsgUpdateParams",
    declared(
        "*types.MsgUpdateParams",
        "cosmos.bank.v1beta1.MsgUpdateParams",
        signer="authority",
        params=declared(
            "*types.Params", "BankParams", omits=("send_enabled",), send_enabled=_SEND_ENABLED
        ),
    ),
    "cosmos-sdk/x/bank/MsgUpdateParams",
)
MSG_SET_SEND_ENABLED = MessageType(
    "/cosmos.bank.v1beta1.MsgSetSendEnabled",
    declared(
        "*types.MsgSetSendEnabled",
        "cosmos.bank.v1beta1.MsgSetSendEnabled",
        signer="authority",
        omits=("send_enabled", "use_default_for"),
        send_enabled=_SEND_ENABLED,
    ),
    "cosmos-sdk/MsgSetSendEnabled",
)
MSG_UPDATE_AUTH_PARAMS = MessageType(
    "/cosmos.auth.v1beta1.MsgUpdateParams",
    declared(
        "*types.MsgUpdateParams",
        "cosmos.auth.v1beta1.MsgUpdateParams",
        signer="authority",
        params=declared("*types.Params", "AuthParams"),
    ),
    "cosmos-sdk/x/auth/MsgUpdateParams",
)
