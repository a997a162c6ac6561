"""A fixture for those who test against the chain."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def words_url(tmp_path: Path) -> Iterator[str]:
    """Serve a chain of words of five bytes."""
    from flask import Flask

    from flask_noderpc import NodeRPC, get_backend
    from flask_noderpc.testing.node import serve

    from . import feature, words

    app = Flask(__name__, instance_path=str(tmp_path))
    NodeRPC(app, application="words", settings=[feature.WordsSettings(words_longest=5)])
    app.register_blueprint(words.words_bp)
    with serve(app) as url, app.app_context():
        yield url
        get_backend().close()
