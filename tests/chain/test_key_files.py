"""Tests of homes whose validator keys have types that CometBFT 0.40 and 1.0 added."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.validator_keys import (
    LastSigned,
    read_validator_key,
    validator_key_document,
)
from flask_noderpc.cli import main
from flask_noderpc.domain.validator import BLS12_381, SECP256K1ETH
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.installation import install_hint
from flask_noderpc.protocol.comet.key_types import verify
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.comet.v038_schemas import Evidence
from flask_noderpc.wire.schema import compiled

from .conftest import Open
from .misbehavior import double_vote

SECRET = bytes(range(1, 33))
NAMES = {
    BLS12_381: ("cometbft/PrivKeyBls12_381", "py_arkworks_bls12381"),
    SECP256K1ETH: ("tendermint/PrivKeySecp256k1eth", "btclib_secp256k1"),
}
KINDS = pytest.mark.parametrize("kind", NAMES)


def document(kind: str, secret: bytes = SECRET) -> bytes:
    """Return the file of a key; skip the test without the library of its type."""
    name, library = NAMES[kind]
    pytest.importorskip(library)
    pytest.importorskip("eth_hash")
    key = {"type": name, "value": b64encode(secret).decode()}
    return json.dumps({"priv_key": key}).encode()


@KINDS
def test_a_key_is_read_and_written(kind: str) -> None:
    key = read_validator_key(document(kind))

    written = json.loads(validator_key_document(key))
    assert written["priv_key"] == json.loads(document(kind))["priv_key"]
    assert written["address"] == key.address.hex().upper()
    assert read_validator_key(validator_key_document(key)).public == key.public
    assert verify(key.public, key.sign(b"message"), b"message")
    assert not verify(key.public, key.sign(b"message"), b"another")


def chain_of(kind: str, open_chain: Open, folder: Path) -> EmbeddedChain:
    """A chain of one validator."""
    for name in ("config", "data"):
        (folder / name).mkdir()
    (folder / "config" / "priv_validator_key.json").write_bytes(document(kind))
    record = folder / "data" / "priv_validator_state.json"
    record.write_bytes(LastSigned().document())
    return open_chain()


@KINDS
def test_a_chain_is_signed_with_it(kind: str, open_chain: Open, tmp_path: Path) -> None:
    chain = chain_of(kind, open_chain, tmp_path)

    heights = [chain.produce() for _ in range(5)]

    assert verify_chain(chain.reads) == len(heights)
    (member,) = chain.reads.validators(5).validators
    assert member.pub_key.type == kind
    assert chain.reads.genesis().consensus_params.validator.pub_key_types == (kind,)


@KINDS
def test_evidence_against_it_is_taken(kind: str, open_chain: Open, tmp_path: Path) -> None:
    """The signatures are longer than those of ed25519."""
    chain = chain_of(kind, open_chain, tmp_path)
    for _ in range(5):
        chain.produce()
    piece = double_vote(chain, read_validator_key(document(kind)))
    params = {"evidence": compiled(Evidence)(piece)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "broadcast_evidence", "params": params}

    reply = app_for(chain, dialect="comet-0.40").test_client().post("/", json=call).json

    assert reply is not None
    assert "error" not in reply
    assert chain.reads.block(chain.produce())[1].evidence == (piece,)


@KINDS
def test_without_the_library_the_error_names_the_extra(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = document(kind)
    monkeypatch.setitem(sys.modules, NAMES[kind][1], None)

    with pytest.raises(ConfigurationError, match=re.escape(install_hint("evm"))):
        read_validator_key(given)


@pytest.mark.parametrize("secret", [SECRET[:31], SECRET + b"\1", bytes(32), b"\xff" * 32])
@KINDS
def test_an_unusable_secret_is_refused(kind: str, secret: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"key file: the .* can't be used"):
        read_validator_key(document(kind, secret))


def test_a_home_whose_key_only_others_can_sign_with_is_refused_with_the_cure(
    tmp_path: Path,
) -> None:
    """The package verifies signatures of ml_dsa_65, but can't make them."""
    runner = CliRunner()
    assert runner.invoke(main, ["init", "--home", str(tmp_path)]).exit_code == 0
    path = tmp_path / "config" / "priv_validator_key.json"
    key = {"type": "cometbft/PrivKeyMlDsa65", "value": b64encode(bytes(4032)).decode()}
    path.write_text(json.dumps({"priv_key": key}))

    found = runner.invoke(main, ["start", "--home", str(tmp_path)])

    assert found.exit_code == 78, found.output
    said = " ".join(found.output.split())
    assert f"{path}: key file: expected a key that can sign here, got a {key['type']}" in said
    assert "noderpc start --upstream URL" in said
    assert "Traceback" not in said
