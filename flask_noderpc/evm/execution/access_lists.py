"""``eth_createAccessList``: what a call touches, and what it costs to say so beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...domain.ethereum import AccessListEntry
from ...domain.evm import PRECOMPILES, CallArgs, Overrides
from ...engine.traces import ListAccess
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ...protocol.ethereum.accounts import account
from ...protocol.ethereum.crypto import authority_of
from ...protocol.ethereum.execution import created_address
from ..codec.call_objects import CallObject, StateOverride
from ..codec.params import BlockId, ByHash, Height, Tag
from .calls import CallParams, prepared, run
from .state import machine


@dataclass(frozen=True, slots=True)
class AccessListParams(Params):
    """Parameters of ``eth_createAccessList``."""

    call: CallArgs = param(CallObject(), doc="Who calls whom with what.")
    block: Height | ByHash = param(
        BlockId(), default=Tag.LATEST, doc="The block after which; the latest when omitted."
    )
    overrides: Overrides | None = param(
        StateOverride(), default=None, doc="Accounts that are to be otherwise."
    )


def create(ctx: Context, params: AccessListParams) -> dict[str, Any]:
    """The accounts and slots that a call touches."""
    wanted = prepared(ctx, CallParams(params.call, params.block, params.overrides))
    message = wanted.message
    nonce = params.call.nonce
    if nonce is None:
        own = wanted.overrides.get(message.sender)
        nonce = own.nonce if own else None
    if nonce is None:
        nonce = account(machine(ctx).record, wanted.root, message.sender).nonce
    # geth: internal/ethapi, AccessList: these are there anyway.
    target = message.to or created_address(message.sender, nonce)
    authorities = filter(None, map(authority_of, message.authorizations))
    excluded = PRECOMPILES | {message.sender, target, *authorities}
    entries, outcome = run(
        ctx, ListAccess(wanted.root, wanted.environment, message, excluded, wanted.overrides)
    )
    made: dict[str, Any] = {"accessList": tuple(map(_shown, entries))}
    if outcome.error:
        made["error"] = outcome.error
    return made | {"gasUsed": outcome.gas_used}


def _shown(entry: AccessListEntry) -> dict[str, Any]:
    return {"address": entry.address, "storageKeys": entry.storage_keys}
