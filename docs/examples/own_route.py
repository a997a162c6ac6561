"""A route of your own, which answers with a class and a schema of your own."""

from dataclasses import dataclass

from flask import Flask

from flask_noderpc import Context, NodeRPC, Route, WireSchema, param
from flask_noderpc.errors import ValueNotAllowed
from flask_noderpc.wire.fields import Hex, IntString, Timestamp
from flask_noderpc.wire.params import UInt64
from flask_noderpc.wire.schema import ListOf


@dataclass(frozen=True)
class Range:
    """The parameters; a plain ``first: int`` needs no param()."""

    first: int = param(UInt64(), doc="First height.", wire="minHeight")
    count: int = param(UInt64(), doc="Number of blocks.", default=10)


@dataclass(frozen=True)
class Proposal:
    """Height, time in nanoseconds, and proposer's address of a block."""

    height: int
    time: int
    proposer: bytes


@dataclass(frozen=True)
class Proposals:
    """The result."""

    proposals: tuple[Proposal, ...]


class ProposalSchema(WireSchema):
    """A Proposal in JSON; ``domain`` is the class that loading makes."""

    domain = Proposal
    height = IntString()
    time = Timestamp()
    proposer = Hex()


class ProposalsSchema(WireSchema):
    """The result in JSON."""

    domain = Proposals
    proposals = ListOf(ProposalSchema)


def proposers(ctx: Context, params: Range) -> Proposals:
    """Proposers of a range of blocks."""
    if not 0 < params.count <= 100:
        raise ValueNotAllowed("count must be from 1 to 100")
    last = min(params.first + params.count - 1, ctx.backend.reads.latest_height())
    headers = (ctx.backend.reads.block_meta(h).header for h in range(params.first, last + 1))
    return Proposals(tuple(Proposal(h.height, h.time, h.proposer_address) for h in headers))


node = NodeRPC(routes=[Route("proposers", proposers, Range, Proposals, schema=ProposalsSchema)])


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app with the node's routes and ``/proposers``."""
    app = Flask(__name__, instance_path=instance_path)
    node.init_app(app)
    return app
