"""Methods that a chain of node blocks can't answer yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ..codec.params import Anything
from ..errors import NOT_SUPPORTED, EvmError
from .state import machine


@dataclass(frozen=True, slots=True)
class UnreadParams(Params):
    """As many parameters as any such method has."""

    first: Any = param(Anything(), default=None, doc="Not read.")
    second: Any = param(Anything(), default=None, doc="Not read.")
    third: Any = param(Anything(), default=None, doc="Not read.")
    fourth: Any = param(Anything(), default=None, doc="Not read.")


def needs_state(ctx: Context, params: UnreadParams) -> NoReturn:
    """Refused: it needs what no engine here gives."""
    machine(ctx)
    raise EvmError("the engine does not tell this", code=NOT_SUPPORTED)
