"""Differences of two responses, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .http_client import Reply


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two responses."""

    request: str
    where: str
    real: Any
    ours: Any
    is_of_failure: bool = False
    """Whether both responses are errors."""

    def __str__(self) -> str:
        return f"{self.request}\n  {self.where}\n    real {self.real!r}\n    ours {self.ours!r}"


def differences(request: str, real: Reply, ours: Reply) -> Iterator[Difference]:
    """Yield all differences between two responses to one request."""
    pairs: dict[str, tuple[Any, Any]] = {
        "status": (real.status, ours.status),
        "headers": (_shown(real), _shown(ours)),
        "body": (_read(real.body), _read(ours.body)),
        "replies": (list(map(_read, real.replies)), list(map(_read, ours.replies))),
    }
    texts = [(real.body, ours.body), *zip(real.replies, ours.replies, strict=False)]
    failed = all('"error":' in reply.body for reply in (real, ours))
    for where, (one, other) in pairs.items():
        for at, left, right in _walk(where, one, other):
            yield Difference(request, at, left, right, failed)
    for one, other in texts:
        if one != other and _read(one) == _read(other):
            yield Difference(request, "text", one, other, failed)


def _shown(reply: Reply) -> dict[str, str]:
    return {k: v if k != "X-Server-Time" else "<now>" for k, v in reply.headers.items()}


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_NOTHING = "<not there>"


def _walk(where: str, real: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in [*real, *(key for key in ours if key not in real)]:
            yield from _walk(f"{where}.{key}", real.get(key, _NOTHING), ours.get(key, _NOTHING))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _walk(f"{where}[{index}]", one, other)
    elif real != ours or type(real) is not type(ours):
        yield where, real, ours
