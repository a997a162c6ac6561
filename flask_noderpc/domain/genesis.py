"""Genesis document and consensus parameters; the defaults are those of CometBFT 0.38."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from .time import SECOND
from .validator import ED25519, PublicKey


@dataclass(frozen=True, slots=True)
class BlockParams:
    """Limits of one block."""

    max_bytes: int = 22_020_096
    max_gas: int = -1
    """Maximum gas of a block; -1 means unlimited."""
    time_iota_ms: int = 1000
    """Minimum step between block times in milliseconds; CometBFT 0.34 only, ignored since
    0.37."""


@dataclass(frozen=True, slots=True)
class EvidenceParams:
    """Maximum age and size of evidence; evidence expires when it exceeds both the age in
    blocks and the age in time."""

    max_age_num_blocks: int = 100_000
    max_age_duration: int = 48 * 3600 * SECOND
    max_bytes: int = 1_048_576


@dataclass(frozen=True, slots=True)
class ValidatorParams:
    """Key types that validators may use."""

    pub_key_types: tuple[str, ...] = (ED25519,)


@dataclass(frozen=True, slots=True)
class SynchronyParams:
    """Limits of proposer-based timestamps, in nanoseconds."""

    # CometBFT 1.0: types/params.go, DefaultSynchronyParams.
    precision: int = 505 * SECOND // 1000
    message_delay: int = 15 * SECOND


@dataclass(frozen=True, slots=True)
class ConsensusParams:
    """All consensus parameters in force at a height."""

    block: BlockParams = BlockParams()
    evidence: EvidenceParams = EvidenceParams()
    validator: ValidatorParams = field(default=ValidatorParams())
    app_version: int = 0
    vote_extensions_enable_height: int = 0
    """First height at which precommits have extensions; 0 means never."""
    pbts_enable_height: int = 0
    """First height at which the proposer's clock determines a block's time; 0 means never."""
    synchrony: SynchronyParams = SynchronyParams()
    authority: str = ""
    """Value with a meaning only for the application."""

    def updated(self, update: ConsensusParamsUpdate) -> ConsensusParams:
        """Return these parameters with an application's updates applied."""
        changed = {field.name: getattr(update, field.name) for field in fields(update)}
        return replace(
            self, **{name: value for name, value in changed.items() if value is not None}
        )


@dataclass(frozen=True, slots=True)
class ConsensusParamsUpdate:
    """Parameter updates of an application; ``None`` leaves a group unchanged."""

    block: BlockParams | None = None
    evidence: EvidenceParams | None = None
    validator: ValidatorParams | None = None
    app_version: int | None = None
    vote_extensions_enable_height: int | None = None
    pbts_enable_height: int | None = None
    synchrony: SynchronyParams | None = None
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class GenesisValidator:
    """A validator in the genesis document."""

    address: bytes
    pub_key: PublicKey
    power: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Genesis:
    """Genesis document: chain ID, parameters, validators and state before the first block."""

    chain_id: str
    genesis_time: int
    initial_height: int = 1
    consensus_params: ConsensusParams = ConsensusParams()
    validators: tuple[GenesisValidator, ...] = ()
    app_hash: bytes = b""
    app_state: bytes = b""
    """The application's JSON, byte for byte; empty if it is missing."""


@dataclass(frozen=True, slots=True)
class GenesisChunk:
    """One slice of the encoded genesis document."""

    chunk: int
    total: int
    content: bytes


@dataclass(frozen=True, slots=True)
class GenesisSource:
    """Source of a genesis document whose chunks are stored as a node sent them."""

    total: int
    """Number of chunks."""
    dialect: str
    """Dialect of the node."""
    source: str
    """Name of the node."""
