"""Feature ``postgres``: a PostgreSQL store, which many hosts can share."""

from __future__ import annotations

from ..feature import Feature, UrlStore
from .settings import PostgresSettings

_STORE = UrlStore(
    location="flask_noderpc.postgres.settings:DatabaseURL",
    open="flask_noderpc.postgres.settings:open_store",
    identity="flask_noderpc.postgres.settings:stored_identity",
    replica_setting="read_database",
)

FEATURE = Feature(
    name="postgres",
    settings=PostgresSettings,
    stores={"postgresql": _STORE, "postgres": _STORE},
)
