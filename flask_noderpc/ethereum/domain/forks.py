"""Forks of Ethereum: the rules of execution, one row of data for each fork.

A new fork is a row that replaces some values of the previous row. The rows begin with London,
the first fork with base fees. Source: github.com/ethereum/execution-specs, and the named EIPs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

_LONDON_INSTRUCTIONS = (
    "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND"
    " LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR KECCAK256"
    " ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY CODESIZE"
    " CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY EXTCODEHASH"
    " BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE"
    " POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST"
    f" {' '.join(f'PUSH{size}' for size in range(1, 33))}"
    f" {' '.join(f'DUP{depth}' for depth in range(1, 17))}"
    f" {' '.join(f'SWAP{depth}' for depth in range(1, 17))}"
    " LOG0 LOG1 LOG2 LOG3 LOG4 CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2 STATICCALL"
    " REVERT INVALID SELFDESTRUCT"
)

# Names of precompiled contracts by address, as in EIP-7910.
_LONDON_PRECOMPILES = {
    0x01: "ECREC",
    0x02: "SHA256",
    0x03: "RIPEMD160",
    0x04: "ID",
    0x05: "MODEXP",
    0x06: "BN254_ADD",
    0x07: "BN254_MUL",
    0x08: "BN254_PAIRING",
    0x09: "BLAKE2F",
}
_EIP_2537 = {
    0x0B: "BLS12_G1ADD",
    0x0C: "BLS12_G1MSM",
    0x0D: "BLS12_G2ADD",
    0x0E: "BLS12_G2MSM",
    0x0F: "BLS12_PAIRING_CHECK",
    0x10: "BLS12_MAP_FP_TO_G1",
    0x11: "BLS12_MAP_FP2_TO_G2",
}


@dataclass(frozen=True, slots=True)
class ModexpGas:
    """Gas of the precompiled contract MODEXP: minimum, divisor, and weights."""

    minimum: int
    divisor: int
    """Divisor of the product of complexity and iterations."""
    complexity: int
    """Factor of the squared size, in words of 8 bytes, of the longer of base and modulus."""
    complexity_to_32_bytes: int | None
    """Complexity if base and modulus have at most 32 bytes; ``None`` if the factor also applies
    to these."""
    iterations: int
    """Iterations for each byte of the exponent after the first 32."""
    max_length: int | None
    """Maximum bytes of base, exponent and modulus each, or ``None`` (EIP-7823)."""


@dataclass(frozen=True, slots=True)
class BlobSchedule:
    """EIP-7840: target and maximum number of a block's blobs; a larger fraction lets the blob
    base fee change more slowly."""

    target: int
    max: int
    base_fee_update_fraction: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Fork:
    """Rules of execution that hold from a block on.

    Forks are compared by identity, so a fork is pickled by name: an executor process gets its
    own object of that name.
    """

    name: str
    """Lower-case name, as in a setting."""
    instructions: frozenset[str]
    precompiles: Mapping[int, str]
    """Names of the precompiled contracts by the integer value of their addresses."""
    modexp: ModexpGas
    has_randao: bool
    """True if instruction 0x44 is PREVRANDAO instead of DIFFICULTY (EIP-4399)."""
    has_warm_coinbase: bool
    """True if the coinbase is warm at the beginning of a transaction (EIP-3651)."""
    initcode_word_gas: int
    """Gas for each word of init code; 0 before EIP-3860, which also limits its size."""
    keeps_destroyed: bool
    """True if SELFDESTRUCT only deletes contracts that the same transaction created
    (EIP-6780)."""
    max_tx_type: int
    """Highest type of a transaction."""
    floor_token_gas: int
    """Minimum gas for each token of calldata; 0 sets no minimum (EIP-7623)."""
    max_tx_gas: int | None
    """Maximum gas limit of a transaction; ``None`` sets no maximum (EIP-7825)."""
    blobs: BlobSchedule | None
    """Blob limits of a block; ``None`` before EIP-4844."""
    max_tx_blobs: int
    """Maximum number of blobs of a transaction."""
    max_block_bytes: int | None
    """Maximum bytes of a block's RLP; ``None`` sets no maximum (EIP-7934)."""
    has_history_contract: bool
    """True if a contract keeps the hashes of earlier blocks (EIP-2935)."""

    @property
    def addresses(self) -> frozenset[bytes]:
        """Addresses of the precompiled contracts."""
        return _ADDRESSES[self.name]

    def __reduce__(self) -> tuple[Callable[[str], Fork], tuple[str]]:
        return fork_named, (self.name,)


LONDON: Final = Fork(
    name="london",
    instructions=frozenset(_LONDON_INSTRUCTIONS.split()),
    precompiles=_LONDON_PRECOMPILES,
    # EIP-2565.
    modexp=ModexpGas(200, 3, 1, None, 8, None),
    has_randao=False,
    has_warm_coinbase=False,
    initcode_word_gas=0,
    keeps_destroyed=False,
    max_tx_type=2,
    floor_token_gas=0,
    max_tx_gas=None,
    blobs=None,
    max_tx_blobs=0,
    max_block_bytes=None,
    has_history_contract=False,
)
PARIS: Final = replace(LONDON, name="paris", has_randao=True)
SHANGHAI: Final = replace(
    PARIS,
    name="shanghai",
    instructions=PARIS.instructions | {"PUSH0"},
    has_warm_coinbase=True,
    initcode_word_gas=2,
)
CANCUN: Final = replace(
    SHANGHAI,
    name="cancun",
    instructions=SHANGHAI.instructions
    | {"BLOBHASH", "BLOBBASEFEE", "TLOAD", "TSTORE", "MCOPY"},
    precompiles={**SHANGHAI.precompiles, 0x0A: "KZG_POINT_EVALUATION"},
    keeps_destroyed=True,
    max_tx_type=3,
    blobs=BlobSchedule(3, 6, 3_338_477),
    max_tx_blobs=6,
)
PRAGUE: Final = replace(
    CANCUN,
    name="prague",
    precompiles={**CANCUN.precompiles, **_EIP_2537},
    max_tx_type=4,
    floor_token_gas=10,
    blobs=BlobSchedule(6, 9, 5_007_716),
    max_tx_blobs=9,
    has_history_contract=True,
)
OSAKA: Final = replace(
    PRAGUE,
    name="osaka",
    instructions=PRAGUE.instructions | {"CLZ"},
    precompiles={**PRAGUE.precompiles, 0x100: "P256VERIFY"},
    # EIP-7883 and EIP-7823.
    modexp=ModexpGas(500, 1, 2, 16, 16, 1024),
    max_tx_gas=1 << 24,
    # EIP-7594.
    max_tx_blobs=6,
    # EIP-7934: 10 MiB, minus 2 MiB for the consensus layer.
    max_block_bytes=8 << 20,
)
# EIP-7892: forks that only change the blob schedule.
BPO1: Final = replace(OSAKA, name="bpo1", blobs=BlobSchedule(10, 15, 8_346_193))
BPO2: Final = replace(BPO1, name="bpo2", blobs=BlobSchedule(14, 21, 11_684_671))

HISTORY_ADDRESS: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
"""EIP-2935: contract that returns the hashes of the latest 8,191 blocks."""
HISTORY_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257"
    "611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
)
HISTORY_BLOCKS: Final = 8_191

FORKS: Final = {
    fork.name: fork for fork in (LONDON, PARIS, SHANGHAI, CANCUN, PRAGUE, OSAKA, BPO1, BPO2)
}
"""Forks by name, oldest first."""
_ADDRESSES = {
    fork.name: frozenset(number.to_bytes(20) for number in fork.precompiles)
    for fork in FORKS.values()
}


def fork_named(name: str) -> Fork:
    """Return the fork of this name; raise :exc:`ValueError` for an unknown name."""
    found = FORKS.get(name)
    if found is None:
        raise ValueError(f"expected one of {', '.join(FORKS)}, got {name[:40]!r}")
    return found


@dataclass(frozen=True, slots=True)
class Activation:
    """Height of the first block with the rules of a fork."""

    height: int
    fork: Fork


Schedule = tuple[Activation, ...]
"""Forks of a chain by height, the first of which holds from the genesis on."""


def fork_at(schedule: Schedule, height: int) -> Fork:
    """Return the fork whose rules apply to the block at a height."""
    return next(each.fork for each in reversed(schedule) if each.height <= height)


def extended(schedule: Schedule, later: Schedule, height: int) -> Schedule:
    """Return a schedule; from a height on, its activations are the later ones if there are any.

    Raise :exc:`ValueError` if a later activation is below ``height`` and not in the schedule,
    or if its fork is not newer than the one before it.
    """
    if not later:
        return schedule
    past = tuple(each for each in schedule if each.height < height)
    order = list(FORKS.values())
    for each in later:
        if each in past:
            continue
        if each.height < height:
            raise ValueError(
                f"expected a height of at least {height} for {each.fork.name}, got"
                f" {each.height}, a block that the chain already has; name a later height"
            )
        if order.index(each.fork) <= order.index(past[-1].fork):
            raise ValueError(
                f"expected a fork after {past[-1].fork.name}, which the chain has, got"
                f" {each.fork.name}; name a later fork, or remove this one"
            )
        past += (each,)
    return past


def first_with(instruction: str) -> Fork | None:
    """Return the first fork with an instruction; ``None`` if no fork has it."""
    return next((fork for fork in FORKS.values() if instruction in fork.instructions), None)
