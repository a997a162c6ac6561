"""The page at ``GET /readyz``: whether the node should be asked."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from flask import Response

from ..backend.base import ChainBackend
from ..rpc.dispatch import to_rpc_error


def readiness(start: Callable[[], None], backend: ChainBackend) -> Response:
    """The page; in one line, and without what is for the log alone."""
    try:
        start()
        backend.check_ready()
    except Exception as error:
        said = to_rpc_error(error).said
        return Response(f"{said}\n", HTTPStatus.SERVICE_UNAVAILABLE, mimetype="text/plain")
    return Response("ready\n", mimetype="text/plain")
