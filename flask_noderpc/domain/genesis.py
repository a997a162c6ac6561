"""Genesis document."""

from __future__ import annotations

from dataclasses import dataclass

from .params import ConsensusParams
from .validator import PublicKey


@dataclass(frozen=True, slots=True)
class GenesisValidator:
    """Validator of the genesis document."""

    address: bytes
    pub_key: PublicKey
    power: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Genesis:
    """Genesis document: all that the first block depends on."""

    chain_id: str
    genesis_time: int
    initial_height: int = 1
    consensus_params: ConsensusParams = ConsensusParams()
    validators: tuple[GenesisValidator, ...] = ()
    app_hash: bytes = b""
    app_state: bytes = b""
    """The application's own JSON document, byte for byte; empty when absent."""


@dataclass(frozen=True, slots=True)
class GenesisChunk:
    """One slice of the encoded genesis document."""

    chunk: int
    total: int
    content: bytes
