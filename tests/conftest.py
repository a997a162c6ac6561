from __future__ import annotations

pytest_plugins = ["flask_noderpc.testing.plugin"]
