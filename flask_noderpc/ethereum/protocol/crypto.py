"""Hex, hashes of signed messages, signers of authorizations, keys of development chains."""

from __future__ import annotations

from ...errors import InvalidTransaction
from ...protocol.secp256k1eth import Key, keccak, recover_signer
from ..domain.records import Authorization
from . import rlp


def from_hex(text: str, size: int) -> bytes:
    """Decode ``0x`` and exactly ``size`` bytes of hex; raise :exc:`ValueError` otherwise."""
    if len(text) == 2 + 2 * size and text[:2] in ("0x", "0X"):
        value = bytes.fromhex(text[2:])
        # bytes.fromhex ignores spaces, so fewer bytes may result.
        if len(value) == size:
            return value
    raise ValueError(f"expected 0x and {2 * size} hex digits, got {text[:100]!r}")


# EIP-7702, MAGIC: prefix of the bytes that an account signs to run another account's code.
_MAGIC = b"\x05"


def authority_of(given: Authorization) -> bytes | None:
    """Return the account that signed an EIP-7702 authorization; ``None`` if the signature is
    invalid."""
    signed = rlp.encode([given.chain_id, given.address, given.nonce])
    try:
        return recover_signer(keccak(_MAGIC + signed), given.y_parity, given.r, given.s)
    except InvalidTransaction:
        return None


def personal_digest(message: bytes) -> bytes:
    """Return the signing hash of a message (EIP-191); its prefix excludes transactions."""
    return keccak(b"\x19Ethereum Signed Message:\n%d%b" % (len(message), message))


DEV_MNEMONIC = "test test test test test test test test test test test junk"
"""Mnemonic of the development accounts, which is also anvil's and hardhat's."""

DEV_PATH = "m/44'/60'/0'/0/"
"""Path at which the keys are derived from the mnemonic, before the index of each."""

# The first ten keys of the mnemonic.
DEV_KEYS = tuple(
    Key(bytes.fromhex(secret))
    for secret in (
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
    )
)
"""Publicly known keys of the accounts on every development chain."""
