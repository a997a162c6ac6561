"""Conversion of a node's block to an Ethereum block.

Every Ethereum header and block hash is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...domain import block as node
from ...domain.abci import BlockResults
from ...domain.ethereum import (
    ZERO_ADDRESS,
    ZERO_HASH,
    Block,
    Header,
    Inclusion,
    Receipt,
    RPCTransaction,
    Transaction,
)
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.time import SECOND
from . import ethermint, rlp
from .consensus import encode_block, encode_header, encode_receipt, union
from .crypto import keccak
from .execution import Executed, numbered, receipts
from .trie import EMPTY_ROOT, ordered_root
from .validity import next_base_fee

# Ethermint: a block without a limit; larger numbers break clients in JavaScript.
_NO_GAS_LIMIT = 0xFFFFFFFF


def ethereum_block(
    block_hash: bytes,
    block: node.Block,
    results: BlockResults,
    params: ConsensusParams,
    genesis_hash: bytes = ZERO_HASH,
) -> Block:
    """Return a committed block as an Ethereum block, by the consensus parameters of its height.

    ``genesis_hash`` is that of :func:`genesis_block`, the parent of the first block.
    """
    header = block.header
    timestamp = _seconds(header.time)
    executed = receipts(block.txs, results, block_hash, timestamp)
    made = Header(
        number=header.height,
        hash=block_hash,
        parent_hash=header.last_block_id.hash or genesis_hash,
        bloom=union(receipt.bloom for receipt in executed),
        transactions_root=_transactions_root([r.transaction for r in executed]),
        # Of the state after the block, as Ethereum has it; the node's header has that before.
        state_root=_word(results.app_hash or header.app_hash),
        receipts_root=ordered_root([encode_receipt(receipt) for receipt in executed]),
        miner=ethermint.coinbase(results) or _miner(header.proposer_address),
        gas_limit=_gas_limit(params),
        gas_used=ethermint.gas_used(results),
        timestamp=timestamp,
        base_fee=ethermint.base_fee(results),
    )
    return _block(made, _placed(executed), executed)


def genesis_block(
    genesis: Genesis,
    params: ConsensusParams | None = None,
    state_root: bytes = b"",
    base_fee: int | None = None,
) -> Block:
    """Return block 0, which CometBFT lacks: the state before the first block.

    Its hash is that of its RLP, so two chains do not share it. What the application made of
    the genesis may be given: parameters, the root of its state, and a base fee.
    """
    header = Header(
        number=0,
        hash=None,
        parent_hash=ZERO_HASH,
        transactions_root=EMPTY_ROOT,
        state_root=_word(state_root or genesis.app_hash),
        receipts_root=EMPTY_ROOT,
        miner=ZERO_ADDRESS,
        # geth: no more than 32 bytes, or clients take the chain for one by authority.
        extra_data=genesis.chain_id.encode()[:32],
        gas_limit=_gas_limit(params or genesis.consensus_params),
        timestamp=_seconds(genesis.genesis_time),
        base_fee=base_fee,
    )
    return _block(replace(header, hash=keccak(encode_header(header))))


def pending_block(latest: Header, waiting: Sequence[Transaction], timestamp: int) -> Block:
    """Return the pending block after ``latest``; ``timestamp`` is in seconds.

    It has no hash, nonce or miner yet, and nothing in it has run.
    """
    header = Header(
        number=latest.number + 1,
        hash=None,
        parent_hash=latest.hash or ZERO_HASH,
        nonce=None,
        transactions_root=_transactions_root(waiting),
        state_root=latest.state_root,
        receipts_root=EMPTY_ROOT,
        miner=None,
        gas_limit=latest.gas_limit,
        # Ethereum: a block is later than its parent.
        timestamp=max(timestamp, latest.timestamp + 1),
        base_fee=fee_after(latest),
    )
    return _block(header, tuple(map(pending_transaction, waiting)))


def simulated_block(header: Header, executed: Sequence[Executed]) -> Block:
    """Return a simulated block, whose hash is that of its RLP, as in Ethereum."""
    where = Inclusion(ZERO_HASH, header.number, header.timestamp, 0)
    unplaced = numbered(executed, where, header.base_fee)
    made = replace(
        header,
        bloom=union(receipt.bloom for receipt in unplaced),
        transactions_root=_transactions_root([r.transaction for r in unplaced]),
        receipts_root=ordered_root([encode_receipt(receipt) for receipt in unplaced]),
        gas_used=unplaced[-1].cumulative_gas_used if unplaced else 0,
    )
    block_hash = keccak(encode_header(made))
    where = replace(where, block_hash=block_hash)
    placed = numbered(executed, where, header.base_fee)
    return _block(replace(made, hash=block_hash), _placed(placed), placed)


def _placed(executed: tuple[Receipt, ...]) -> tuple[RPCTransaction, ...]:
    return tuple(
        RPCTransaction(receipt.transaction, receipt.inclusion, receipt.effective_gas_price)
        for receipt in executed
    )


def fee_after(header: Header) -> int | None:
    """Return the base fee of the next block (EIP-1559)."""
    if header.base_fee is None:
        return None
    return next_base_fee(header.base_fee, header.gas_used, header.gas_limit)


def pending_transaction(tx: Transaction) -> RPCTransaction:
    """Return a pending transaction, whose effective gas price is its fee cap."""
    return RPCTransaction(tx, None, tx.fee_cap)


def raw_block(block: Block) -> bytes:
    """Return the block's RLP."""
    return encode_block(block.header, [tx.transaction.raw for tx in block.transactions])


def decode_block(raw: bytes) -> tuple[Header, tuple[bytes, ...]]:
    """Decode the header, without its hash, and the encoded transactions of a raw block.

    Later members of headers are skipped. Raise :exc:`.rlp.Malformed`.
    """
    block = rlp.Reader(raw).list("types.extblock")
    header = _decoded_header(block.list("types.Header"))
    items, txs = block.list("[]*types.Transaction"), list[bytes]()
    while not items.done:
        is_list, _ = items.peek()
        # A legacy transaction is a list among the others, which are strings.
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


def _block(
    header: Header,
    transactions: tuple[RPCTransaction, ...] = (),
    executed: tuple[Receipt, ...] = (),
) -> Block:
    size = len(encode_block(header, [tx.transaction.raw for tx in transactions]))
    return Block(header, size, transactions, executed)


def _transactions_root(txs: Sequence[Transaction]) -> bytes:
    return ordered_root([tx.raw for tx in txs])


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
