"""Calls as clients write them: who calls whom with what, and what is to be otherwise.

geth: internal/ethapi/transaction_args.go and internal/ethapi/override.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..domain.ethereum import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    AccessListEntry,
    Authorization,
)
from ..domain.evm import PRECOMPILES, AccountOverride, Environment, Overrides
from ..wire.params import ParamField
from . import hexes
from .params import Address, Data, GoParam, Hash, Quantity, mismatch


class Big(GoParam):
    """A number of 256 bits."""

    go_type = "*hexutil.Big"

    def read(self, text: str) -> int:
        """The number."""
        return hexes.read_quantity(text, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArgs:
    """A call; ``None`` is what was not said."""

    sender: bytes | None = None
    to: bytes | None = None
    gas: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    value: int | None = None
    nonce: int | None = None
    data: bytes | None = None
    access_list: tuple[AccessListEntry, ...] | None = None
    chain_id: int | None = None
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[bytes, ...] | None = None
    authorizations: tuple[Authorization, ...] | None = None

    @property
    def type(self) -> int:
        """The least that can say all of it; without fees it is of type 2."""
        if self.authorizations is not None:
            return SET_CODE
        if self.blob_versioned_hashes is not None:
            return BLOB
        if self.gas_price is None:
            return DYNAMIC_FEE
        return LEGACY if self.access_list is None else ACCESS_LIST

    def price_at(self, base_fee: int) -> int:
        """What a unit of gas costs it; nothing where no fee was said."""
        if self.gas_price is not None:
            return self.gas_price
        most, tip = self.max_fee_per_gas, self.max_priority_fee_per_gas or 0
        return min(tip + base_fee, tip if most is None else most)


def _list(value: Any, go_type: str) -> list[Any]:
    if not isinstance(value, list):
        raise mismatch(value, go_type)
    return value


def _object(value: Any, go_type: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise mismatch(value, go_type)
    return value


def _access_list(value: Any) -> tuple[AccessListEntry, ...]:
    entries = (_object(each, "types.AccessTuple") for each in _list(value, "types.AccessList"))
    return tuple(
        AccessListEntry(
            Address().from_json(entry.get("address")),
            tuple(map(Hash().from_json, entry.get("storageKeys") or ())),
        )
        for entry in entries
    )


def _authorizations(value: Any) -> tuple[Authorization, ...]:
    found = (_object(each, "types.SetCodeAuthorization") for each in _list(value, "list"))
    return tuple(
        Authorization(
            chain_id=Big().from_json(each.get("chainId")),
            address=Address().from_json(each.get("address")),
            nonce=Quantity().from_json(each.get("nonce")),
            y_parity=Quantity().from_json(each.get("yParity", each.get("v"))),
            r=Big().from_json(each.get("r")),
            s=Big().from_json(each.get("s")),
        )
        for each in found
    )


def _hashes(value: Any) -> tuple[bytes, ...]:
    return tuple(map(Hash().from_json, _list(value, "[]common.Hash")))


# Member, field, reader.
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


class CallObject(ParamField):
    """A call; members that are not known are ignored."""

    json_type = "object"

    def from_json(self, value: Any) -> CallArgs:
        """The call; raise :exc:`ValueError` with geth's text."""
        members = _object(value, "ethapi.TransactionArgs")
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
        if data is not None and given is not None and data != given:
            raise ValueError(
                "both 'data' and 'input' are set and not equal. Please use 'input' to pass"
                " transaction call data"
            )
        return _checked(CallArgs(**found, data=data if given is None else given))


def _read(read: Any, value: Any, member: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(str(error).replace("Go value", f"Go struct field {member}")) from None


def _checked(args: CallArgs) -> CallArgs:
    most, tip = args.max_fee_per_gas, args.max_priority_fee_per_gas
    if args.gas_price is not None and (most is not None or tip is not None):
        raise ValueError("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    if most is not None and tip is not None and most < tip:
        raise ValueError(f"maxFeePerGas ({most:#x}) < maxPriorityFeePerGas ({tip:#x})")
    if args.blob_versioned_hashes == ():
        raise ValueError("need at least 1 blob for a blob transaction")
    if args.authorizations is not None and args.to is None:
        raise ValueError("set code transaction needs a recipient: 'to' is missing")
    return args


class StateOverride(ParamField):
    """What of the state is to be otherwise, by address."""

    json_type = "object"

    def from_json(self, value: Any) -> Overrides:
        """The overrides; raise :exc:`ValueError` with geth's text."""
        found = {}
        for address, members in _object(value, "override.StateOverride").items():
            own = Address().from_json(address)
            found[own] = _account(own, _object(members, "override.OverrideAccount"))
        _check_moves(found)
        return found


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
        raise ValueError(f"account 0x{address.hex()} has both 'state' and 'stateDiff'")
    return found


def _slots(value: Any) -> dict[bytes, bytes]:
    read = Hash().from_json
    return {read(k): read(v) for k, v in _object(value, "map[common.Hash]common.Hash").items()}


def _check_moves(overrides: Overrides) -> None:
    for address, override in overrides.items():
        target = override.precompile_to
        if target is None:
            continue
        if address not in PRECOMPILES:
            raise ValueError(f"account 0x{address.hex()} is not a precompile")
        if target in overrides:
            raise ValueError(f"account 0x{target.hex()} has already been overridden")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanges:
    """What of a block is to be otherwise; ``None`` is as it is."""

    number: int | None = None
    timestamp: int | None = None
    gas_limit: int | None = None
    coinbase: bytes | None = None
    prev_randao: bytes | None = None
    base_fee: int | None = None
    blob_base_fee: int | None = None

    def applied(self, environment: Environment) -> Environment:
        """An environment with them."""
        names = BlockChanges.__dataclass_fields__
        said = {name: getattr(self, name) for name in names}
        return replace(environment, **{k: v for k, v in said.items() if v is not None})


_BLOCK_MEMBERS = (
    ("number", "number", Big().from_json),
    ("time", "timestamp", Quantity().from_json),
    ("gasLimit", "gas_limit", Quantity().from_json),
    ("feeRecipient", "coinbase", Address().from_json),
    ("prevRandao", "prev_randao", Hash().from_json),
    ("baseFeePerGas", "base_fee", Big().from_json),
    ("blobBaseFee", "blob_base_fee", Big().from_json),
)


class BlockOverride(ParamField):
    """What of the block is to be otherwise."""

    json_type = "object"

    def from_json(self, value: Any) -> BlockChanges:
        """The changes; raise :exc:`ValueError` with geth's text."""
        members = _object(value, "override.BlockOverrides")
        return BlockChanges(
            **{
                field: _read(read, members[name], f"BlockOverrides.{name}")
                for name, field, read in _BLOCK_MEMBERS
                if members.get(name) is not None
            }
        )
