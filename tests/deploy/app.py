"""The example app as deployed: behind a proxy, with a log line for each call."""

from __future__ import annotations

import logging
import signal

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from example_app import create_app as example_app


def create_app() -> Flask:
    logging.basicConfig()
    logging.getLogger("flask_noderpc.calls").setLevel(logging.INFO)
    app = example_app()
    hops = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1, x_prefix=1)
    app.wsgi_app = hops  # type: ignore[method-assign]
    return app


def create_app_with_signals() -> Flask:
    """Return the app, which handles the signals itself that end a process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return create_app()
