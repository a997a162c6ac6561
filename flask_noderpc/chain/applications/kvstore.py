"""CometBFT's example application: ``key=value`` transactions (0.38 semantics)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...backends.base.application import AppState, BlockRequest, Changes
from ...domain.abci import AppInfo, QueryResult
from ...domain.validator import ValidatorUpdate
from ...errors import ConfigurationError, StoreError
from ...protocol.protobuf import varint
from . import validator_txs
from .kv_base import KeyValueApplication

_PAIR = b"pair:"
_SIZE = b"size"
_VERSION = b"version"


def _app_hash(size: int) -> bytes:
    # CometBFT: Go's PutVarint, zig-zag, into eight bytes.
    return varint(size << 1).ljust(8, b"\x00")


def _checked_version(version: str) -> str:
    if version not in _VERSIONS:
        raise StoreError(
            f"the chain was made with version {version!r} of the kvstore, known are"
            f" {', '.join(VERSIONS)}: upgrade the package, or use another NODERPC_DATABASE"
        )
    return version


@dataclass(frozen=True, slots=True)
class _Version:
    abci: str
    """ABCI version, which the kvstore returns as its version."""
    first_hash: bytes
    """App hash before the first block."""
    record: Callable[[ValidatorUpdate], bytes]
    """Encoder of the values of ``/val``."""


_VERSIONS = {
    "0.34": _Version("0.17.0", b"", validator_txs.record_034),
    "0.37": _Version("1.0.0", b"", validator_txs.record_038),
    "0.38": _Version("2.0.0", _app_hash(0), validator_txs.record_038),
    "1.0": _Version("2.1.0", _app_hash(0), validator_txs.record_1),
}

VERSIONS = tuple(_VERSIONS)
"""CometBFT versions whose kvstore is implemented."""
DEFAULT_VERSION = "0.38"


class KVStore(KeyValueApplication):
    """Stores pairs, counts transactions, and changes validators.

    ``version`` is the CometBFT version of a new chain, which stores it. It determines the
    app hash of the first block, the values of ``/val`` and the version in ``abci_info``.
    """

    name = "kvstore"
    is_chain_only = True

    def __init__(self, state: AppState, version: str = DEFAULT_VERSION) -> None:
        super().__init__(state)
        if version not in _VERSIONS:
            raise ConfigurationError(
                f"no kvstore of version {version!r}: known are {', '.join(VERSIONS)}"
            )
        self._new_version = version

    def info(self) -> AppInfo:
        size, height, version = self._number(_SIZE), self._height(), _VERSIONS[self.version]
        return AppInfo(
            data=f'{{"size":{size}}}',
            version=version.abci,
            app_version=1,
            last_block_height=height,
            last_block_app_hash=_app_hash(size) if height else version.first_hash,
        )

    @property
    def version(self) -> str:
        """CometBFT version that the chain was created with, or will be."""
        stored = self._state.get(_VERSION)
        if stored is not None:
            return _checked_version(stored.decode(errors="replace"))
        # A chain with blocks but no stored version is from a release that had one version.
        return DEFAULT_VERSION if self._height() else self._new_version

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        return _VERSIONS[self.version].first_hash, {_VERSION: self.version.encode()}

    def _record(self, update: ValidatorUpdate) -> bytes:
        return _VERSIONS[self.version].record(update)

    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        size = self._number(_SIZE) + len(block.txs)
        records = {_PAIR + key: value for key, value in pairs.items()}
        return _app_hash(size), {**records, _SIZE: str(size).encode()}

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        if path == "/val":
            return self._validator(data)
        value = self._state.get(_PAIR + data)
        return QueryResult(
            log="does not exist" if value is None else "exists",
            # CometBFT 0.38: the kvstore answers a request for a proof with index -1.
            index=-1 if prove else 0,
            key=data,
            value=value or b"",
            height=self._height(),
        )


def kvstore_of(dialect: str) -> Callable[[AppState], KVStore]:
    """Return the kvstore of a dialect's CometBFT version, or the default version's."""
    version = dialect.removeprefix("comet-")
    return partial(KVStore, version=version if version in VERSIONS else DEFAULT_VERSION)
