"""Forward calls about mempool, evidence, application and network to upstream nodes.

CometBFT ADR-102: the routes of group 3, and abci_query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from .. import jsoncodec
from ..backends.base.application import ApplicationAccess
from ..backends.base.capabilities import Mempool, Network
from ..backends.base.evidence import EvidencePool
from ..domain.abci import AppInfo, ExecTxResult, QueryResult
from ..domain.block import Evidence
from ..domain.genesis import GenesisChunk
from ..domain.network import NetInfo, NodeInfo
from ..domain.responses import (
    PendingCount,
    PendingTxs,
    ResultABCIInfo,
    ResultABCIQuery,
    ResultBroadcastEvidence,
    ResultBroadcastTx,
)
from ..domain.validator import PublicKey
from ..errors import Busy, InvalidEvidence, TxRejected, UpstreamError, UpstreamRefused
from .cached_status import CachedStatus
from .in_flight import ReadsInFlight
from .pool import Upstreams
from .reader import Reader
from .rounds import has_rounds, translate_round

T = TypeVar("T")

# Number of blocks by which a store may lag and still report catching_up false: it lags for
# moments if blocks are frequent, and nodes of 0.39 and 0.40 refuse transactions while they
# catch up.
_ON_THEIR_WAY = 5

# Error texts for a pruned state. cosmos-sdk: baseapp/abci.go, store/rootmulti/store.go,
# store/iavl/store.go; iavl: nodedb.go.
_NO_STATE = re.compile(
    r"version does not exist|failed to load state at height|version mismatch"
    r"|ensure height has not been pruned|height not found|height \d+ is not available"
)

# CometBFT 1.0: mempool/errors.go, ErrInvalidTx.
_INVALID_TX = re.compile(
    r"code=(\d{1,10}), data=((?:[0-9A-Fa-f]{2})*), log='(.*)', codespace='([^']*)'",
    re.DOTALL,
)


# Prefix of CometBFT's error (rpc/core/evidence.go), removed here because the serving handler
# adds it again.
_REFUSED_EVIDENCE = re.compile(r"^failed to add evidence: (Invalid evidence: )?")


class ForwardedMempool(Mempool):
    """The mempool of the nodes.

    Equal reads in flight are shared, except by callers before and after a submitted
    transaction.
    """

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._reads = ReadsInFlight(upstreams.reserve)
        self._submitted = 0

    def submit(self, tx: bytes) -> ExecTxResult:
        """Broadcast a transaction; return the members that ``broadcast_tx_sync`` has, others
        stay empty."""

        def send(reader: Reader) -> ResultBroadcastTx:
            return reader.node.get(ResultBroadcastTx, "broadcast_tx_sync", tx=tx)

        try:
            found = self._upstreams.attempt(send)
            self._submitted += 1
        except UpstreamRefused as error:
            failed = _failed_check(error.text)
            if failed is None:
                raise TxRejected(error.text) from None
            return failed
        return ExecTxResult(found.code, found.data, found.log, codespace=found.codespace)

    def pending(self, limit: int) -> PendingTxs:
        return self._read(PendingTxs, "unconfirmed_txs", limit=limit)

    def pending_count(self) -> PendingCount:
        return self._read(PendingCount, "num_unconfirmed_txs")

    def _read(self, result: type[T], method: str, **params: int) -> T:
        key = (method, *params.values(), self._submitted)
        return self._reads.get(
            key,
            lambda: self._upstreams.attempt(
                lambda reader: reader.node.get(result, method, **params)
            ),
        )


def _failed_check(text: str) -> ExecTxResult | None:
    """Parse the failed check from CometBFT 1.0's error text; ``None`` for another error. Other
    versions return the check as a result."""
    found = _INVALID_TX.fullmatch(text.partition(" is invalid: ")[2])
    if found is None:
        return None
    code, data, log, codespace = found.groups()
    return ExecTxResult(int(code), bytes.fromhex(data), log, codespace=codespace)


class ForwardedEvidence(EvidencePool):
    """The evidence pool of the nodes."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    def submit(self, piece: Evidence) -> bytes:
        def send(reader: Reader) -> ResultBroadcastEvidence:
            shown = reader.node.dialect.evidence(piece)
            return reader.node.get(
                ResultBroadcastEvidence, "broadcast_evidence", evidence=shown
            )

        try:
            return self._upstreams.attempt(send).hash
        except UpstreamRefused as error:
            raise InvalidEvidence(_REFUSED_EVIDENCE.sub("", error.text)) from None


class ForwardedApplication(ApplicationAccess):
    """Access to the nodes' application.

    Equal reads in flight are shared by callers at the same height of the store: a client that
    has seen a block must see its state. ``own_height`` returns the store's height.
    """

    def __init__(self, upstreams: Upstreams, own_height: Callable[[], int]) -> None:
        self._upstreams, self._own_height = upstreams, own_height
        self._reads = ReadsInFlight(upstreams.reserve)

    def info(self) -> AppInfo:
        return self._reads.get(("abci_info", self._own_height()), self._info)

    def _info(self) -> AppInfo:
        return self._upstreams.attempt(
            lambda reader: reader.node.get(ResultABCIInfo, "abci_info").response
        )

    def check_tx(self, tx: bytes) -> ExecTxResult:
        return self._upstreams.attempt(
            lambda reader: reader.node.get(ExecTxResult, "check_tx", tx=tx)
        )

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        key = ("abci_query", path, data, height, prove, self._own_height())
        return self._reads.get(key, lambda: self._query(path, data, height, prove))

    def _query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Query the nodes until one has the state of the height, as some may have pruned
        it."""
        lacking: list[QueryResult] = []

        def ask(reader: Reader) -> QueryResult:
            found = reader.node.get(
                ResultABCIQuery,
                "abci_query",
                path=path,
                data=data.hex(),
                height=height,
                prove=prove,
            ).response
            if _lacks_state(found):
                lacking.append(found)
                raise UpstreamRefused(reader.name, found.code, found.log)
            return found

        try:
            return self._upstreams.attempt(ask)
        except (UpstreamError, Busy):
            # Return the valid response "no such state", even if an unreachable node has the
            # state.
            if not lacking:
                raise
            return lacking[0]


def _lacks_state(found: QueryResult) -> bool:
    # In cosmos-sdk, a query of a store without that state has code 0 and no value.
    is_empty = found.code != 0 or not found.value
    return is_empty and _NO_STATE.search(found.log) is not None


class ForwardedNetwork(Network):
    """Network data of the first node that responds: its status and its peers.

    The status is read in the background at most once a second, so that no request for stored
    blocks waits for a node. ``own_height`` returns the store's height, which stays
    ``head_delay`` blocks behind the nodes' height.
    """

    def __init__(
        self,
        chain_id: Callable[[], str],
        upstreams: Upstreams,
        own_height: Callable[[], int],
        head_delay: int = 0,
    ) -> None:
        super().__init__(chain_id)
        self._status = CachedStatus(upstreams)
        self._reads = ReadsInFlight(upstreams.reserve)
        self._upstreams, self._own_height = upstreams, own_height
        self._max_behind = head_delay + _ON_THEIR_WAY

    def node_info(self) -> NodeInfo:
        found = self._status.get()
        return found.node_info if found else super().node_info()

    def net_info(self) -> NetInfo:
        return self._reads.get("net_info", self._net_info)

    def _net_info(self) -> NetInfo:
        return self._upstreams.attempt(lambda reader: reader.node.get(NetInfo, "net_info"))

    def genesis_chunk(self, number: int) -> GenesisChunk | None:
        return self._reads.get(
            ("genesis_chunked", number),
            lambda: self._upstreams.attempt(lambda reader: reader.genesis_chunk(number)),
        )

    def live_round(self, dialect: str, *, dump: bool) -> jsoncodec.Raw | None:
        if not has_rounds(dialect):
            return None
        method = "dump_consensus_state" if dump else "consensus_state"
        shown, source = self._reads.get(
            (method, self._own_height()),
            lambda: self._upstreams.attempt(
                lambda reader: (reader.node.raw(method), reader.node.dialect.name)
            ),
        )
        return translate_round(shown, source, dialect) if has_rounds(source) else None

    def validator_key(self) -> PublicKey:
        found = self._status.get()
        return found.validator_info.pub_key if found else super().validator_key()

    def catching_up(self) -> bool:
        """Return true while the store lags behind the node, or the node behind its peers."""
        found = self._status.get()
        if found is None:
            return False
        sync = found.sync_info
        return sync.catching_up or (
            self._own_height() < sync.latest_block_height - self._max_behind
        )

    def upstream_height(self) -> int | None:
        found = self._status.get()
        return found.sync_info.latest_block_height if found else None

    def upstreams(self) -> Mapping[str, str]:
        return self._upstreams.states()

    def last_error(self) -> str:
        """Return why no node responds now; an empty string if one does."""
        return self._status.error()
