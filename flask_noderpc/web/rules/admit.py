"""Admission of a request: permissions and limits that its head decides, before its body is
read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

from ...errors import (
    BodyEncoded,
    BodyTooLarge,
    HostRefused,
    NodeRPCError,
    OriginRefused,
)
from ...jsonrpc.context import Permissions
from ...settings import Settings
from ...wire.dialect import Dialect
from ...wire.envelope import URI_ID
from .head import HTML, RPC, WEBSOCKET, Head, Response, client_key, plain_text
from .origin import ANY, BROWSER_HEADERS, Cors, OriginPolicy

ORIGIN_DENIED = "pages of this origin may not read here; add it to NODERPC_READ_ORIGINS"

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_FORM_METHODS = ("POST", "PUT", "PATCH")


@dataclass(frozen=True, slots=True)
class Policy:
    """HTTP rules of one mount."""

    origins: OriginPolicy
    cors: Cors
    max_body: int
    takes_forms: bool = False
    """True if routes also take parameters from a form in the body."""
    page_for_empty_body: bool = False
    """True if the response to a request without a body is the index page."""
    server_time: bool = False
    """True if responses have ``X-Server-Time``."""
    admissions: Mapping[str, Admission] = field(default_factory=lambda: NODE_ADMISSIONS)
    """Admission rules by endpoint; every other endpoint is a route."""

    @classmethod
    def of(
        cls, settings: Settings, dialect: Dialect, admissions: Mapping[str, Admission]
    ) -> Policy:
        """Return the rules for settings and a dialect; ``admissions`` are the layers' rules
        for admitting requests, by endpoint."""
        has_index = "index" not in settings.exclude_routes
        return cls(
            OriginPolicy(
                settings.read_origins,
                settings.write_origins,
                settings.allowed_hosts,
                settings.dev,
            ),
            Cors(settings.cors_origins, settings.cors_headers),
            settings.max_body_bytes,
            takes_forms=dialect.http.any_method,
            page_for_empty_body=dialect.envelope.empty_body_is_index and has_index,
            server_time=dialect.http.server_time,
            admissions={**NODE_ADMISSIONS, **admissions},
        )

    @property
    def adds_headers(self) -> bool:
        """True if :func:`.render.added_headers` has headers for every response."""
        return self.server_time or bool(self.cors.origins) or self.origins.restrict_reading

    @property
    def refuses_hosts(self) -> bool:
        """True if requests for some hosts may be refused."""
        return ANY not in self.origins.hosts


class Admitted(NamedTuple):
    """A request that is allowed, so its body may be read."""

    policy: Policy
    head: Head
    permissions: Permissions
    max_body: int = 0
    """Maximum bytes of the body; 0 if it is not read."""


class Refusal(NamedTuple):
    """Refusal of a request without reading its body: a response, or an error that the
    dialect's envelope turns into a response."""

    response: Response | None = None
    error: NodeRPCError | None = None
    request_id: bytes | None = None
    max_body: int = 0
    """Limit on the body's bytes; a body of up to twice the limit is read and discarded."""

    def bytes_to_discard(self, head: Head) -> int:
        """Return the bytes of the body to read and discard, 0 for none.

        If a server closes a connection while the client still sends, the connection is reset,
        and a proxy would report a bad gateway instead of the refusal.
        """
        size = head.content_length or 0
        # A client that expects 100-continue has not sent the body yet.
        if size > 2 * self.max_body or "HTTP_EXPECT" in head.fields:
            return 0
        return size


class Admission(NamedTuple):
    """Admission rules of one endpoint."""

    admit: Callable[[Policy, Head], Refusal | Admitted]
    signs: bool = False
    """True if the endpoint has methods that sign with the node's keys."""
    unreadable: Callable[[NodeRPCError], NodeRPCError] = lambda error: error
    """Function that returns the error to show for a body that is too long or ends too early."""


def admit(policy: Policy, head: Head) -> Refusal | Admitted:
    """Admit or refuse a request by the rules of its endpoint."""
    return policy.admissions.get(head.endpoint, _ROUTE).admit(policy, head)


def admit_host(policy: Policy, head: Head) -> Refusal | None:
    """Return a refusal if the requested host is not served, else ``None``."""
    if head.on_loopback:
        is_served = policy.origins.serves_on_loopback(head.fields.get("HTTP_HOST"))
    else:
        is_served = policy.origins.serves(head.host)
    if is_served:
        return None
    # geth: node/rpcstack.go.
    return Refusal(plain_text(str(HostRefused()), HTTPStatus.FORBIDDEN))


def permissions_of(policy: Policy, head: Head) -> Permissions:
    """Return the permissions of a request's sender; it may only sign at endpoints of layers
    with keys, and on development chains."""
    may_sign = policy.origins.dev or policy.admissions.get(head.endpoint, _ROUTE).signs
    if not may_sign and head.fields.keys().isdisjoint(BROWSER_HEADERS):
        client = _client_of(head.address, may_write=True)
        return Permissions(client=client, fields=head.fields)
    found = policy.origins.permissions(head.fields, head.host, head.address)
    client = _client_of(head.address, may_write=found.may_write)
    return found._replace(client=client, fields=head.fields)


def _client_of(address: str, *, may_write: bool) -> str:
    """Return the key of the client whose limits apply to a request from an address.

    Web pages of other sites count as a separate client, so that they can't use up the limits
    of programs at the same address.
    """
    key = client_key(address)
    # Clients of a Unix socket have no address, so they are not distinguished.
    return key if may_write or not key else f"pages at {key}"


def _admit_route(policy: Policy, head: Head) -> Refusal | Admitted:
    permissions = permissions_of(policy, head)
    if not permissions.may_read:
        return Refusal(error=OriginRefused(ORIGIN_DENIED), request_id=URI_ID)
    limit = body_limit(policy.max_body, head) if policy.takes_forms and _has_form(head) else 0
    if limit and (head.content_length or 0) > limit:
        return Refusal(error=BodyTooLarge(limit), max_body=limit)
    return Admitted(policy, head, permissions, limit)


def _has_form(head: Head) -> bool:
    # Go ignores a URL-encoded form with other methods; net/http, Request.ParseForm.
    return head.mimetype == MULTIPART or (
        head.mimetype == FORM and head.method in _FORM_METHODS
    )


def _admit_rpc(policy: Policy, head: Head) -> Refusal | Admitted:
    is_page = policy.page_for_empty_body and not head.has_body
    return admit_body(policy, head, is_page=is_page)


def admit_body(policy: Policy, head: Head, *, is_page: bool = False) -> Refusal | Admitted:
    """Admit or refuse a request with a JSON-RPC body; with ``is_page``, it has no body and
    asks for a page, which any origin may read."""
    limit = body_limit(policy.max_body, head)
    coding = coding_of(head)
    if coding:
        error = BodyEncoded(f"send the body without Content-Encoding: {coding}")
        return Refusal(error=error, max_body=policy.max_body)
    if (head.content_length or 0) > limit:
        return Refusal(error=BodyTooLarge(limit), max_body=limit)
    permissions = permissions_of(policy, head)
    if not permissions.may_read and not is_page:
        return Refusal(error=OriginRefused(ORIGIN_DENIED), max_body=limit)
    return Admitted(policy, head, permissions, limit)


def admit_handshake(policy: Policy, head: Head) -> Refusal | Admitted:
    """Admit or refuse the handshake of a websocket."""
    permissions = permissions_of(policy, head)
    if not permissions.may_read:
        return Refusal(Response(HTTPStatus.FORBIDDEN, [HTML], f"{ORIGIN_DENIED}\n".encode()))
    return Admitted(policy, head, permissions)


def unreadable(policy: Policy, head: Head, error: NodeRPCError) -> NodeRPCError:
    """Return the error to report for a body that is too long or ends too early."""
    return policy.admissions.get(head.endpoint, _ROUTE).unreadable(error)


def body_limit(max_body: int, head: Head) -> int:
    """Return the maximum bytes of a body: ``max_body``, unless the app has a lower limit."""
    return min(max_body, head.max_body or max_body)


def coding_of(head: Head) -> str:
    """Return the content coding of a body, such as ``gzip``; empty if it is not encoded."""
    coding: str = head.fields.get("HTTP_CONTENT_ENCODING", "identity")
    return "" if coding.lower() == "identity" else coding


_ROUTE = Admission(_admit_route)

NODE_ADMISSIONS: Mapping[str, Admission] = {
    RPC: Admission(_admit_rpc),
    WEBSOCKET: Admission(admit_handshake),
}
"""Admission rules of the node's RPC, by endpoint."""
