"""Call objects of ``eth_call`` and similar methods, with state and block overrides.

geth: internal/ethapi/transaction_args.go and internal/ethapi/override.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....concurrency import in_turns
from ....protocol.secp256k1eth import to_checksum
from ....wire.params import ParamField
from ...domain.execution import AccountOverride, BlockChanges, CallArgs, Overrides
from ...domain.forks import BPO2
from ...domain.records import AccessListEntry, Authorization
from ..errors import MOVED_TO_ITSELF, MOVED_TOGETHER, EvmError
from . import hex
from .params import Address, Data, GoParam, Hash, MemberNames, Quantity, mismatch


class Big(GoParam):
    """A number of up to 256 bits."""

    go_type = "*hexutil.Big"

    def read(self, text: str) -> int:
        """Return the number."""
        return hex.read_quantity(text, 256)


def _list(value: Any, go_type: str) -> list[Any]:
    if not isinstance(value, list):
        raise mismatch(value, go_type)
    return value


def _object(value: Any, go_type: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise mismatch(value, go_type)
    return value


# Maximum number of elements in a list or an object of one call. An element takes 10 to 70
# microseconds to parse; with gevent, other requests are served meanwhile.
_MAX_ELEMENTS, _MAX_SLOTS = 2_000, 10_000


def _check_count(count: int, what: str, most: int = _MAX_ELEMENTS) -> None:
    if count > most:
        raise ValueError(f"expected at most {most} {what}, got {count}")


_ACCESS = MemberNames("address", "storageKeys")


def _access_list(value: Any) -> tuple[AccessListEntry, ...]:
    given = _list(value, "types.AccessList")
    _check_count(len(given), "addresses in an access list")
    entries = [_ACCESS.of(_object(each, "types.AccessTuple")) for each in given]
    keys = (entry.get("storageKeys") or () for entry in entries)
    _check_count(sum(len(each) for each in keys if isinstance(each, list)), "storage keys")
    return tuple(
        AccessListEntry(
            Address().from_json(entry.get("address")),
            tuple(
                map(Hash().from_json, _list(entry.get("storageKeys") or [], "[]common.Hash"))
            ),
        )
        for entry in in_turns(entries)
    )


_AUTHORIZATION = MemberNames("chainId", "address", "nonce", "yParity", "v", "r", "s")


def _authorizations(value: Any) -> tuple[Authorization, ...]:
    given = _list(value, "list")
    _check_count(len(given), "authorizations")
    found = (_AUTHORIZATION.of(_object(each, "types.SetCodeAuthorization")) for each in given)
    return tuple(
        Authorization(
            chain_id=Big().from_json(each.get("chainId")),
            address=Address().from_json(each.get("address")),
            nonce=Quantity().from_json(each.get("nonce")),
            y_parity=Quantity().from_json(each.get("yParity", each.get("v"))),
            r=_padded(each.get("r")),
            s=_padded(each.get("s")),
        )
        for each in in_turns(found)
    )


def _padded(value: Any) -> int:
    """Return a number that may begin with zeros: hardhat pads r and s to 32 bytes."""
    if isinstance(value, str) and value.startswith("0x0"):
        value = "0x" + (value[2:].lstrip("0") or "0")
    number: int = Big().from_json(value)
    return number


def _hashes(value: Any) -> tuple[bytes, ...]:
    given = _list(value, "[]common.Hash")
    _check_count(len(given), "hashes of blobs")
    return tuple(map(Hash().from_json, given))


# Member of the JSON object, field of CallArgs, parser.
_MEMBERS = (
    ("from", "sender", Address().from_json),
    ("to", "to", Address().from_json),
    ("gas", "gas", Quantity().from_json),
    ("gasPrice", "gas_price", Big().from_json),
    ("maxFeePerGas", "max_fee_per_gas", Big().from_json),
    ("maxPriorityFeePerGas", "max_priority_fee_per_gas", Big().from_json),
    ("value", "value", Big().from_json),
    ("nonce", "nonce", Quantity().from_json),
    ("accessList", "access_list", _access_list),
    ("chainId", "chain_id", Big().from_json),
    ("maxFeePerBlobGas", "max_fee_per_blob_gas", Big().from_json),
    ("blobVersionedHashes", "blob_versioned_hashes", _hashes),
    ("authorizationList", "authorizations", _authorizations),
)


_CALL = MemberNames(*(name for name, _, _ in _MEMBERS), "data", "input")


class CallObject(ParamField):
    """The call object of ``eth_call``; unknown members are ignored."""

    json_type = "object"

    def from_json(self, value: Any) -> CallArgs:
        """Return the call; raise :exc:`ValueError` with geth's text."""
        members = _CALL.of(_object(value, "ethapi.TransactionArgs"))
        found = {}
        for name, field, read in _MEMBERS:
            if members.get(name) is not None:
                found[field] = _read(read, members[name], f"TransactionArgs.{name}")
        data, given = (
            None
            if members.get(name) is None
            else _read(Data().from_json, members[name], f"TransactionArgs.{name}")
            for name in ("data", "input")
        )
        return _checked(CallArgs(**found, data=self._data(data, given)))

    def _data(self, data: bytes | None, given: bytes | None) -> bytes | None:
        # geth: "input", the newer name, has priority over "data".
        return data if given is None else given


class TransactionObject(CallObject):
    """A transaction to fill in: if it has both ``data`` and ``input``, they must be equal."""

    def _data(self, data: bytes | None, given: bytes | None) -> bytes | None:
        if data is not None and given is not None and data != given:
            raise EvmError(
                'both "data" and "input" are set and not equal. Please use "input" to pass'
                " transaction call data"
            )
        return super()._data(data, given)


def _read(read: Any, value: Any, member: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(str(error).replace("Go value", f"Go struct field {member}")) from None


def _checked(args: CallArgs) -> CallArgs:
    max_fee, tip = args.max_fee_per_gas, args.max_priority_fee_per_gas
    if args.gas_price is not None and (max_fee is not None or tip is not None):
        raise ValueError("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    if max_fee is not None and tip is not None and max_fee < tip:
        raise ValueError(f"maxFeePerGas ({max_fee:#x}) < maxPriorityFeePerGas ({tip:#x})")
    if args.blob_versioned_hashes == ():
        raise ValueError("need at least 1 blob for a blob transaction")
    if args.authorizations is not None and args.to is None:
        raise ValueError("set code transaction needs a recipient: 'to' is missing")
    return args


class StateOverride(ParamField):
    """State overrides by address."""

    json_type = "object"

    def from_json(self, value: Any) -> Overrides:
        """Return the overrides; raise :exc:`ValueError` with geth's text."""
        found = {}
        given = _object(value, "override.StateOverride")
        _check_count(len(given), "accounts of overrides")
        slots = (
            each.get(name)
            for each in given.values()
            if isinstance(each, dict)
            for name in _SLOTS
        )
        count = sum(len(each) for each in slots if isinstance(each, dict))
        _check_count(count, "slots of overrides", _MAX_SLOTS)
        for address, members in in_turns(given.items()):
            account_address = Address().from_json(address)
            known = _ACCOUNT.of(_object(members, "override.OverrideAccount"))
            found[account_address] = _account(account_address, known)
        _check_moves(found)
        return found


_SLOTS = "state", "stateDiff"
_ACCOUNT = MemberNames("nonce", "balance", "code", *_SLOTS, "movePrecompileToAddress")


def _account(address: bytes, members: Mapping[str, Any]) -> AccountOverride:
    def read(name: str, how: Any) -> Any:
        value = members.get(name)
        return None if value is None else _read(how, value, f"OverrideAccount.{name}")

    found = AccountOverride(
        nonce=read("nonce", Quantity().from_json),
        balance=read("balance", Big().from_json),
        code=read("code", Data().from_json),
        state=read("state", _slots),
        state_diff=read("stateDiff", _slots),
        precompile_to=read("movePrecompileToAddress", Address().from_json),
    )
    if found.state is not None and found.state_diff is not None:
        raise EvmError(f"account {to_checksum(address)} has both 'state' and 'stateDiff'")
    return found


def _slots(value: Any) -> dict[bytes, bytes]:
    read = Hash().from_json
    given = _object(value, "map[common.Hash]common.Hash").items()
    return {read(key): read(slot) for key, slot in in_turns(given)}


def _check_moves(overrides: Overrides) -> None:
    targets = set[bytes]()
    for address, override in overrides.items():
        target = override.precompile_to
        if target is None:
            continue
        shown = to_checksum(target)
        # geth: internal/ethapi/override; these errors have the default code.
        if address not in BPO2.addresses:
            raise EvmError(f"account {to_checksum(address)} is not a precompile")
        if target == address:
            text = f"account {shown} has been moved to itself"
            raise EvmError(text, code=MOVED_TO_ITSELF)
        if target in targets:
            text = f"account {shown} has already been overridden by a precompile"
            raise EvmError(text, code=MOVED_TOGETHER)
        if target in overrides:
            raise EvmError(f"account {shown} has already been overridden")
        targets.add(target)


_BLOCK_MEMBERS = (
    ("number", "number", Big().from_json),
    ("time", "timestamp", Quantity().from_json),
    ("gasLimit", "gas_limit", Quantity().from_json),
    ("feeRecipient", "coinbase", Address().from_json),
    ("prevRandao", "prev_randao", Hash().from_json),
    ("baseFeePerGas", "base_fee", Big().from_json),
    ("blobBaseFee", "blob_base_fee", Big().from_json),
)


_BLOCK = MemberNames(*(name for name, _, _ in _BLOCK_MEMBERS))


class BlockOverride(ParamField):
    """Overrides of a block's header fields."""

    json_type = "object"

    def from_json(self, value: Any) -> BlockChanges:
        """Return the changes; raise :exc:`ValueError` with geth's text."""
        members = _BLOCK.of(_object(value, "override.BlockOverrides"))
        return BlockChanges(
            **{
                field: _read(read, members[name], f"BlockOverrides.{name}")
                for name, field, read in _BLOCK_MEMBERS
                if members.get(name) is not None
            }
        )
