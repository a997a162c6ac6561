"""Addresses of upstream nodes; their credentials never appear in logs and errors."""

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
    """Host name or IP address, or the path of a Unix socket's file."""
    port: int
    path: str = field(repr=False)
    """Path and query, which may contain a key."""
    user: str | None = field(default=None, repr=False)
    """Credentials of HTTP's basic authentication."""
    header: str = field(default="", repr=False)
    """Header to send with each request, such as ``Authorization: Bearer …``."""

    @classmethod
    def parse(cls, text: str, header: str = "", setting: str = "URL") -> Address:
        """Parse ``http://host:port``, ``https://host:port``, ``tcp://host:port`` or
        ``host:port``.

        ``header`` is sent with each request. Raise
        :exc:`~flask_noderpc.errors.InvalidSetting`, which names the ``setting`` and hides
        credentials.
        """
        found = _SCHEME.match(text)
        try:
            url = urlsplit(text if found else f"http://{text}")
            scheme = "http" if url.scheme == "tcp" else url.scheme
            port = url.port or _PORTS[scheme]
        except (KeyError, ValueError):
            raise _invalid(setting, found[1] if found else "") from None
        # Refuse an "@" in the path: a slash in the password was not escaped, so that the host
        # would be a part of the password, and would be logged.
        if not url.hostname or "@" in url.path:
            raise _invalid(setting, scheme)
        return cls(scheme, url.hostname, port, _path(url), _user(url), header)

    @classmethod
    def at_socket(cls, path: str, header: str = "") -> Address:
        """Return the address of a node that listens at a Unix socket's file."""
        return cls("unix", path, 0, "/", header=header)

    @property
    def name(self) -> str:
        """URL for logs and errors, without credentials, path and query."""
        if self.scheme == "unix":
            return f"unix://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers to send with each request; credentials in the URL replace an
        ``Authorization`` header."""
        name, _, value = self.header.partition(":")
        found = {name.title(): value.strip()} if name else {}
        if self.user is not None:
            found["Authorization"] = "Basic " + b64encode(self.user.encode()).decode()
        return found

    def below(self, name: str) -> str:
        """Return the path of a page of the node, with this address's query."""
        path, _, query = self.path.partition("?")
        return f"{path.rstrip('/')}/{name}" + (f"?{query}" if query else "")


def names_of(addresses: Sequence[Address]) -> list[str]:
    """Return a name for each address; raise ``InvalidSetting`` for an address that is listed
    twice.

    Addresses that differ only in credentials or path, such as nodes behind one gateway, get a
    number.
    """
    for number, each in enumerate(addresses):
        if each in addresses[:number]:
            raise InvalidSetting(
                f"upstream nodes: expected different URLs, got {each.name} twice; remove one"
            )
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
    shown = f"{scheme}://…" if scheme else "another text"
    return InvalidSetting(
        f"{setting}: expected the URL of a node, http://host:port or https://host:port, got"
        f" {shown} (in a password, write / as %2F and @ as %40)"
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
    """Hide this path and query in urllib3's log records, unless it is ``/``."""
    if path != "/":
        _hidden.paths = _hidden.paths | {path}
