"""A chain of hand-signed Ethereum transactions, with various logs."""

from __future__ import annotations

from pathlib import Path

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.protocol.secp256k1eth import to_checksum
from tests.ethereum.protocol.signing import CHAIN_ID, TO, signed

CONTRACT = log_contract(1)
TOPIC_A, TOPIC_B = b"\xaa" * 32, b"\xbb" * 32


def transfer(nonce: int, value: int = 1) -> bytes:
    """Return a signed transfer."""
    return signed(_fields(nonce, to=TO, value=value))


def emitting(nonce: int, *logs: EmittedLog) -> bytes:
    """Return a signed call of a contract that emits these logs."""
    return signed(_fields(nonce, to=to_checksum(CONTRACT), data=log_calldata(*logs)))


def _fields(nonce: int, **others: object) -> dict[str, object]:
    return {
        "type": 2,
        "nonce": nonce,
        "gas": 100_000,
        "value": 0,
        "maxFeePerGas": 5 * 10**9,
        "maxPriorityFeePerGas": 10**9,
        "chainId": CHAIN_ID,
        **others,
    }


def ethereum_chain(folder: Path) -> EmbeddedChain:
    """Return a chain of three blocks: an empty one, a transfer, and two calls that emit three
    logs."""
    chain = EmbeddedChain(folder / "noderpc.db", application=EthermintDouble, produce=False)
    chain.start()
    chain.produce()
    chain.mempool.submit(transfer(0, value=5))
    chain.produce()
    chain.mempool.submit(emitting(1, EmittedLog(topics=(TOPIC_A,), data=b"one")))
    chain.mempool.submit(
        emitting(
            2,
            EmittedLog(topics=(TOPIC_A, TOPIC_B), data=b""),
            EmittedLog(topics=(), data=b"none"),
        )
    )
    chain.produce()
    return chain
