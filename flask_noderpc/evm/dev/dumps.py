"""``anvil_dumpState`` and ``anvil_loadState``: the whole state as bytes, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.comet.chain_state import max_data_bytes
from ...protocol.ethereum import accounts
from ...protocol.ethereum import accounts as dumps
from ..codec.params import Data, Tag
from ..errors import EvmError
from ..execution.state import machine, root_of
from ..search_budget import SearchBudget
from .control import driving

# At most, around a dump in a call of some client's, and in a transaction.
_CALL_BYTES = 256


@dataclass(frozen=True, slots=True)
class DumpParams(Params):
    """Parameters of ``anvil_loadState``."""

    dump: bytes = param(Data(), doc="What anvil_dumpState gave here.")


def dump(ctx: Context, params: NoParams) -> bytes:
    """All accounts with their code and storage, after the latest block."""
    root = root_of(ctx, Tag.LATEST)
    made = dumps.encode_dump(root, _records(ctx, root))
    # One that can't be loaded again is worth nothing.
    for most, hint in _limits(ctx):
        if len(made) > most:
            raise EvmError(
                f"the state's dump has {len(made)} bytes, anvil_loadState takes {most} ({hint})"
            )
    return made


def _records(ctx: Context, root: bytes) -> Iterator[bytes]:
    budget = SearchBudget(ctx.settings)
    left = ctx.settings.max_response_bytes - dumps.FRAME_BYTES
    for record in accounts.records(machine(ctx).record, root):
        budget.spend(1)
        left -= len(record) + dumps.RECORD_FRAME_BYTES
        if left < 0:
            raise EvmError("the state is too large for one answer (NODERPC_MAX_RESPONSE_BYTES)")
        yield record


def _limits(ctx: Context) -> Iterator[tuple[int, str]]:
    """Most bytes of a dump that can be loaded, and what decides that."""
    # In hex.
    body = ctx.settings.evm_max_body_bytes - _CALL_BYTES
    yield body // 2, "NODERPC_EVM_MAX_BODY_BYTES raises it"
    height = ctx.backend.latest_height() + 1
    members = len(ctx.backend.validators(height).validators)
    # As base64.
    room = max_data_bytes(ctx.backend.consensus_params(height).block, members) - _CALL_BYTES
    yield room * 3 // 4, "block.max_bytes of the genesis raises it"


def load(ctx: Context, params: DumpParams) -> bool:
    """Make the state that of a dump, in a block of its own."""
    try:
        dumps.decode_dump(params.dump, ctx.settings.max_response_bytes)
    except ValueError as error:
        raise EvmError(f"not a state of anvil_dumpState of this server: {error}") from None
    with driving(ctx) as driven:
        driven.load_state(params.dump)
    return True
