"""Tests of a home whose validator key is of type secp256k1, which CometBFT 1.0 can write."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain import home
from flask_noderpc.chain.validator_keys import (
    LastSigned,
    read_validator_key,
    validator_key_document,
)
from flask_noderpc.domain.validator import SECP256K1
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.installation import install_hint
from flask_noderpc.protocol.comet.keys import Secp256k1PrivateKey

from ..comet.test_secp256k1 import ADDRESS, KEY, ORDER, SIGNATURE
from .conftest import Open

# CometBFT: crypto/secp256k1, GenPrivKeySecp256k1([]byte("flask-noderpc")).
SECRET = (int.from_bytes(sha256(b"flask-noderpc").digest()) % (ORDER - 1) + 1).to_bytes(32)
DOCUMENT = {
    "address": ADDRESS.upper(),
    "pub_key": {
        "type": "tendermint/PubKeySecp256k1",
        "value": b64encode(KEY.value).decode(),
    },
    "priv_key": {
        "type": "tendermint/PrivKeySecp256k1",
        "value": b64encode(SECRET).decode(),
    },
}


def write_secp256k1_key(folder: Path) -> None:
    """Write a key that has signed nothing, and no genesis."""
    for name in ("config", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "config" / "priv_validator_key.json").write_text(json.dumps(DOCUMENT))
    record = folder / "data" / "priv_validator_state.json"
    record.write_bytes(LastSigned().document())


@pytest.mark.features
def test_the_key_and_its_signature_are_those_of_cometbft() -> None:
    key = Secp256k1PrivateKey(SECRET)

    assert (key.public, key.address.hex()) == (KEY, ADDRESS)
    assert key.sign(b"message") == SIGNATURE


@pytest.mark.features
def test_its_file_is_that_of_cometbft() -> None:
    key = read_validator_key(json.dumps(DOCUMENT).encode())

    assert json.loads(validator_key_document(key)) == DOCUMENT
    assert validator_key_document(key).decode() == json.dumps(DOCUMENT, indent=2)


@pytest.mark.features
def test_a_chain_is_signed_with_it(open_chain: Open, tmp_path: Path) -> None:
    write_secp256k1_key(tmp_path)
    chain = open_chain()

    heights = [chain.produce() for _ in range(5)]

    assert verify_chain(chain.reads) == len(heights)
    (member,) = chain.reads.validators(5).validators
    assert member.pub_key == KEY
    assert chain.reads.genesis().consensus_params.validator.pub_key_types == (SECP256K1,)


@pytest.mark.features
def test_a_genesis_that_does_not_allow_the_type_is_refused(tmp_path: Path) -> None:
    write_secp256k1_key(tmp_path)
    home.create(tmp_path, None, 1)
    path = tmp_path / "config" / "genesis.json"
    genesis = json.loads(path.read_text())
    genesis["consensus_params"]["validator"]["pub_key_types"] = ["ed25519"]
    path.write_text(json.dumps(genesis))

    with pytest.raises(ConfigurationError, match="pub_key_types: expected 'secp256k1'"):
        home.load(tmp_path, 1)


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "btclib_secp256k1", None)

    with pytest.raises(ConfigurationError) as caught:
        read_validator_key(json.dumps(DOCUMENT).encode())

    assert install_hint("evm") in str(caught.value)
    assert "ed25519" in str(caught.value)


def _with(**members: Any) -> bytes:
    return json.dumps({**DOCUMENT, "priv_key": {**DOCUMENT["priv_key"], **members}}).encode()  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "document",
    [
        _with(value=b64encode(SECRET[:31]).decode()),
        _with(value=b64encode(SECRET + b"\1").decode()),
        _with(value=b64encode(bytes(32)).decode()),
        _with(value=b64encode(ORDER.to_bytes(32)).decode()),
        _with(value="*"),
        _with(type="cometbft/PrivKeyMlDsa65"),
        _with(type="tendermint/PrivKeyEd25519"),
        _with(type=7),
    ],
)
def test_an_unusable_key_is_refused(document: bytes) -> None:
    with pytest.raises(ConfigurationError, match="key file"):
        read_validator_key(document)
