"""A dialect of your own: the document's, with two entries replaced."""

from dataclasses import replace

from flask import Flask

from flask_noderpc import DIALECTS, NodeRPC, WireSchema
from flask_noderpc.domain.responses import PendingCount
from flask_noderpc.wire.fields import Number


class PlainCount(WireSchema):
    """``num_unconfirmed_txs`` with numbers in place of texts."""

    total = Number()
    total_bytes = Number()


document = DIALECTS["document"]

dialect = replace(
    document,
    name="acme",
    # Parameters are read, and refused, as CometBFT 0.38 does.
    params=DIALECTS["comet-0.38"].params,
    schemas={**document.schemas, PendingCount: PlainCount},
)

node = NodeRPC(dialect=dialect)


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app that serves this dialect."""
    app = Flask(__name__, instance_path=instance_path)
    node.init_app(app)
    return app
