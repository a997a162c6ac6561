"""The ``comet-0.39`` and ``comet-0.40`` dialects, with their differences from 0.38."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import isinf

from ...domain import responses
from ..dialect import SchemaPatch
from ..events import event_page
from ..fields import Text
from ..schema import Nested, WireSchema
from . import gojson, v038_schemas
from .envelope import CometEnvelope
from .gojson import GoError
from .v038 import COMET_038


class AuthorityParams(WireSchema):
    """ConsensusParams.authority, new in CometBFT 0.39."""

    authority = Text()


class AuthorityParamsUpdate(WireSchema):
    """ConsensusParams.authority in an update."""

    authority = Text(omit_empty=True)


class ConsensusParams(v038_schemas.ConsensusParams):
    """All consensus parameters at a height."""

    authority = Nested(AuthorityParams, get=lambda params: params)


class ConsensusParamsUpdate(v038_schemas.ConsensusParamsUpdate):
    """Parameter updates."""

    authority = Nested(
        AuthorityParamsUpdate,
        get=lambda update: None if update.authority is None else update,
        omit_empty=True,
    )


REPLACED = SchemaPatch(
    {
        v038_schemas.ConsensusParams: ConsensusParams,
        v038_schemas.ConsensusParamsUpdate: ConsensusParamsUpdate,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_038.events.items()}

COMET_039 = replace(
    COMET_038,
    name="comet-0.39",
    node_version="0.39.4",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    behaviours=replace(COMET_038.behaviours, closed_while_catching_up=True),
)


class StrictEnvelope(CometEnvelope):
    """Envelope that rejects IDs that are not whole numbers of 64 bits."""

    def _id(self, raw: bytes) -> bytes | None:
        found = super()._id(raw)
        if found is None or gojson.kind_of(found) != "number":
            return found
        value = float(found)
        if isinf(value):
            raise GoError(
                f"json: cannot unmarshal number {found.decode()} into Go struct field .id of"
                " type float64"
            )
        _check_id(value)
        # The response to an ID of 1e5 has the ID 100000.
        return found if found.lstrip(b"-").isdigit() else b"%d" % int(value)


def _check_id(value: float) -> None:
    # CometBFT 0.40: rpc/jsonrpc/types/types.go, idFromInterface.
    if not value.is_integer():
        raise GoError(f"json-rpc ID must be a whole number, got {_go_text(value)}")
    if not -(2.0**63) <= value < 2.0**63:
        raise GoError(f"json-rpc ID out of int64 range, got {_go_text(value)}")


def _go_text(value: float) -> str:
    """Format a number as Go's ``%v`` does, with an exponent from a million on and below
    0.0001."""
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return format(number, "f")
    sign = "-" if value < 0 else ""
    first, *others = map(str, number.as_tuple().digits)
    return f"{sign}{first}{'.' if others else ''}{''.join(others)}e{exponent:+03d}"


COMET_040 = replace(
    COMET_039, name="comet-0.40", node_version="0.40.0", envelope=StrictEnvelope()
)
