"""Applications that NODERPC_APPLICATION names: the core's, then those of features."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .feature import ApplicationKind, features

_OF_CORE = {
    "kvstore": ApplicationKind(make="flask_noderpc.chain.from_settings:kvstore"),
    "merkle": ApplicationKind(make="flask_noderpc.chain.from_settings:merkle"),
}


@cache
def application_kinds() -> Mapping[str, ApplicationKind]:
    """Return the kinds of applications by their names."""
    kinds = dict(_OF_CORE)
    for feature in features():
        kinds.update(feature.applications)
    return kinds


def application_names() -> tuple[str, ...]:
    """Return the names that NODERPC_APPLICATION takes."""
    return tuple(application_kinds())
