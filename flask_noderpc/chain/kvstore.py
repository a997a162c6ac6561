"""CometBFT's example application: ``key=value`` transactions (0.38 semantics)."""

from __future__ import annotations

from ..backend.application import BlockRequest, Changes
from ..canonical.protobuf import varint
from ..domain.abci import AppInfo, QueryResult
from .pairs import PairApplication

_PAIR = b"pair:"
_SIZE = b"size"


class KVStore(PairApplication):
    """Keeps pairs, counts transactions, and changes validators."""

    name = "kvstore"
    is_of_chain = True

    def info(self) -> AppInfo:
        size = self._number(_SIZE)
        return AppInfo(
            data=f'{{"size":{size}}}',
            # CometBFT 0.38: the ABCI protocol's version, and the kvstore's own.
            version="2.0.0",
            app_version=1,
            last_block_height=self._height(),
            last_block_app_hash=_app_hash(size),
        )

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        return _app_hash(0), {}

    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        size = self._number(_SIZE) + len(block.txs)
        kept = {_PAIR + key: value for key, value in pairs.items()}
        return _app_hash(size), {**kept, _SIZE: str(size).encode()}

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        if path == "/val":
            return self._validator(data)
        value = self._state.get(_PAIR + data)
        return QueryResult(
            log="does not exist" if value is None else "exists",
            # CometBFT 0.38: a proof is asked for with -1 and never given.
            index=-1 if prove else 0,
            key=data,
            value=value or b"",
            height=self._height(),
        )


def _app_hash(size: int) -> bytes:
    # CometBFT: Go's PutVarint, zig-zag, into eight bytes.
    return varint(size << 1).ljust(8, b"\x00")
