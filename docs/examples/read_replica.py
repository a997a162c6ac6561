"""An app that reads its chain from a replica of PostgreSQL."""

from flask import Flask

from flask_noderpc import NodeRPC

PRIMARY = "postgresql://noderpc@primary/chain"
REPLICA = "postgresql://noderpc@replica/chain"


def create_app(
    instance_path: str | None = None, primary: str = PRIMARY, replica: str = REPLICA
) -> Flask:
    """Return an app that serves, while other processes produce blocks."""
    app = Flask(__name__, instance_path=instance_path)
    app.config.update(
        NODERPC_DATABASE=primary,
        NODERPC_READ_DATABASE=replica,
        NODERPC_PRODUCE=False,
    )
    NodeRPC(app)
    return app
