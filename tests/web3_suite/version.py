"""What web3.py's tests want to be told: what the node calls itself."""

from __future__ import annotations


class OurVersion:
    """Comes before the class of tests."""

    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version.startswith("flask-noderpc/")
