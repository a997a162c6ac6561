"""The command that installs this package, for errors and docs."""

from __future__ import annotations

IS_PUBLISHED = False
"""True once PyPI has the package. Until then anyone could register its name there, so no text
may tell a reader to install it from PyPI. The first release changes this value."""


def install_command(extras: str = "", pip: str = "pip") -> str:
    """Return the command that installs the package with ``extras``, such as ``evm,js``."""
    package = "flask-noderpc" if IS_PUBLISHED else "."
    return f"{pip} install " + (f"'{package}[{extras}]'" if extras else package)


def where() -> str:
    """Return in which folder the command must run; empty if it may run anywhere."""
    return "" if IS_PUBLISHED else "in a clone of flask-noderpc"


def install_hint(extra: str) -> str:
    """Return how to install an extra, for an error that names what is missing."""
    return f"{install_command(extra)} {where()}".rstrip()
