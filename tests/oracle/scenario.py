"""A chain of random transactions of any type, most of them valid."""

from __future__ import annotations

from random import Random
from typing import Any

from eth_account import Account as EthAccount
from eth_account.signers.local import LocalAccount

from flask_noderpc.ethereum.domain.execution import AccountOverride, Environment, Overrides
from flask_noderpc.ethereum.domain.forks import Fork
from flask_noderpc.ethereum.domain.records import AccessListEntry
from flask_noderpc.ethereum.engine.base import World
from flask_noderpc.ethereum.protocol.validity import floor_gas, intrinsic_gas
from flask_noderpc.protocol.secp256k1eth import to_checksum

from .precompiles import PRECOMPILE_SIZES, PRECOMPILES, precompile_input
from .programs import Programs

CHAIN_ID = 9000
BASE_FEE = 10**9
GAS_LIMIT = 15_000_000
COINBASE = b"\xc0" * 20
_CONTRACTS, _KEYS = 16, 6


class Scenario:
    """Genesis, blocks and transactions that follow from a seed."""

    def __init__(self, seed: int, fork: Fork) -> None:
        self.random, self.fork = Random(seed), fork
        self.keys: list[LocalAccount] = [
            EthAccount.from_key(bytes([number + 1]) * 32) for number in range(_KEYS)
        ]
        own = [bytes.fromhex(key.address[2:]) for key in self.keys]
        self.contracts = [b"\xcc" * 18 + bytes((0, n)) for n in range(_CONTRACTS)]
        # Some accounts that do not exist, and the recipient of the fees.
        unseen = [b"\xdd" * 18 + bytes((0, n)) for n in range(4)]
        # The signing accounts may have delegated code: EIP-7702.
        self.addresses = [*own, *own, *self.contracts, *unseen, COINBASE, *PRECOMPILES[:3]]
        self.programs = Programs(self.random, self.addresses, fork)

    def genesis(self) -> Overrides:
        """Return the accounts of the genesis."""
        rich = AccountOverride(balance=10**20)
        made = {bytes.fromhex(key.address[2:]): rich for key in self.keys[:-1]}
        for address in self.contracts:
            slots = {slot.to_bytes(32): (7).to_bytes(32) for slot in range(3)}
            made[address] = AccountOverride(
                nonce=1,
                balance=self.random.choice((0, 1, 100)),
                code=self.programs.program(),
                state_diff=slots,
            )
        return made

    def environment(self, number: int) -> Environment:
        """Return the environment of a block."""
        return Environment(
            chain_id=CHAIN_ID,
            number=number,
            timestamp=1_700_000_000 + number,
            coinbase=COINBASE,
            gas_limit=GAS_LIMIT,
            base_fee=BASE_FEE,
            prev_randao=number.to_bytes(32),
            difficulty=number,
            caps_tx_gas=True,
            blob_base_fee=1,
            fork=self.fork,
        )

    def block(self, world: World, count: int) -> tuple[bytes, ...]:
        """Return transactions that are valid in sequence after a state."""
        nonces: dict[str, int] = {
            key.address: world.account(bytes.fromhex(key.address[2:])).nonce
            for key in self.keys
        }
        return tuple(self._transaction(nonces) for _ in range(count))

    def _transaction(self, nonces: dict[str, int]) -> bytes:
        choose, key = self.random.choice, self.random.choice(self.keys[:-1])
        nonce = nonces[key.address]
        nonces[key.address] += 1
        kind = choose((0, 1, 2, 2, 4) if self.fork.max_tx_type >= 4 else (0, 1, 2))
        fields: dict[str, Any] = {
            "nonce": nonce,
            "chainId": CHAIN_ID,
            "value": choose((0, 0, 1, 1000, 10**18)),
            "to": to_checksum(choose([*self.contracts * 4, *self.addresses, *PRECOMPILES])),
            "data": self.random.randbytes(choose((0, 4, 40, 200))),
        }
        if kind in (0, 1):
            fields["gasPrice"] = choose((BASE_FEE, 2 * BASE_FEE))
        else:
            fields |= {
                "maxFeePerGas": choose((BASE_FEE, 5 * BASE_FEE)),
                "maxPriorityFeePerGas": choose((0, BASE_FEE)),
            }
        if kind:
            fields |= {"type": kind, "accessList": self._access_list()}
        if kind == 4:
            fields["authorizationList"] = [
                self._authorization(nonces) for _ in range(self.random.randrange(1, 4))
            ]
        elif self.random.random() < 0.25:
            fields |= {"to": "", "data": self._initcode()}
        elif self.random.random() < 0.1:
            number = choose(list(PRECOMPILE_SIZES))
            fields["to"] = to_checksum(number.to_bytes(20))
            fields["data"] = precompile_input(self.random, number)
        fields["gas"] = self._gas(fields)
        return bytes(key.sign_transaction(fields).raw_transaction)

    def odd(self, world: World) -> bytes:
        """Return a transaction that may have a fault."""
        choose, key = self.random.choice, self.random.choice(self.keys)
        account = world.account(bytes.fromhex(key.address[2:]))
        data = self.random.randbytes(choose((0, 0, 30, 3000)))
        creates = self.random.random() < 0.2
        if creates and self.random.random() < 0.2:
            data = bytes(choose((49_152, 49_153)))
        least = intrinsic_gas(self.fork, data, creates)
        floor = floor_gas(self.fork, data)
        fields: dict[str, Any] = {
            "chainId": CHAIN_ID,
            "nonce": account.nonce + choose((0,) * 9 + (1,)),
            "gas": choose((least, least - 1, floor, floor - 1, 10**6, 10**6, GAS_LIMIT + 1)),
            "to": "" if creates else to_checksum(choose(self.addresses)),
            "data": data,
        }
        fee = choose((BASE_FEE, BASE_FEE, BASE_FEE - 1))
        kind = choose((0, 1, 2, 4) if self.fork.max_tx_type >= 4 else (0, 1, 2))
        if kind == 0:
            # EELS accepts any chain ID in typed transactions.
            fields["chainId"] = choose((CHAIN_ID,) * 9 + (1,))
        if kind in (0, 1):
            fields["gasPrice"] = fee
        else:
            tip = choose((0, 0, 0, fee, fee + 1))
            fields |= {"maxFeePerGas": fee, "maxPriorityFeePerGas": tip}
        if kind:
            fields |= {"type": kind, "accessList": []}
        if kind == 4:
            fields["authorizationList"] = [
                self._authorization({k.address: 0 for k in self.keys})
            ]
            fields["to"] = fields["to"] or to_checksum(COINBASE)
            fields["gas"] += choose((0, 25_000, 25_000))
        left = account.balance - fields["gas"] * fee
        fields["value"] = max(0, choose((0, 0, left, left + 1)))
        return bytes(key.sign_transaction(fields).raw_transaction)

    def _gas(self, fields: dict[str, Any]) -> int:
        """Return the intrinsic gas, and some to run with; sometimes one unit too little."""
        listed = [AccessListEntry(b"", e["storageKeys"]) for e in fields.get("accessList", ())]
        allowed = fields.get("authorizationList", ())
        data = fields["data"]
        least = intrinsic_gas(self.fork, data, not fields["to"], tuple(listed), tuple(allowed))
        more = (0, 2_000, 30_000, 100_000, 500_000, 500_000, 500_000, 2_000_000)
        if self.random.random() < 0.02:
            return least - 1
        return max(least, floor_gas(self.fork, data)) + self.random.choice(more)

    def _initcode(self) -> bytes:
        if self.random.random() < 0.6:
            return self.programs.deploying(self.programs.program())
        return self.programs.program()

    def _access_list(self) -> list[dict[str, Any]]:
        return [
            {
                "address": to_checksum(self.random.choice(self.addresses)),
                "storageKeys": [
                    f"0x{self.random.randrange(6):064x}"
                    for _ in range(self.random.randrange(3))
                ],
            }
            for _ in range(self.random.choice((0, 0, 1, 3)))
        ]

    def _authorization(self, nonces: dict[str, int]) -> Any:
        choose, key = self.random.choice, self.random.choice(self.keys)
        right = self.random.random() < 0.8
        nonce = nonces[key.address] + (0 if right else choose((-1, 1, 5)))
        target = choose([*self.contracts * 3, bytes(20), *self.addresses])
        chain_id = choose((CHAIN_ID, CHAIN_ID, CHAIN_ID, 0, 1))
        if right and chain_id != 1:
            nonces[key.address] += 1
        return key.sign_authorization(
            {"chainId": chain_id, "address": to_checksum(target), "nonce": max(0, nonce)}
        )
