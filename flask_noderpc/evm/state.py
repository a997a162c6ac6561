"""Methods that need the state of accounts or run code: refused, with what would bring them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..rpc.context import Context
from ..rpc.params import Params, param
from ..wire.params import ParamField
from .errors import NOT_SUPPORTED, EvmError


class Anything(ParamField):
    """A parameter that nobody reads."""

    def from_json(self, value: Any) -> Any:
        """What was given."""
        return value


@dataclass(frozen=True, slots=True)
class Unread(Params):
    """As many parameters as any such method has."""

    first: Any = param(Anything(), default=None, doc="Not read.")
    second: Any = param(Anything(), default=None, doc="Not read.")
    third: Any = param(Anything(), default=None, doc="Not read.")
    fourth: Any = param(Anything(), default=None, doc="Not read.")


def needs_state(ctx: Context, params: Unread) -> NoReturn:
    """Refused: the chain behind this node has no Ethereum state."""
    raise EvmError(
        "the backend has no Ethereum state: accounts can't be read and no code can be run here",
        code=NOT_SUPPORTED,
    )
