"""Ethereum blocks, and their construction from CometBFT's blocks.

All Ethereum headers are built in this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...domain import block as node
from ...domain.abci import BlockResults
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.time import SECOND
from ...protocol.secp256k1eth import keccak
from ..domain.records import (
    ZERO_ADDRESS,
    ZERO_HASH,
    Header,
    Inclusion,
    Log,
    RPCTransaction,
    Transaction,
)
from . import ethermint, rlp
from .consensus import bloom, encode_block, encode_header
from .execution import (
    AnyTransaction,
    ExecutedTransaction,
    Receipt,
    encode_receipt,
    number_receipts,
    receipts,
)
from .trie import ordered_root
from .validity import next_base_fee

# Ethermint's gas limit for a block without a limit; larger numbers break JavaScript clients.
_NO_GAS_LIMIT = 0xFFFFFFFF


@dataclass(frozen=True)
class Block:
    """A block with its Ethereum transactions and their receipts, in order.

    Expensive properties are computed at first use, as most requests need only some of them.
    """

    partial_header: Header
    """The header; its transaction root, receipt root and bloom are ignored, as :attr:`header`
    computes them (geth: types.NewBlock)."""
    receipts: tuple[Receipt, ...] = ()
    """Receipts of the transactions; empty for a pending block."""
    waiting: tuple[Transaction, ...] = ()
    """Transactions of a pending block."""

    @property
    def encoded(self) -> tuple[AnyTransaction, ...]:
        """The transactions with type, bytes and hash; they may not be decoded yet."""
        return self.waiting or tuple(receipt.encoded for receipt in self.receipts)

    @property
    def raws(self) -> list[bytes]:
        """The canonical bytes of the transactions."""
        return [tx.raw for tx in self.encoded]

    @property
    def logs(self) -> list[Log]:
        """Logs of all receipts, in order."""
        return [log for receipt in self.receipts for log in receipt.logs]

    @cached_property
    def transactions(self) -> tuple[RPCTransaction, ...]:
        """The transactions with their senders."""
        waiting = map(pending_transaction, self.waiting)
        return (*waiting, *(receipt.in_block for receipt in self.receipts))

    @cached_property
    def bloom(self) -> bytes:
        """Bloom filter of the block's logs."""
        return bloom(self.logs)

    @cached_property
    def header(self) -> Header:
        """The header with computed transaction root, receipt root and bloom."""
        return replace(
            self.partial_header,
            bloom=self.bloom,
            transactions_root=ordered_root(self.raws),
            receipts_root=ordered_root([encode_receipt(receipt) for receipt in self.receipts]),
        )

    @cached_property
    def size(self) -> int:
        """Size of the block's RLP in bytes."""
        return len(raw_block(self))


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block as a response shows it: with complete transactions or only their hashes."""

    block: Block
    full_transactions: bool

    @property
    def header(self) -> Header:
        """Header of the block."""
        return self.block.header


def ethereum_block(
    block_hash: bytes,
    header: node.Header,
    txs: Sequence[bytes],
    results: BlockResults,
    params: ConsensusParams,
    genesis_hash: bytes = ZERO_HASH,
) -> Block:
    """Return the Ethereum block of a committed CometBFT block.

    ``params`` are the consensus parameters at its height, which contain the gas limit;
    ``genesis_hash`` is the hash of :func:`genesis_block`, the parent of the first block.
    """
    timestamp = _seconds(header.time)
    made = Header(
        number=header.height,
        hash=block_hash,
        parent_hash=header.last_block_id.hash or genesis_hash,
        # Ethereum's state root is the state after the block; a CometBFT header has the app
        # hash before it.
        state_root=_word(results.app_hash or header.app_hash),
        miner=ethermint.coinbase(results) or _miner(header.proposer_address),
        gas_limit=_gas_limit(params),
        gas_used=ethermint.gas_used(results),
        timestamp=timestamp,
        mix_hash=ethermint.prev_randao(results) or ZERO_HASH,
        base_fee=ethermint.base_fee(results),
    )
    return Block(made, receipts(txs, results, block_hash, timestamp))


def genesis_block(
    genesis: Genesis,
    params: ConsensusParams | None = None,
    state_root: bytes = b"",
    base_fee: int | None = None,
) -> Block:
    """Return block 0, which CometBFT lacks: the state before the first block.

    Its hash is the hash of its RLP, so it differs between chains. ``params``, ``state_root``
    and ``base_fee`` are the values after an application's InitChain, if it has run.
    """
    header = Header(
        number=0,
        hash=None,
        parent_hash=ZERO_HASH,
        state_root=_word(state_root or genesis.app_hash),
        miner=ZERO_ADDRESS,
        # geth: at most 32 bytes; with more, clients assume a proof-of-authority chain.
        extra_data=genesis.chain_id.encode()[:32],
        gas_limit=_gas_limit(params or genesis.consensus_params),
        timestamp=_seconds(genesis.genesis_time),
        base_fee=base_fee,
    )
    return _hashed(Block(header))


def pending_block(
    latest: Header, waiting: Sequence[Transaction], timestamp: int, mix_hash: bytes = ZERO_HASH
) -> Block:
    """Return the pending block after ``latest``; ``timestamp`` is in seconds.

    It has no hash, nonce or miner yet, and none of its transactions has been executed.
    """
    header = Header(
        number=latest.number + 1,
        hash=None,
        parent_hash=latest.hash or ZERO_HASH,
        nonce=None,
        state_root=latest.state_root,
        miner=None,
        gas_limit=latest.gas_limit,
        # Ethereum: a block is later than its parent.
        timestamp=max(timestamp, latest.timestamp + 1),
        mix_hash=mix_hash,
        base_fee=fee_after(latest),
    )
    return Block(header, waiting=tuple(waiting))


def simulated_block(header: Header, executed: Sequence[ExecutedTransaction]) -> Block:
    """Return a simulated block, whose hash is the hash of its RLP, as in Ethereum."""
    where = Inclusion(ZERO_HASH, header.number, header.timestamp, 0)
    gas_used = sum(each.gas_used for each in executed)
    unplaced = _hashed(
        Block(
            replace(header, gas_used=gas_used),
            number_receipts(executed, where, header.base_fee),
        )
    )
    where = replace(where, block_hash=unplaced.header.hash or b"")
    return replace(unplaced, receipts=number_receipts(executed, where, header.base_fee))


def _hashed(block: Block) -> Block:
    """Return the block with its hash set to the hash of its header's RLP."""
    block_hash = keccak(encode_header(block.header))
    return replace(block, partial_header=replace(block.partial_header, hash=block_hash))


def fee_after(header: Header) -> int | None:
    """Return the base fee of the block after a header (EIP-1559), or ``None``."""
    if header.base_fee is None:
        return None
    return next_base_fee(header.base_fee, header.gas_used, header.gas_limit)


def pending_transaction(tx: Transaction) -> RPCTransaction:
    """Return a pending transaction, whose effective gas price is its fee cap."""
    return RPCTransaction(tx, None, tx.fee_cap)


def raw_block(block: Block) -> bytes:
    """Return the block's RLP."""
    return encode_block(block.header, block.raws)


def decode_block(raw: bytes) -> tuple[Header, tuple[bytes, ...]]:
    """Decode the header, without its hash, and the encoded transactions of a raw block.

    Header members of later forks are skipped. Raise :exc:`.rlp.Malformed`.
    """
    block = rlp.Reader(raw).list("types.extblock")
    header = _decoded_header(block.list("types.Header"))
    items, txs = block.list("[]*types.Transaction"), list[bytes]()
    while not items.done:
        is_list, _ = items.peek()
        # A legacy transaction is a list; other types are strings.
        read = items.encoded if is_list else items.string
        txs.append(read("types.Transaction"))
    return header, tuple(txs)


def _decoded_header(items: rlp.Reader) -> Header:
    parent, uncles, miner, state, transactions_root, receipts_root, bloom = (
        items.string("header") for _ in range(7)
    )
    difficulty, number, gas_limit, gas_used, timestamp = (_number(items) for _ in range(5))
    extra, mix_hash, nonce = (items.string("header") for _ in range(3))
    return Header(
        number=number,
        hash=None,
        parent_hash=parent,
        nonce=nonce,
        uncles_hash=uncles,
        bloom=bloom,
        transactions_root=transactions_root,
        state_root=state,
        receipts_root=receipts_root,
        miner=miner.rjust(20, b"\0")[-20:],
        difficulty=difficulty,
        extra_data=extra,
        gas_limit=gas_limit,
        gas_used=gas_used,
        timestamp=timestamp,
        mix_hash=mix_hash.rjust(32, b"\0")[-32:],
        base_fee=None if items.done else _number(items),
    )


def _number(items: rlp.Reader) -> int:
    return int.from_bytes(items.string("number")[:32])


def _seconds(time_ns: int) -> int:
    """Convert nanoseconds to seconds since 1970, at least 0."""
    return max(0, time_ns // SECOND)


def _gas_limit(params: ConsensusParams) -> int:
    limit = params.block.max_gas
    return _NO_GAS_LIMIT if limit < 0 else limit


def _miner(proposer: bytes) -> bytes:
    return proposer if len(proposer) == len(ZERO_ADDRESS) else ZERO_ADDRESS


def _word(app_hash: bytes) -> bytes:
    """Convert an app hash of any length to a root of 32 bytes."""
    return app_hash.rjust(32, b"\0")[-32:]
