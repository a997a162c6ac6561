"""The libraries of the extra ``evm``, and what is said where they are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def of_the_extra() -> Iterator[None]:
    """Around their imports: a ``ModuleNotFoundError`` names the cure."""
    try:
        yield
    except ModuleNotFoundError as error:
        hint = "pip install 'flask-noderpc[evm]'"
        raise ModuleNotFoundError(
            f"Ethereum needs {error.name}: {hint}", name=error.name
        ) from None
