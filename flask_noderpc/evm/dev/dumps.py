"""``anvil_dumpState`` and ``anvil_loadState``: the whole state as bytes, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...ethereum import accounts
from ...ethereum import dump as dumps
from ...rpc.context import Context
from ...rpc.params import NoParams, Params, param
from ..budget import Budget
from ..errors import EvmError
from ..forms.params import Data, Tag
from ..running.state import machine, root_of
from .control import driving


@dataclass(frozen=True, slots=True)
class OfState(Params):
    """Of ``anvil_loadState``."""

    dump: bytes = param(Data(), doc="What anvil_dumpState gave here.")


def dump(ctx: Context, params: NoParams) -> bytes:
    """All accounts with their code and storage, after the latest block."""
    root = root_of(ctx, Tag.LATEST)
    return dumps.encode(root, _records(ctx, root))


def _records(ctx: Context, root: bytes) -> Iterator[bytes]:
    budget, left = Budget(ctx.settings), ctx.settings.max_batch_response_bytes
    for record in accounts.records(machine(ctx).record, root):
        budget.spend(1)
        left -= len(record)
        if left < 0:
            raise EvmError(
                "the state is too large for one answer (NODERPC_MAX_BATCH_RESPONSE_BYTES)"
            )
        yield record


def load(ctx: Context, params: OfState) -> bool:
    """Make the state that of a dump, in a block of its own."""
    try:
        dumps.decode(params.dump, ctx.settings.max_batch_response_bytes)
    except ValueError as error:
        raise EvmError(f"not a state of anvil_dumpState of this server: {error}") from None
    with driving(ctx) as driven:
        driven.load_state(params.dump)
    return True
