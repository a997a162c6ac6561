"""Replace the client version that web3.py's tests expect."""

from __future__ import annotations


class OurVersion:
    """A base class that comes before the class of tests."""

    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version.startswith("anvil/compatible (flask-noderpc/")
