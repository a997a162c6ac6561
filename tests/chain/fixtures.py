"""Fixtures of the chain tests: homes with chosen validators, small applications."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flask_noderpc.backends.base.application import (
    Application,
    AppState,
    BlockExecution,
    BlockRequest,
    InitChain,
)
from flask_noderpc.chain.validator_keys import LastSigned, validator_key_document
from flask_noderpc.domain.abci import AppInfo, ExecTxResult, QueryResult
from flask_noderpc.domain.genesis import ConsensusParams, Genesis, GenesisValidator
from flask_noderpc.domain.time import SECOND
from flask_noderpc.protocol.comet.genesis import genesis_document
from flask_noderpc.protocol.comet.keys import PrivateKey

GENESIS_TIME = 1_600_000_000 * SECOND


def key(number: int) -> PrivateKey:
    """Return a key that is the same in every run."""
    return PrivateKey(bytes([number]) * 32)


def validator_tx(private: PrivateKey, power: int) -> bytes:
    return b"val=ed25519!" + b64encode(private.public.value) + b"!%d" % power


def write_key(folder: Path, private: PrivateKey, name: str = "priv_validator_key.json") -> None:
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / name).write_bytes(validator_key_document(private))
    # The key has not signed anything yet.
    record = folder / "data" / name.replace("_key", "_state")
    record.parent.mkdir(exist_ok=True)
    record.write_bytes(LastSigned().document())


def write_home(
    folder: Path,
    powers: dict[int, int],
    own: Sequence[int],
    params: ConsensusParams | None = None,
) -> None:
    """Write a home whose genesis has validators by key number, and the keys in ``own``."""
    genesis = Genesis(
        chain_id="made-by-hand",
        genesis_time=GENESIS_TIME,
        consensus_params=params or ConsensusParams(),
        validators=tuple(
            GenesisValidator(key(number).address, key(number).public, power)
            for number, power in powers.items()
        ),
    )
    names = ["priv_validator_key.json", *(f"priv_validator_key.{n}.json" for n in own[1:])]
    for number, name in zip(own, names, strict=True):
        write_key(folder, key(number), name)
    (folder / "config" / "genesis.json").write_bytes(genesis_document(genesis))


@dataclass
class Recorder(Application):
    """An application with its own store: a list of blocks, in memory or in a file."""

    file: Path | None = None
    kept: list[list[str]] = field(default_factory=list)
    inits: int = 0

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            self.kept = json.loads(self.file.read_text())
        self._next: list[str] = []

    def __call__(self, state: AppState) -> Application:
        """Return this application, where a factory that takes a state is expected."""
        return self

    def info(self) -> AppInfo:
        return AppInfo(last_block_height=len(self.kept))

    def init_chain(self, genesis: Genesis) -> InitChain:
        self.inits += 1
        return InitChain(app_hash=b"start")

    def check_tx(self, tx: bytes) -> ExecTxResult:
        return ExecTxResult(gas_wanted=int(tx) if tx.isdigit() else 1)

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        self._next = [tx.decode() for tx in block.txs]
        seen = [*self.kept, self._next]
        app_hash = json.dumps(seen).encode()
        return BlockExecution(tuple(ExecTxResult() for _ in block.txs), app_hash)

    def commit(self, height: int) -> None:
        self.kept.append(self._next)
        if self.file is not None:
            self.file.write_text(json.dumps(self.kept))

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        return QueryResult(value=b"%d" % len(self.kept), height=len(self.kept))
