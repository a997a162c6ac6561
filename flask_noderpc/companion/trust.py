"""The trusted header: the one that the operator names, or the first one that is read."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..domain.block import Header
from ..errors import (
    ConfigurationError,
    InvalidSetting,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from ..protocol.comet import hashes
from .light import (
    TRUST_PERIOD_NS,
    FromTheFuture,
    NotTrusted,
    SignedBlock,
    check_age,
    check_follows,
    check_signed,
    is_ahead,
)
from .pool import Upstreams
from .reader import Reader

log = logging.getLogger("flask_noderpc.companion")

_TRUST = re.compile(r"(\d{1,18}):(?:0x)?([0-9A-Fa-f]{64})")
# A pivot is a header halfway to the one to prove; the distance is at most 2^63 heights.
_MAX_PIVOTS = 64

STEP = 400
"""Number of headers that are read at a time: two batches of 10 calls for 20 headers each."""


@dataclass(frozen=True, slots=True)
class TrustOptions:
    """The header that is trusted without a proof, and the time for which headers are
    trusted."""

    height: int = 0
    """Height of the trusted header; 0 means that the first header that is read is trusted."""
    hash: bytes = b""
    period: int = TRUST_PERIOD_NS
    """Trusting period in nanoseconds."""
    takes_unknown_keys: bool = False
    """True to accept validators with key types whose signatures can't be verified here."""
    clock: Callable[[], int] = time.time_ns

    @classmethod
    def parse(cls, text: str, period: int = TRUST_PERIOD_NS) -> TrustOptions:
        """Parse ``HEIGHT:HASH``; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
        found = _TRUST.fullmatch(text.strip())
        if found is None or int(found[1]) == 0:
            raise InvalidSetting(
                f"--trust: expected HEIGHT:HASH with a hash of 64 hexadecimal digits, such as"
                f" 1200000:9FAB…, got {text[:80]!r}"
            )
        return cls(int(found[1]), bytes.fromhex(found[2]), period)


def trusted_block(
    upstreams: Upstreams, chain_id: str, height: int, trust: TrustOptions
) -> SignedBlock:
    """Return the signed header of a height, proven by the trusted one.

    Without a trusted header, all upstreams must have the same header, which is trusted with a
    warning. Raise :exc:`HeaderAhead` if the validators have signed a header ahead of this
    machine's clock, and the errors of :meth:`Upstreams.attempt`.
    """
    if trust.height:
        return upstreams.attempt(
            lambda reader: _proven(reader, chain_id, height, trust), final=(HeaderAhead,)
        )
    found, *others = upstreams.ask_all(lambda reader: _signed(reader, chain_id, height, trust))
    if any(each.hash != found.hash for each in others):
        raise ConfigurationError(
            f"upstream nodes: expected the same header at height {height}, got different ones;"
            " pass --trust HEIGHT:HASH (NODERPC_TRUST) of the right chain"
        )
    log.warning(
        "header %d of chain %s is trusted without a proof, as --trust HEIGHT:HASH"
        " (NODERPC_TRUST) is not set; compare its hash with another source: %s",
        height,
        chain_id,
        found.hash.hex().upper(),
    )
    return found


def _signed(reader: Reader, chain_id: str, height: int, trust: TrustOptions) -> SignedBlock:
    found = reader.signed_block(height)
    takes = trust.takes_unknown_keys
    _check(reader, lambda: check_signed(chain_id, found, takes_unknown_keys=takes))
    return found


def _proven(reader: Reader, chain_id: str, height: int, trust: TrustOptions) -> SignedBlock:
    root = trusted_root(reader, chain_id, trust)
    if height < trust.height:
        return _backwards(reader, chain_id, root, height, trust)
    if height == trust.height:
        return root
    found = reader.signed_block(height)
    prove(reader, root, found, trust)
    return found


def trusted_root(reader: Reader, chain_id: str, trust: TrustOptions) -> SignedBlock:
    """Read the header that the operator trusts from a node; raise ``UpstreamMismatch`` if the
    node's header has another hash."""
    root = _signed(reader, chain_id, trust.height, trust)
    check_trusted(reader.name, root.signed_header.header, trust)
    return root


class HeaderAhead(UpstreamUnavailable):
    """A header is ahead of this machine's clock, which may be wrong."""

    def __init__(self, name: str, error: FromTheFuture) -> None:
        self.header = error.header
        super().__init__(name, str(error))


def lowest_ahead(upstreams: Upstreams, low: int, high: int, trust: TrustOptions) -> int | None:
    """Return the lowest height of a range whose header is ahead of this machine's clock, or
    ``None``.

    The result is only one node's claim, as nothing proves the headers. Raise the errors of
    :meth:`Upstreams.attempt`.
    """
    now = trust.clock()
    return upstreams.attempt(lambda reader: _lowest_ahead(reader, low, high, now))


def _lowest_ahead(reader: Reader, low: int, high: int, now: int) -> int | None:
    found = reader.header(high)
    if not is_ahead(found, now):
        return None
    while low < found.height:
        middle = (low + found.height - 1) // 2
        try:
            header = reader.header(middle)
        except (UpstreamRefused, UpstreamMismatch):
            # The node has pruned this header, which therefore is old and not ahead.
            low = middle + 1
            continue
        if is_ahead(header, now):
            found = header
        else:
            low = middle + 1
    return found.height


def check_trusted(name: str, header: Header, trust: TrustOptions) -> None:
    """Raise ``UpstreamMismatch`` if a header at the trusted height does not have the trusted
    hash."""
    found = hashes.header_hash(header)
    if found != trust.hash:
        raise UpstreamMismatch(
            name,
            f"its header {header.height} is {found.hex().upper()}, and not the trusted one,"
            f" {trust.hash.hex().upper()}: the node is of another chain or fork, or --trust has"
            " a wrong hash",
        )


class CannotFollow(ConfigurationError):
    """The head can't be followed until the operator acts; the message says what to do."""


def prove(
    reader: Reader,
    trusted: SignedBlock,
    block: SignedBlock,
    trust: TrustOptions,
    seen: int = 0,
) -> None:
    """Raise ``UpstreamMismatch`` unless a trusted header proves a later one.

    Raise :exc:`HeaderAhead` for a header ahead of this machine's clock. Headers between the
    two are read if needed. Raise :exc:`CannotFollow` if the trusted header is too old;
    ``seen`` is the time at which it was last known to be the newest of its chain, or 0.
    CometBFT: light/client.go, verifySkipping.
    """
    now = trust.clock()
    try:
        check_age(trusted, now, trust.period, seen)
    except ValueError as error:
        raise CannotFollow(str(error)) from None
    waiting = [block]
    while waiting:
        try:
            check_follows(
                trusted, waiting[-1], now, takes_unknown_keys=trust.takes_unknown_keys
            )
        except NotTrusted as error:
            pivot = (trusted.height + waiting[-1].height) // 2
            if len(waiting) > _MAX_PIVOTS or pivot == trusted.height:
                raise UpstreamMismatch(reader.name, str(error)) from None
            waiting.append(reader.signed_block(pivot))
        except FromTheFuture as error:
            raise HeaderAhead(reader.name, error) from None
        except ValueError as error:
            raise UpstreamMismatch(reader.name, str(error)) from None
        else:
            trusted = waiting.pop()


def check_linked(
    name: str, chain_id: str, block: SignedBlock, expected: bytes, trust: TrustOptions
) -> None:
    """Raise ``UpstreamMismatch`` unless a signed header has the ``expected`` hash, which links
    to a trusted header, and :exc:`HeaderAhead` if it is ahead of this machine's clock."""
    if block.hash != expected:
        raise UpstreamMismatch(
            name,
            f"its header {block.height} is {block.hash.hex().upper()}; expected"
            f" {expected.hex().upper()}, to which the trusted header links",
        )
    try:
        check_signed(chain_id, block, takes_unknown_keys=trust.takes_unknown_keys)
    except ValueError as error:
        raise UpstreamMismatch(name, str(error)) from None
    header, now = block.signed_header.header, trust.clock()
    if is_ahead(header, now):
        raise HeaderAhead(name, FromTheFuture(header, now))


def _backwards(
    reader: Reader, chain_id: str, root: SignedBlock, height: int, trust: TrustOptions
) -> SignedBlock:
    """Return a signed header below the trusted one, proven by the hashes from there
    downwards."""
    above = root.signed_header.header
    while above.height > height:
        above = linked_headers(reader, max(height, above.height - STEP), above)[-1]
    found = _signed(reader, chain_id, height, trust)
    if found.hash != hashes.header_hash(above):
        raise UpstreamMismatch(
            reader.name, f"blockchain and commit have different headers at height {height}"
        )
    return found


def linked_headers(reader: Reader, low: int, above: Header) -> list[Header]:
    """Return the headers below a proven one down to height ``low``, highest first; each header
    has the hash of the one below it.

    Raise ``UpstreamMismatch`` if a hash differs, and ``UpstreamRefused`` if the node has
    pruned some headers.
    """
    found = reader.headers_descending(low, above.height - 1)
    for header in found:
        if not links(header, above):
            raise UpstreamMismatch(
                reader.name,
                f"its header {header.height} does not have the hash in header {above.height}",
            )
        above = header
    return found


def links(header: Header, above: Header) -> bool:
    """Return true if the next header, ``above``, contains the hash of this header."""
    return hashes.header_hash(header) == above.last_block_id.hash


def _check(reader: Reader, rule: Callable[[], object]) -> None:
    try:
        rule()
    except ValueError as error:
        raise UpstreamMismatch(reader.name, str(error)) from None
