"""TLS of an address: its certificate and key."""

from __future__ import annotations

import ssl

from ..errors import ConfigurationError


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the TLS context; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def refuse() -> str:
        # Nobody is there to be asked, each time that a process begins.
        raise ConfigurationError(f"{key}: the key for TLS must have no passphrase")

    try:
        context.load_cert_chain(certificate, key, refuse)
    except ssl.SSLError as error:
        why = (error.reason or "no certificate or no key").lower().replace("_", " ")
        raise ConfigurationError(
            f"{certificate} and {key} are no pair for TLS: {why}"
        ) from None
    except OSError as error:
        # It does not say which of the two.
        raise ConfigurationError(
            f"{certificate} or {key}, for TLS: {error.strerror or error}"
        ) from None
    return context
