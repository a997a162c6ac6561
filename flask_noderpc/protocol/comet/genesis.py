"""Genesis documents, as files and as the text that a node hashes."""

from __future__ import annotations

from typing import Any

from ... import jsoncodec
from ...domain.genesis import (
    BlockParams,
    ConsensusParams,
    EvidenceParams,
    Genesis,
    GenesisValidator,
    SynchronyParams,
    ValidatorParams,
)
from ...domain.time import ZERO_TIME, from_text, to_text
from ...domain.validator import PublicKey
from ...errors import ConfigurationError
from ...settings import check_chain_id
from .key_types import KEY_NAMES, address


class _Key(jsoncodec.Struct):
    type: str
    value: bytes


class _Validator(jsoncodec.Struct):
    pub_key: _Key
    power: str | int
    address: str = ""
    name: str = ""


class _Genesis(jsoncodec.Struct):
    chain_id: str
    genesis_time: str = "0001-01-01T00:00:00Z"
    initial_height: str | int = 0
    consensus_params: dict[str, dict[str, Any]] | None = None
    validators: list[_Validator] | None = None
    app_hash: str = ""
    app_state: jsoncodec.Raw = jsoncodec.Raw(b"")


def read_genesis(document: bytes, now: int) -> Genesis:
    """Parse a genesis document; ``now`` replaces a missing ``genesis_time``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` that names the invalid field.
    """
    try:
        raw = jsoncodec.decode(document, _Genesis)
        genesis_time = from_text(raw.genesis_time)
        return Genesis(
            chain_id=check_chain_id(raw.chain_id),
            genesis_time=now if genesis_time == ZERO_TIME else genesis_time,
            initial_height=_checked_height(int(raw.initial_height)),
            consensus_params=_params(raw.consensus_params or {}),
            validators=tuple(_validator(v) for v in raw.validators or ()),
            app_hash=bytes.fromhex(raw.app_hash),
            app_state=bytes(raw.app_state),
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"genesis document: {error}") from None


def _checked_height(height: int) -> int:
    if height < 0:
        raise ValueError(f"initial_height is negative: {height}")
    # CometBFT: init writes 0, which means 1.
    return height or 1


def _validator(raw: _Validator) -> GenesisValidator:
    names = {name: kind for kind, name in KEY_NAMES.items()}
    if raw.pub_key.type not in names:
        raise ValueError(f"validator key type {raw.pub_key.type!r} is not supported")
    key = PublicKey(names[raw.pub_key.type], raw.pub_key.value)
    own_address, power = address(key), int(raw.power)
    if raw.address and bytes.fromhex(raw.address) != own_address:
        raise ValueError(f"validator address {raw.address} is not that of its key")
    if power <= 0:
        raise ValueError(f"validator {own_address.hex().upper()} has voting power {power}")
    return GenesisValidator(own_address, key, power, raw.name)


def _params(raw: dict[str, dict[str, Any]]) -> ConsensusParams:
    def number(group: str, name: str, default: int) -> int:
        return int(raw.get(group, {}).get(name, default))

    block, evidence, default = BlockParams(), EvidenceParams(), ConsensusParams()
    version, synchrony = raw.get("version", {}), default.synchrony
    extensions = "vote_extensions_enable_height"
    return ConsensusParams(
        _checked_block(
            BlockParams(
                number("block", "max_bytes", block.max_bytes),
                number("block", "max_gas", block.max_gas),
                number("block", "time_iota_ms", block.time_iota_ms),
            )
        ),
        EvidenceParams(
            number("evidence", "max_age_num_blocks", evidence.max_age_num_blocks),
            number("evidence", "max_age_duration", evidence.max_age_duration),
            number("evidence", "max_bytes", evidence.max_bytes),
        ),
        ValidatorParams(
            tuple(
                raw.get("validator", {}).get("pub_key_types", default.validator.pub_key_types)
            )
        ),
        # CometBFT 0.34 writes app_version.
        int(version.get("app", version.get("app_version", 0))),
        # CometBFT 1.0 moved it.
        number("feature", extensions, number("abci", extensions, 0)),
        number("feature", "pbts_enable_height", 0),
        SynchronyParams(
            number("synchrony", "precision", synchrony.precision),
            number("synchrony", "message_delay", synchrony.message_delay),
        ),
    )


def _checked_block(params: BlockParams) -> BlockParams:
    # CometBFT: ConsensusParams.ValidateBasic.
    if params.max_bytes == 0 or params.max_bytes < -1:
        raise ValueError(f"block.max_bytes is -1 or above 0, not {params.max_bytes}")
    if params.max_gas < -1:
        raise ValueError(f"block.max_gas is -1 or more, not {params.max_gas}")
    return params


def genesis_document(genesis: Genesis) -> bytes:
    """Encode a genesis document as CometBFT 0.38 does."""
    params = genesis.consensus_params
    document: dict[str, Any] = {
        "genesis_time": to_text(genesis.genesis_time),
        "chain_id": genesis.chain_id,
        "initial_height": str(genesis.initial_height),
        "consensus_params": {
            "block": {
                "max_bytes": str(params.block.max_bytes),
                "max_gas": str(params.block.max_gas),
            },
            "evidence": {
                "max_age_num_blocks": str(params.evidence.max_age_num_blocks),
                "max_age_duration": str(params.evidence.max_age_duration),
                "max_bytes": str(params.evidence.max_bytes),
            },
            "validator": {"pub_key_types": params.validator.pub_key_types},
            "version": {"app": str(params.app_version)},
            "abci": {
                "vote_extensions_enable_height": str(params.vote_extensions_enable_height)
            },
        },
        "validators": [
            {
                "address": v.address.hex().upper(),
                "pub_key": {"type": KEY_NAMES[v.pub_key.type], "value": v.pub_key.value},
                "power": str(v.power),
                "name": v.name,
            }
            for v in genesis.validators
        ],
        "app_hash": genesis.app_hash.hex().upper(),
    }
    if genesis.app_state:
        document["app_state"] = jsoncodec.Raw(genesis.app_state)
    return jsoncodec.pretty(document)
