"""Entries of ABIs."""

from __future__ import annotations

from typing import Any


def entry(kind: str, name: str, *types: str, indexed: int = 0) -> dict[str, Any]:
    inputs = [
        {"name": f"p{number}", "type": each, "indexed": number < indexed}
        for number, each in enumerate(types)
    ]
    return {"type": kind, "name": name, "inputs": inputs}


TRANSFER = entry("event", "Transfer", "address", "address", "uint256", indexed=2)
