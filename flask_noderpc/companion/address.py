"""Addresses of upstream nodes, whose credentials appear in no log and no error."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from ..errors import InvalidSetting

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URL of a node's RPC."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    """Path and query, which may contain a key."""
    user: str | None = field(default=None, repr=False)
    """Credentials of HTTP's basic authentication."""
    header: str = field(default="", repr=False)
    """Header to send with each request, such as ``Authorization: Bearer …``."""

    @classmethod
    def parse(cls, text: str, header: str = "", setting: str = "URL") -> Address:
        """Parse ``http://host:port``, ``https://…``, ``tcp://…`` or ``host:port``.

        Raise :exc:`~flask_noderpc.errors.InvalidSetting`, which names the setting and hides the
        text's credentials.
        """
        found = _SCHEME.match(text)
        try:
            url = urlsplit(text if found else f"http://{text}")
            scheme = "http" if url.scheme == "tcp" else url.scheme
            port = url.port or _PORTS[scheme]
        except (KeyError, ValueError):
            raise _invalid(setting, found[1] if found else "") from None
        # A slash in a password would end the host, and the rest of the password would become
        # the path, which is logged.
        if not url.hostname or "@" in url.path:
            raise _invalid(setting, scheme)
        return cls(scheme, url.hostname, port, _path(url), _user(url), header)

    @property
    def name(self) -> str:
        """Address for logs and errors: without credentials, path and query."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers with credentials; the URL's own replace an ``Authorization`` header."""
        name, _, value = self.header.partition(":")
        found = {name.title(): value.strip()} if name else {}
        if self.user is not None:
            found["Authorization"] = "Basic " + b64encode(self.user.encode()).decode()
        return found

    @property
    def websocket_path(self) -> str:
        """Path of the node's websocket."""
        path, _, query = self.path.partition("?")
        return f"{path.rstrip('/')}/websocket" + (f"?{query}" if query else "")


def names_of(addresses: Sequence[Address]) -> list[str]:
    """Return a name for each address; raise ``ConfigurationError`` for an address that is given
    twice.

    Addresses that only differ in hidden parts, such as nodes behind one gateway, are numbered.
    """
    for number, each in enumerate(addresses):
        if each in addresses[:number]:
            raise InvalidSetting(f"the node {each.name} is named twice: name each node once")
    names = [each.name for each in addresses]
    return [
        f"{name} ({number + 1})" if name in names[:number] else name
        for number, name in enumerate(names)
    ]


def _path(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _user(url: SplitResult) -> str | None:
    if url.username is None:
        return None
    return f"{unquote(url.username)}:{unquote(url.password or '')}"


def _invalid(setting: str, scheme: str) -> InvalidSetting:
    # The rest of the URL may contain a password.
    shown = f"{scheme}://…" if scheme else "it"
    return InvalidSetting(
        f"{setting}: the URL of a node is http://host:port or https://host:port, and {shown} is"
        " not (in a password, / is %2F and @ is %40)"
    )


class _HiddenPaths(logging.Filter):
    """Replaces paths and queries, which may contain keys, in the log records of urllib3.

    urllib3 logs them at DEBUG for each request, and at WARNING for headers that it can't parse.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the paths in a record, and let it pass."""
        text = record.getMessage()
        # Longer paths come first, as one may begin with another.
        for path in sorted(self.paths, key=len, reverse=True):
            if path in text:
                text = text.replace(path, "/…")
                record.msg, record.args = text, ()
        return True


_hidden = _HiddenPaths()
for _name in ("urllib3.connection", "urllib3.connectionpool"):
    logging.getLogger(_name).addFilter(_hidden)


def hide_path(path: str) -> None:
    """Hide a path with its query, unless it is the default path."""
    if path != "/":
        _hidden.paths = _hidden.paths | {path}
