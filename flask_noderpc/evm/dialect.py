"""The ``evm`` dialect: Ethereum's JSON forms in geth's envelope."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from typing import Any

from .. import jsoncodec
from ..errors import Forbidden
from ..wire.dialect import Dialect
from ..wire.fields import Json
from ..wire.json_schema import Components
from ..wire.schema import Dump
from .codec import hex
from .codec.params import GETH_PARAMS
from .codec.shapes import SCHEMAS
from .codec.views import PlainNumber
from .envelope import GethEnvelope

_PLAIN: dict[type, Json] = {
    bool: {"type": "boolean"},
    str: {"type": "string"},
    float: {"type": "number"},
    int: {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"},
    bytes: {"type": "string", "pattern": "^0x([0-9a-f]{2})*$"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
}


class EvmDialect(Dialect):
    """A dialect in which every number is a QUANTITY and all bytes are DATA."""

    @cached_property
    def _dumps(self) -> dict[type, Dump]:
        plain: dict[type, Dump] = {
            bool: _itself,
            str: _itself,
            float: _itself,
            int: hex.quantity,
            PlainNumber: int,
            bytes: hex.data,
            tuple: self._list,
            dict: self._object,
            object: self._any,
        }
        return super()._dumps | plain

    def described(self, result: type, components: Components) -> Json:
        """The JSON Schema of a kind of result, which may be null where something is missing."""
        if result in (object, jsoncodec.Raw):
            return {}
        found = _PLAIN.get(result) or super().described(result, components)
        return {"anyOf": [found, {"type": "null"}]}

    def _list(self, values: Iterable[Any]) -> Json:
        return [self._any(value) for value in values]

    def _object(self, members: dict[str, Any]) -> Json:
        return {name: self._any(value) for name, value in members.items()}

    def _any(self, value: Any) -> Json:
        return None if value is None else self._dumps[type(value)](value)


def _itself(value: Any) -> Json:
    return value


EVM = EvmDialect(
    name="evm",
    node_version="",
    schemas=SCHEMAS,
    events={},
    statuses={Forbidden: HTTPStatus.FORBIDDEN},
    envelope=GethEnvelope(),
    params=GETH_PARAMS,
)
