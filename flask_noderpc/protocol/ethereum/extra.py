"""Import guard for the libraries of the extra ``evm``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def of_the_extra() -> Iterator[None]:
    """Add the ``pip install`` command to a ``ModuleNotFoundError`` of the imports inside."""
    try:
        yield
    except ModuleNotFoundError as error:
        hint = "pip install 'flask-noderpc[evm]'"
        raise ModuleNotFoundError(
            f"Ethereum needs {error.name}: {hint}", name=error.name
        ) from None
