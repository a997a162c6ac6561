"""Tests that signatures equal eth-account's, and development keys come from the usual
mnemonic."""

from __future__ import annotations

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS, personal_digest
from flask_noderpc.ethereum.protocol.transactions import decode, encode_unsigned, signed
from flask_noderpc.protocol.secp256k1eth import Key

from .signing import ACCOUNT, TYPES, sample

MNEMONIC = "test test test test test test test test test test test junk"
KEY = Key(bytes(ACCOUNT.key))


def test_the_development_keys_are_those_of_the_usual_mnemonic() -> None:
    Account.enable_unaudited_hdwallet_features()
    for index, key in enumerate(DEV_KEYS):
        known = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")
        assert key.secret == bytes(known.key)
        assert key.address == bytes.fromhex(known.address[2:])
    assert len(DEV_KEYS) == 10


@given(st.binary(max_size=300))
@settings(max_examples=50)
def test_a_message_is_signed_as_eth_account_signs_it(message: bytes) -> None:
    expected = ACCOUNT.sign_message(encode_defunct(message)).signature
    assert KEY.sign_digest(personal_digest(message)) == bytes(expected)


@pytest.mark.parametrize("name", [name for name in TYPES if name != "unprotected"])
def test_a_transaction_is_signed_as_eth_account_signs_it(name: str) -> None:
    raw = sample(name)
    assert signed(decode(raw), KEY) == raw


@pytest.mark.parametrize("name", [name for name in TYPES if name != "unprotected"])
def test_an_impersonated_transaction_preserves_its_fields(name: str) -> None:
    tx, other = decode(sample(name)), b"\x77" * 20
    found = decode(encode_unsigned(other, tx), unsigned=True)
    assert (found.sender, found.is_signed, tx.is_signed) == (other, False, True)
    assert (found.chain_id, found.nonce, found.data) == (tx.chain_id, tx.nonce, tx.data)
