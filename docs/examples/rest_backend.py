"""A backend over the REST API of a CometBFT node: what a route reads is fetched and decoded."""

import threading
import time
from functools import cache
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from flask import Flask

from flask_noderpc import DIALECTS, ChainBackend, ChainReads, NodeRPC, jsoncodec
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.block import Block, BlockID, BlockMeta, Commit
from flask_noderpc.domain.genesis import ConsensusParams, Genesis
from flask_noderpc.domain.responses import (
    ResultBlock,
    ResultBlockchainInfo,
    ResultCommit,
    ResultConsensusParams,
    ResultGenesis,
    ResultStatus,
    ResultTx,
    ResultValidators,
    SyncInfo,
)
from flask_noderpc.domain.search import TxResult
from flask_noderpc.domain.validator import Validator, ValidatorSet
from flask_noderpc.errors import (
    BackendError,
    BlockNotFound,
    HeightNotAvailable,
    ResultNotFound,
    TxNotFound,
)

T = TypeVar("T")
VALIDATORS_PER_PAGE, MAX_PAGES = 100, 100
POLL_SECONDS = 0.2


class NodeError(BackendError):
    """The node answered with an error."""


class RestClient:
    """Calls routes by GET, each within a number of seconds and bytes."""

    def __init__(self, url: str, dialect: str, timeout: float, max_bytes: int) -> None:
        self._url, self._dialect = url.rstrip("/"), DIALECTS[dialect]
        self._timeout, self._max_bytes = timeout, max_bytes

    def get(self, result: type[T], route: str, **given: object) -> T:
        """Return the result; raise BackendError; DecodeError, a subclass, names an invalid
        member."""
        body = self._fetch(f"{self._url}/{route}?{urlencode(given)}")
        try:
            answer = jsoncodec.decode(body)
        except jsoncodec.NotJSON:
            raise BackendError(f"{route}: the node did not answer with JSON") from None
        if not isinstance(answer, dict) or "result" not in answer:
            raise NodeError(f"{route}: the node refused: {str(answer)[:200]}")
        return self._dialect.load(result, answer["result"])

    def _fetch(self, url: str) -> bytes:
        deadline = time.monotonic() + self._timeout
        try:
            with self._opened(url) as response:
                return self._read(response, deadline)
        except (HTTPException, OSError, ValueError) as error:
            raise BackendError(f"the node can't be reached: {str(error)[:200]}") from None

    def _opened(self, url: str) -> Any:
        try:
            return urlopen(url, timeout=self._timeout)
        except HTTPError as error:
            # CometBFT: a call that failed is a 500, whose body is the JSON-RPC error.
            return error

    def _read(self, response: Any, deadline: float) -> bytes:
        body = bytearray()
        while chunk := response.read1(1 << 16):
            body += chunk
            if len(body) > self._max_bytes or time.monotonic() > deadline:
                raise BackendError("the node's answer is too long, or takes too long")
        return bytes(body)


class RestChain(ChainReads):
    """Reads a chain from its node."""

    def __init__(
        self,
        url: str,
        dialect: str = "comet-0.38",
        timeout: float = 10.0,
        max_bytes: int = 100_000_000,
    ) -> None:
        self._get = RestClient(url, dialect, timeout, max_bytes).get
        self._genesis = cache(lambda: self._get(ResultGenesis, "genesis").genesis)

    def _sync_info(self) -> SyncInfo:
        return self._get(ResultStatus, "status").sync_info

    def latest_height(self) -> int:
        """Return the height of the latest block."""
        return self._sync_info().latest_block_height

    def base_height(self) -> int:
        """Return the height of the oldest block."""
        return self._sync_info().earliest_block_height

    def _at(self, result: type[T], route: str, height: int) -> T:
        try:
            return self._get(result, route, height=height)
        except NodeError:
            self._check_height(height)
            raise

    def _check_height(self, height: int) -> None:
        known = self._sync_info()
        low, high = known.earliest_block_height, known.latest_block_height
        if not high or not low <= height <= high:
            raise HeightNotAvailable(height, low, high)

    def block(self, height: int) -> tuple[BlockID, Block]:
        """Return a block."""
        found = self._at(ResultBlock, "block", height)
        if found.block is None:
            raise NodeError(f"the node has no block at height {height}")
        return found.block_id, found.block

    def block_meta(self, height: int) -> BlockMeta:
        """Return a block's header and size."""
        wanted = {"minHeight": height, "maxHeight": height}
        try:
            found = self._get(ResultBlockchainInfo, "blockchain", **wanted).block_metas
        except NodeError:
            found = ()
        # CometBFT: a range of nothing is the latest blocks.
        for meta in found:
            if meta.header.height == height:
                return meta
        self._check_height(height)
        raise NodeError(f"the node does not list height {height}")

    def height_of(self, block_hash: bytes) -> int:
        """Return the height of a block."""
        wanted = f"0x{block_hash.hex()}"
        try:
            found = self._get(ResultBlock, "block_by_hash", hash=wanted).block
        except NodeError:
            found = None
        if found is None:
            raise BlockNotFound(block_hash)
        return found.header.height

    def commit(self, height: int) -> Commit:
        """Return the commit for a block."""
        return self._at(ResultCommit, "commit", height).signed_header.commit

    def results(self, height: int) -> BlockResults:
        """Return the results of a block."""
        return self._at(BlockResults, "block_results", height)

    def genesis(self) -> Genesis:
        """Return the genesis document; it never changes."""
        return self._genesis()

    def validators(self, height: int) -> ValidatorSet:
        """Return all pages of the set; the route does not show who proposes."""
        found: list[Validator] = []
        for page in range(1, MAX_PAGES + 1):
            wanted = {"page": page, "per_page": VALIDATORS_PER_PAGE}
            shown = self._state(ResultValidators, "validators", height, **wanted)
            found += shown.validators
            if len(found) >= shown.total:
                return ValidatorSet(tuple(found))
        raise NodeError(f"the node shows more than {len(found)} validators")

    def consensus_params(self, height: int) -> ConsensusParams:
        """Return the parameters at a height."""
        route = "consensus_params"
        return self._state(ResultConsensusParams, route, height).consensus_params

    def _state(self, result: type[T], route: str, height: int, **given: object) -> T:
        try:
            return self._get(result, route, height=height, **given)
        except NodeError:
            raise ResultNotFound(f"the node has no {route} of height {height}") from None

    def tx(self, tx_hash: bytes) -> TxResult:
        """Return a transaction."""
        try:
            found = self._get(ResultTx, "tx", hash=f"0x{tx_hash.hex()}")
        except NodeError:
            raise TxNotFound(tx_hash) from None
        return TxResult(found.height, found.index, found.tx, found.tx_result)

    def wait_for_height(self, after: int, timeout: float) -> int:
        """Return the latest height as soon as it is above ``after``, or at the timeout."""
        deadline = time.monotonic() + timeout
        while (height := self.latest_height()) <= after:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            threading.Event().wait(min(left, POLL_SECONDS))
        return height


def create_app(url: str = "http://127.0.0.1:26657", dialect: str = "comet-0.38") -> Flask:
    """Return an app that serves the document's dialect in front of a node."""
    app = Flask(__name__)
    # Without a mempool, the node takes no transactions.
    NodeRPC(app, backend=ChainBackend(RestChain(url, dialect)))
    return app
