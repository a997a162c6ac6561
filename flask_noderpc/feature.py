"""Features: the parts that each adds to the core.

A feature is a folder of this package with a ``feature.py``, whose ``FEATURE`` declares what the
feature adds. The core imports no feature: it asks :func:`features`. A ``feature.py`` holds
declarations alone, and loads what they need when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .domain.abci import Event


@dataclass(frozen=True, slots=True)
class EventAliases:
    """Aliases of event types, and how the values of their keys are compared."""

    types: frozenset[str]
    """The types, such as ``transfer``, with their aliases."""
    with_aliases: Callable[[Sequence[Event]], Sequence[Event]]
    """Return the events of a transaction, among them some of these types, with what the type
    is called besides."""
    ignores_case: Callable[[str], bool]
    """Return true for a value that is compared without case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlStore:
    """A store of chains that URLs of a scheme name.

    Its parts are named as ``package.module:name``, and loaded when they are used.
    """

    location: str
    """Class of a :class:`~flask_noderpc.backends.base.location.Location`, made of a URL."""
    open: str
    """Function that returns the store at a location, with the options ``replica``,
    ``read_only``, ``limits`` and ``poll_s``."""
    identity: str
    """Function that returns the identity of the chain at a location without opening it, or
    ``None``."""


def load(name: str) -> Any:
    """Return what a feature names as ``package.module:name``."""
    module, _, member = name.partition(":")
    return getattr(import_module(module), member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The parts that one feature adds to the core; each is optional."""

    name: str
    event_aliases: EventAliases | None = None
    """How queries find the events of its transactions."""
    stores: Mapping[str, UrlStore] = field(default_factory=dict)
    """Stores by the schemes of the URLs that name them."""
    chain_sources: Mapping[str, str] = field(default_factory=dict)
    """Classes of :class:`~flask_noderpc.chain.source.ChainSource`, named as
    ``package.module:name``, by the settings that ask for them: a mount without a backend that
    has a value for such a setting serves the chain of that source, not an embedded one."""
    commands: tuple[str, ...] = ()
    """Modules that add commands to ``flask_noderpc.cli.node.main`` (``noderpc …``) or
    ``flask_noderpc.cli.app.cli`` (``flask noderpc …``) when they are imported."""


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this package, in the order of their names."""
    package = Path(__file__).parent
    names = sorted(each.parent.name for each in package.glob("*/feature.py"))
    return tuple(import_module(f".{name}.feature", __package__).FEATURE for name in names)
