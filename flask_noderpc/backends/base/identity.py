"""The chain and the application of a store, which its settings must not contradict."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Identity:
    """The chain of a store."""

    chain_id: str
    application: str
    """Its name; empty where it has none, and in stores that were made before it was stored."""
    dialect: str = ""
    """The dialect of the nodes that the chain came from, if it came from any."""


def check_identity(
    stored: Identity, path: str, application: str, chain_id: str | None = None
) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` where a store holds the chain of
    another application, or another chain than the one that is asked for."""
    elsewhere = "or begin a new chain at another NODERPC_DATABASE (noderpc start: --home)"
    if stored.application and application and stored.application != application:
        raise ConfigurationError(
            f"{path} holds chain {stored.chain_id!r} of the application"
            f" {stored.application!r}, and NODERPC_APPLICATION is {application!r}: set it to"
            f" {stored.application!r} to go on with that chain, {elsewhere}"
        )
    if chain_id is not None and chain_id != stored.chain_id:
        raise ConfigurationError(
            f"{path} holds chain {stored.chain_id!r}, and NODERPC_CHAIN_ID is {chain_id!r}:"
            f" leave it out to go on with that chain, {elsewhere}"
        )
