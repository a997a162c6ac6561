"""Members of the objects that clients write, found as Go finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Members:
    """The names of an object's members.

    Go's encoding/json takes a name in any letter case, and of a name given twice the last;
    geth's own client writes ``Tracer``.
    """

    def __init__(self, *names: str) -> None:
        self._names = {name.lower(): name for name in names}

    def of(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Those that are known, by their own names."""
        return {
            self._names[name]: each
            for key, each in value.items()
            if (name := key.lower()) in self._names
        }
