"""The state of another chain after one block; a development chain goes on from it.

Accounts, codes and slots are read from a node of that chain when they are first needed, and
kept in a file, so that a later run needs no node.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any

from ... import jsoncodec
from ...backends.base.capabilities import ForwardedCalls
from ...errors import (
    ConfigurationError,
    ForwardedCallFailed,
    InvalidSetting,
    UpstreamMismatch,
    UpstreamUnavailable,
    short_repr,
)
from ...protocol.secp256k1eth import keccak
from ..domain.execution import NO_CODE, NO_STORAGE, Account
from ..domain.records import (
    EMPTY_BLOOM,
    EMPTY_ROOT,
    NO_UNCLES,
    ZERO_ADDRESS,
    ZERO_HASH,
    Header,
)
from ..protocol import accounts, rlp
from ..protocol.trie import NodeMissing, find
from ..protocol.validity import INITIAL_BASE_FEE

log = logging.getLogger("flask_noderpc.dev")

KnownBlock = Callable[[], tuple[int, bytes] | None]
"""Function that returns height and hash of the block after which the chains part, ``None``
before it was read."""

_URL = "NODERPC_FORK_URL"


class _BlockJson(jsoncodec.Struct, rename="camel"):
    """Members of a block in JSON that the forked chain needs."""

    number: str
    hash: str
    parent_hash: str
    state_root: str
    gas_limit: str
    gas_used: str
    timestamp: str
    miner: str
    base_fee_per_gas: str | None = None
    mix_hash: str | None = None
    extra_data: str = "0x"
    logs_bloom: str | None = None
    transactions_root: str | None = None
    receipts_root: str | None = None
    difficulty: str = "0x0"
    nonce: str | None = None
    sha3_uncles: str | None = None

    def header(self) -> Header:
        # The chain goes on after this height and this time, and each has a limit.
        return Header(
            number=_number(self.number, 62),
            hash=_bytes(self.hash, 32),
            parent_hash=_bytes(self.parent_hash, 32),
            nonce=_bytes(self.nonce, 8) if self.nonce else bytes(8),
            uncles_hash=_bytes(self.sha3_uncles, 32) if self.sha3_uncles else NO_UNCLES,
            bloom=_bytes(self.logs_bloom, 256) if self.logs_bloom else EMPTY_BLOOM,
            transactions_root=_word(self.transactions_root, EMPTY_ROOT),
            state_root=_bytes(self.state_root, 32),
            receipts_root=_word(self.receipts_root, EMPTY_ROOT),
            miner=_bytes(self.miner, 20),
            difficulty=_number(self.difficulty),
            extra_data=_bytes(self.extra_data),
            gas_limit=_number(self.gas_limit),
            gas_used=_number(self.gas_used),
            timestamp=_number(self.timestamp, 33),
            mix_hash=_word(self.mix_hash, ZERO_HASH),
            # The rules are London's or later, also after a block before London.
            base_fee=_number(self.base_fee_per_gas or hex(INITIAL_BASE_FEE)),
        )


class _SlotJson(jsoncodec.Struct):
    value: str
    proof: list[str]


class _ProofJson(jsoncodec.Struct, rename="camel"):
    """The result of ``eth_getProof`` (EIP-1186)."""

    account_proof: list[str]
    balance: str
    nonce: str
    code_hash: str
    storage_hash: str
    storage_proof: list[_SlotJson]


class _HashJson(jsoncodec.Struct):
    hash: str


class _FirstLine(jsoncodec.Struct, rename="camel"):
    """The first line of the file: the block, and how its state is read."""

    chain_id: str
    is_proven: bool
    block: jsoncodec.Raw


@dataclass(frozen=True, slots=True)
class ForkedBlock:
    """The block after which the chains part."""

    header: Header
    json: bytes
    """The block as its node showed it, with the hashes of its transactions."""
    chain_id: int
    is_proven: bool
    """True if each value is proven by the block's state root, with ``eth_getProof``."""


class ForkedChain(ForwardedCalls):
    """State of another chain after one block.

    ``path`` is the file of the values that were read. ``nodes`` names the other chain's nodes
    without credentials. ``number`` is the height of the block; by default, the height in the
    file, or the latest height if the file does not exist yet. ``connect`` returns a client of
    the other chain's nodes; it gets a function that returns the block's height and hash.
    ``begun`` returns height and hash of the block after which the stored chain was forked.
    """

    def __init__(
        self,
        path: Path,
        nodes: str,
        number: int | None,
        connect: Callable[[KnownBlock], ForwardedCalls] | None,
        begun: KnownBlock,
    ) -> None:
        self.path, self.nodes, self._number, self._begun = path, nodes, number, begun
        self._calls = connect(self._known_block) if connect else None
        self._lock = threading.Lock()
        # A value is read by one thread, while others wait for it.
        self._reading = [threading.Lock() for _ in range(_STRIPES)]
        # The file stays open: it may be deleted, and begun with another block.
        self._file: FileIO | None = None
        self._end = 0
        """Bytes of the file that were read."""
        self._records: dict[bytes, bytes] = {}

    @cached_property
    def block(self) -> ForkedBlock:
        """The block after which the chains part.

        Raise :exc:`~flask_noderpc.errors.BackendError` if it is in no file and can't be read.
        """
        with self._lock:
            try:
                return self._loaded()
            except BaseException:
                self._close_file()
                raise

    def _loaded(self) -> ForkedBlock:
        begun, number = self._begun(), self._number
        if begun is not None and number not in (None, begun[0]):
            raise InvalidSetting(
                f"NODERPC_FORK_BLOCK_NUMBER: expected {begun[0]}, after which the chain was"
                f" forked, got {number}; remove it, or set NODERPC_DATABASE to a new file to"
                " start another chain (noderpc start: --home)"
            )
        if not self.path.exists():
            self._begin(number if begun is None else begun[0])
        self._file, self._end = self._opened(), 0
        first, *lines = self._new_lines() or [b""]
        line = self._from_file(first, _FirstLine)
        header = self._from_file(bytes(line.block), _BlockJson).header()
        if number not in (None, header.number):
            raise InvalidSetting(
                f"NODERPC_FORK_BLOCK_NUMBER: expected {header.number}, the block of the values"
                f" in {self.path}, got {number}; to fork another block, set"
                " NODERPC_FORK_CACHE to a new file and begin a new chain"
            )
        self._check_begun(header)
        self._remember_lines(lines)
        self._records.update(accounts.forked_state(header.number)[1])
        return ForkedBlock(header, bytes(line.block), _number(line.chain_id), line.is_proven)

    def _check_begun(self, header: Header) -> None:
        """Refuse a block that is not the one with which the stored chain began."""
        begun = self._begun()
        if begun is None or begun == (header.number, header.hash):
            return
        asked = (header.hash or b"").hex()
        raise ConfigurationError(
            "NODERPC_FORK_URL: expected the settings with which the chain began, after block"
            f" {begun[0]} (0x{begun[1].hex()}), got block {header.number} (0x{asked}); set"
            " NODERPC_FORK_URL to a node of that block's chain, and NODERPC_FORK_CACHE to"
            f" another file than {self.path} if that exists, or set NODERPC_DATABASE to a new"
            " file to start another chain (noderpc start: --home)"
        )

    def _known_block(self) -> tuple[int, bytes] | None:
        known: ForkedBlock | None = self.__dict__.get("block")
        return (known.header.number, known.header.hash or b"") if known else None

    def get(self, key: bytes) -> bytes | None:
        """Return a record of the state: a value of the other chain, which is read if it is not
        known, or a code or trie node by its hash, ``None`` if it is not known."""
        found = self._records.get(key)
        if found is not None:
            return found
        with self._reading[hash(key) % _STRIPES]:
            self._read_new_lines()
            if key not in self._records and key.startswith(accounts.FORK_PREFIX):
                self._add(self._read(key))
        return self._records.get(key)

    def call(self, method: str, params: bytes) -> bytes:
        if self._calls is None:
            raise UpstreamUnavailable(
                _URL, f"expected the URL of a node for {method}, got nothing"
            )
        return self._calls.call(method, params)

    def close(self) -> None:
        if self._calls is not None:
            self._calls.close()
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()

    # The file.

    def _begin(self, number: int | None) -> None:
        """Read the block, and write it into a new file."""
        wanted = "latest" if number is None else hex(number)
        block = self._result(bytes, "eth_getBlockByNumber", wanted, False)
        if block == b"null":
            raise InvalidSetting(
                "NODERPC_FORK_BLOCK_NUMBER: expected a block that the node has, got"
                f" {wanted if number is None else number}; pass the height of an older block"
            )
        header = self.decoded(block, _BlockJson).header()
        if number not in (None, header.number):
            raise _refuted(f"expected block {number}, got block {header.number}")
        self._check_begun(header)
        chain_id = hex(_number(self._result(str, "eth_chainId")))
        known = self._if_proven(header)
        first = _FirstLine(chain_id, known is not None, jsoncodec.Raw(block))
        lines = [first] if known is None else [first, known]
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(b"".join(jsoncodec.encode(line) + b"\n" for line in lines))
            # Another process may begin the file, too: the first one wins.
            with suppress(FileExistsError):
                os.link(draft, self.path)
            draft.unlink()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path}: {error.strerror}; set NODERPC_FORK_CACHE to a file that can be"
                " written"
            ) from None

    def _if_proven(self, header: Header) -> dict[str, str] | None:
        """Return the line of an account that calls without a sender read, if the node proves
        it; else ``None``."""
        try:
            return self._proven_account(header, ZERO_ADDRESS)
        except ForwardedCallFailed as error:
            reason = error.text
        except UpstreamMismatch as error:
            # anvil has these roots for its genesis, and for its blocks if it is a fork itself.
            # With another root, a wrong proof may be an attack.
            if header.state_root not in (EMPTY_ROOT, ZERO_HASH):
                raise
            reason = error.reason
        log.warning(
            "the node of %s does not prove the state of block %d (eth_getProof: %s): its values"
            " are taken without proof",
            _URL,
            header.number,
            reason,
        )
        return None

    def _opened(self) -> FileIO:
        """Open the file; one that can't be written is only read."""
        try:
            return FileIO(self.path, "a+")
        except OSError:
            pass
        try:
            return FileIO(self.path)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path}: {error.strerror}; set NODERPC_FORK_CACHE to a file that can be"
                " read"
            ) from None

    def _new_lines(self) -> list[bytes]:
        """Return the complete lines of the file that were not read yet."""
        assert self._file is not None
        descriptor = self._file.fileno()
        size = max(0, os.fstat(descriptor).st_size - self._end)
        found = os.pread(descriptor, size, self._end)
        # Another process may be writing the last line.
        *lines, rest = found.split(b"\n")
        self._end += len(found) - len(rest)
        return lines

    def _read_new_lines(self) -> None:
        _ = self.block
        with self._lock:
            self._remember_lines(self._new_lines())

    def _remember_lines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            # Skip a line that its process did not complete: the value is read again.
            with suppress(jsoncodec.NotJSON, UpstreamMismatch, *_MALFORMED):
                self._remember(jsoncodec.decode(line, dict[str, str]))

    def _add(self, found: Mapping[str, str]) -> None:
        """Append a value to the file."""
        with self._lock:
            self._remember(found)
            assert self._file is not None
            try:
                # If the last line is incomplete, as its process was killed, begin a new one.
                is_complete = os.fstat(self._file.fileno()).st_size == self._end
                start = b"" if is_complete else b"\n"
                # In this mode, the writes of several processes are never mixed.
                self._file.write(start + jsoncodec.encode(found) + b"\n")
            except OSError as error:
                log.warning("%s: a value is not kept: %s", self.path, error.strerror or error)

    def _remember(self, line: Mapping[str, str]) -> None:
        """Keep the records of a line: an account with its code, a slot or a block."""
        values = {name: _bytes(text) for name, text in line.items()}
        match values:
            case {"account": address, "rlp": encoded, **code}:
                found = accounts.decoded(encoded)
                if found.storage_root != NO_STORAGE:
                    root, nodes = accounts.forked_storage(address)
                    self._records.update(nodes)
                    encoded = accounts.encoded(replace(found, storage_root=root))
                if "code" in code:
                    self._records[keccak(code["code"])] = code["code"]
                self._records[accounts.forked_account_key(address)] = encoded
            case {"account": address, "slot": slot, "value": value}:
                key = accounts.forked_slot_key(address, slot)
                self._records[key] = rlp.encode(int.from_bytes(value))
            case {"block": number, "hash": block_hash}:
                key = accounts.forked_block_key(int.from_bytes(number))
                self._records[key] = block_hash

    # The node.

    def _read(self, key: bytes) -> dict[str, str]:
        """Return the line of the file for a record's key, read from the node."""
        kind, rest = accounts.forked_key(key)
        try:
            match kind:
                case "account":
                    return self._account(rest)
                case "slot":
                    return self._slot(rest[:20], rest[20:])
            number = hex(int.from_bytes(rest))
            found = self._result(_HashJson | None, "eth_getBlockByNumber", number, False)
            block_hash = _bytes(found.hash, 32) if found else b""
            return {"block": f"0x{rest.hex()}", "hash": f"0x{block_hash.hex()}"}
        except ForwardedCallFailed as error:
            reason = error.text
        except UpstreamUnavailable as error:
            reason = error.reason
        raise UpstreamUnavailable(
            _URL,
            f"the {kind} 0x{rest.hex()} of block {self.block.header.number} is not in"
            f" {self.path} and can't be read: {reason}",
        )

    def _account(self, address: bytes) -> dict[str, str]:
        header = self.block.header
        if self.block.is_proven:
            return self._proven_account(header, address)
        shown = f"0x{address.hex()}"
        code = self._code(header, shown)
        number = hex(header.number)
        nonce = _number(self._result(str, "eth_getTransactionCount", shown, number))
        # The storage's root is not known. An account whose delegation of code (EIP-7702) was
        # removed may have slots, too.
        may_have_slots = code or nonce
        found = Account(
            nonce,
            _number(self._result(str, "eth_getBalance", shown, number), 256),
            accounts.forked_storage(address)[0] if may_have_slots else NO_STORAGE,
            keccak(code),
        )
        return _account_line(address, found, code)

    def _proven_account(self, header: Header, address: bytes) -> dict[str, str]:
        """Read an account with its code; raise ``UpstreamMismatch`` if its proof is wrong."""
        proof = self._proof(header, address, ())
        encoded = _value(header.state_root, address, proof.account_proof)
        found = accounts.decoded(encoded) if encoded else Account()
        shown = Account(
            _number(proof.nonce),
            _number(proof.balance, 256),
            _root(proof.storage_hash, NO_STORAGE),
            _root(proof.code_hash, NO_CODE),
        )
        if shown != found:
            raise _refuted(f"the values of account 0x{address.hex()} differ from their proof")
        code = b""
        if found.code_hash != NO_CODE:
            code = self._code(header, f"0x{address.hex()}")
        if keccak(code) != found.code_hash:
            raise _refuted(f"the code of 0x{address.hex()} has another hash than its account")
        return _account_line(address, found, code)

    def _slot(self, address: bytes, slot: bytes) -> dict[str, str]:
        names = {"account": f"0x{address.hex()}", "slot": f"0x{slot.hex()}"}
        header = self.block.header
        if not self.block.is_proven:
            number = hex(header.number)
            word = _number(self._result(str, "eth_getStorageAt", *names.values(), number), 256)
            return {**names, "value": f"0x{word:064x}"}
        proof = self._proof(header, address, (slot,))
        account = _value(header.state_root, address, proof.account_proof)
        root = accounts.decoded(account).storage_root if account else NO_STORAGE
        if len(proof.storage_proof) != 1:
            raise _refuted(f"one slot was asked for, but {len(proof.storage_proof)} proven")
        encoded = _value(root, slot, proof.storage_proof[0].proof)
        word = int.from_bytes(rlp.Reader(encoded).string("word")) if encoded else 0
        if word != _number(proof.storage_proof[0].value, 256):
            raise _refuted(f"the value of slot {names['slot']} differs from its proof")
        return {**names, "value": f"0x{word:064x}"}

    def _proof(self, header: Header, address: bytes, slots: tuple[bytes, ...]) -> _ProofJson:
        params = f"0x{address.hex()}", [f"0x{slot.hex()}" for slot in slots], hex(header.number)
        found: _ProofJson = self._result(_ProofJson, "eth_getProof", *params)
        return found

    def _code(self, header: Header, address: str) -> bytes:
        return _bytes(self._result(str, "eth_getCode", address, hex(header.number)))

    def _result(self, kind: Any, method: str, *params: Any) -> Any:
        result = self.call(method, jsoncodec.encode(params))
        return result if kind is bytes else self.decoded(result, kind)

    def decoded(self, text: bytes, kind: Any) -> Any:
        """Decode a result of the node; raise :exc:`~flask_noderpc.errors.UpstreamMismatch`."""
        try:
            return jsoncodec.decode(text, kind)
        except jsoncodec.NotJSON as error:
            raise UpstreamMismatch(
                _URL, f"its node gave a result that can't be read: {error}"
            ) from None

    def _from_file(self, line: bytes, kind: Any) -> Any:
        try:
            return jsoncodec.decode(line, kind)
        except jsoncodec.NotJSON as error:
            raise ConfigurationError(
                f"{self.path}: expected values of a forked chain, one in each line: {error};"
                " delete the file to read them again"
            ) from None


_STRIPES = 16
# Errors of decoding a trie's nodes or an account.
_MALFORMED = (rlp.Malformed, ValueError, IndexError, AssertionError)


def _value(root: bytes, key: bytes, nodes: list[str]) -> bytes:
    """Return the value of a key in a trie, which its encoded nodes prove; raise
    ``UpstreamMismatch`` if they don't."""
    known = {keccak(node): node for node in map(_bytes, nodes)}
    # In an empty trie nothing is found without any node: the nodes may be another trie's.
    if not known or root in known:
        with suppress(NodeMissing, *_MALFORMED):
            return find(known.get, root, key)[0]
    raise _refuted(f"the proof of 0x{key.hex()} does not lead to the root 0x{root.hex()}")


def _account_line(address: bytes, found: Account, code: bytes) -> dict[str, str]:
    """Return the line of the file for an account; a missing account is an empty one."""
    encoded = accounts.encoded(found)
    line = {"account": f"0x{address.hex()}", "rlp": f"0x{encoded.hex()}"}
    return {**line, "code": f"0x{code.hex()}"} if code else line


def _refuted(reason: str) -> UpstreamMismatch:
    return UpstreamMismatch(
        _URL,
        f"{reason}; the node gives wrong values, or changed them without a new block, as"
        " anvil_setBalance does: use another node or block",
    )


def _root(text: str, empty: bytes) -> bytes:
    """Return a hash, or ``empty`` for zeros, which some nodes show for a missing account."""
    found = _bytes(text, 32)
    return empty if found == ZERO_HASH else found


def _word(text: str | None, default: bytes) -> bytes:
    return default if text is None else _bytes(text, 32)


_QUANTITY = re.compile("0x([0-9a-fA-F]*)")


def _number(text: str, bits: int = 64) -> int:
    found = _QUANTITY.fullmatch(text)
    number = int(found[1] or "0", 16) if found else -1
    if number < 0 or number >> bits:
        raise UpstreamMismatch(
            _URL, f"expected a number of at most {bits} bits, got {short_repr(text)}"
        )
    return number


def _bytes(text: str, size: int | None = None) -> bytes:
    try:
        found = bytes.fromhex(text[2:]) if text[:2] == "0x" else None
    except ValueError:
        found = None
    if found is None or (size is not None and len(found) != size):
        raise UpstreamMismatch(
            _URL, f"expected hex of {size or 'any number of'} bytes, got {short_repr(text)}"
        )
    return found
