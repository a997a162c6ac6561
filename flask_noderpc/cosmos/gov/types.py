"""Message types of x/gov, and the contents of proposals of the version v1beta1; SDK:
x/gov/types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..bank.errors import TxError
from ..protocol.fields import (
    ANY_AMINO,
    AnyValue,
    InvalidMessage,
    Kind,
    Values,
    declared,
)
from ..protocol.messages import MessageType
from .errors import INVALID_CONTENT

V1, V1BETA1 = "cosmos.gov.v1", "cosmos.gov.v1beta1"

TEXT_PROPOSAL = f"/{V1BETA1}.TextProposal"
SPEND_PROPOSAL = "/cosmos.distribution.v1beta1.CommunityPoolSpendProposal"
_MOST_TITLE, _MOST_DESCRIPTION = 140, 10_000


@dataclass(frozen=True, slots=True)
class Content:
    """A kind of content of a proposal."""

    kind: Kind
    type: str
    """Name of the proposal's type."""
    route: str
    """Name of the module that executes it."""
    amino_name: str


CONTENTS: Mapping[str, Content] = {
    TEXT_PROPOSAL: Content(
        declared("*v1beta1.TextProposal", TEXT_PROPOSAL[1:]),
        "Text",
        "gov",
        "cosmos-sdk/TextProposal",
    ),
    SPEND_PROPOSAL: Content(
        declared("*types.CommunityPoolSpendProposal", SPEND_PROPOSAL[1:]),
        "CommunityPoolSpend",
        "distribution",
        SPEND_PROPOSAL,
    ),
}
"""Contents by type URL."""

_KINDS = {url: content.kind for url, content in CONTENTS.items()}


def _amino(content: Content) -> Callable[[bytes], Any]:
    def show(data: bytes) -> Any:
        value = content.kind.amino_json(content.kind.decode(data))
        return {"type": content.amino_name, "value": value}

    return show


ANY_AMINO.update({url: _amino(content) for url, content in CONTENTS.items()})


def check_content(given: Values) -> None:
    """Raise :exc:`TxError` for a title or a description that the SDK does not accept; SDK:
    ``ValidateAbstract``."""
    title, description = given["title"], given["description"]
    if not title.strip():
        raise TxError(INVALID_CONTENT, "proposal title cannot be blank")
    if len(title.encode()) > _MOST_TITLE:
        text = f"proposal title is longer than max length of {_MOST_TITLE}"
        raise TxError(INVALID_CONTENT, text)
    if not description:
        raise TxError(INVALID_CONTENT, "proposal description cannot be blank")
    if len(description.encode()) > _MOST_DESCRIPTION:
        text = f"proposal description is longer than max length of {_MOST_DESCRIPTION}"
        raise TxError(INVALID_CONTENT, text)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    given: AnyValue | None = values["content"]
    if given is not None and given.type_url not in CONTENTS:
        raise InvalidMessage(
            f"no concrete type registered for type URL {given.type_url} against interface"
            " *v1beta1.Content"
        )
    return values


def _v1(name: str, signer: str, **types: Any) -> MessageType:
    kind = declared(f"*v1.{name}", f"{V1}.{name}", signer=signer, **types)
    return MessageType(f"/{V1}.{name}", kind, f"cosmos-sdk/v1/{name}")


def _v1beta1(name: str, signer: str, **types: Any) -> MessageType:
    kind = declared(f"*v1beta1.{name}", f"{V1BETA1}.{name}", signer=signer, **types)
    return MessageType(f"/{V1BETA1}.{name}", kind, f"cosmos-sdk/{name}")


MSG_SUBMIT = replace(
    _v1("MsgSubmitProposal", "proposer", omits=("messages",)), messages="messages"
)
MSG_EXEC_CONTENT = replace(
    _v1("MsgExecLegacyContent", "authority", build=_checked),
    nested=_KINDS,
    interface=f"{V1BETA1}.Content",
)
MSG_VOTE = _v1("MsgVote", "voter")
MSG_VOTE_WEIGHTED = _v1(
    "MsgVoteWeighted",
    "voter",
    omits=("options",),
    options=declared("*v1.WeightedVoteOption", "WeightedVoteOption"),
)
MSG_DEPOSIT = _v1("MsgDeposit", "depositor")
MSG_UPDATE_PARAMS = replace(
    _v1("MsgUpdateParams", "authority", params=declared("*v1.Params", "GovParams")),
    amino_name="cosmos-sdk/x/gov/v1/MsgUpdateParams",
)
MSG_CANCEL = replace(
    _v1("MsgCancelProposal", "proposer"), amino_name=f"/{V1}.MsgCancelProposal"
)

LEGACY_SUBMIT = replace(
    _v1beta1("MsgSubmitProposal", "proposer", build=_checked),
    nested=_KINDS,
    interface=MSG_EXEC_CONTENT.interface,
)
LEGACY_VOTE = _v1beta1("MsgVote", "voter")
LEGACY_VOTE_WEIGHTED = _v1beta1(
    "MsgVoteWeighted",
    "voter",
    options=declared("*v1beta1.WeightedVoteOption", "LegacyVoteOption"),
)
LEGACY_DEPOSIT = _v1beta1("MsgDeposit", "depositor")
