"""Keys for the users of an app: a user with a key may call the node."""

from flask import Flask, Request
from flask_login import LoginManager, UserMixin, current_user, login_required

from flask_noderpc import Denied, NodeRPC


class User(UserMixin):
    """A user of the app; yours are in its database."""

    def __init__(self, name: str) -> None:
        self.id = name


USERS_BY_KEY = {"let-me-in": User("satoshi")}

login = LoginManager()


@login.request_loader
def user_of(request: Request) -> User | None:
    """Return the user whose key a request has."""
    return USERS_BY_KEY.get(request.headers.get("X-Api-Key", ""))


def authorize(request: Request, method: str) -> bool | Denied:
    """Decide about one call; on a websocket the request is the handshake."""
    if user_of(request) is None:
        return Denied(401, {"WWW-Authenticate": "ApiKey"}, "the header X-Api-Key is missing")
    return True


node = NodeRPC(authorize=authorize)


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app whose views and whose node take the same keys."""
    app = Flask(__name__, instance_path=instance_path)
    login.init_app(app)
    node.init_app(app)

    @app.get("/me")
    @login_required
    def me() -> dict[str, str]:
        return {"name": current_user.id}

    return app
