"""Options of the ``debug_trace`` methods: tracer, its options, timeout, overrides.

geth: eth/tracers/api.go, TraceConfig and TraceCallConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .... import jsoncodec
from ....domain.time import SECOND, from_go_duration
from ....installation import install_hint
from ....wire.params import ParamField
from ...domain.execution import BlockChanges, Overrides
from ...engine.tracers import javascript
from ...engine.tracers.base import TracerConfig
from ...engine.tracers.call_tracer import CallTracer, FlatCalls
from ...engine.tracers.erc7562 import DEFAULT_IGNORED, Erc7562
from ...engine.tracers.javascript import JavaScript
from ...engine.tracers.others import FourByte, Mux, Noop
from ...engine.tracers.prestate import Prestate
from ...engine.tracers.struct_logger import StructLogger
from ..errors import EvmError
from .call_objects import BlockOverride, StateOverride
from .params import Index, MemberNames, Quantity, mismatch


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceConfig:
    """Options of a trace; the tracer's name and the timeout are checked when they are used."""

    logger: TracerConfig = field(default_factory=StructLogger)
    """Tracer to use if ``tracer`` is omitted."""
    tracer: str | None = None
    tracer_config: Any = None
    timeout: str | None = None
    overrides: Overrides = field(default_factory=dict)
    block_overrides: BlockChanges = field(default_factory=BlockChanges)
    tx_index: int | None = None

    @property
    def configured_tracer(self) -> TracerConfig:
        """The tracer with its options; raise :exc:`.errors.EvmError` for an unknown tracer."""
        if self.tracer is None:
            return self.logger
        return _tracer_named(self.tracer, self.tracer_config)

    @property
    def seconds(self) -> float | None:
        """The timeout in seconds, ``None`` for the default; raise :exc:`.errors.EvmError` for
        an invalid duration."""
        try:
            return None if self.timeout is None else from_go_duration(self.timeout) / SECOND
        except ValueError as error:
            raise EvmError(str(error)) from None


_SWITCHES = "disableStack", "disableStorage", "enableMemory", "enableReturnData"
_OPTIONS = *_SWITCHES, "limit", "tracer", "tracerConfig", "timeout"
_OF_ANY = MemberNames(*_OPTIONS)
_OF_CALL = MemberNames(*_OPTIONS, "stateOverrides", "blockOverrides", "txIndex")


class Config(ParamField):
    """The options of a trace; unknown members are ignored."""

    json_type = "object"

    def from_json(self, value: Any) -> TraceConfig:
        """Return the options; raise :exc:`ValueError` with geth's text."""
        return TraceConfig(**_options(_known(_OF_ANY, value, "tracers.TraceConfig")))


class CallConfig(ParamField):
    """Options of a call's trace, with overrides of state and block."""

    json_type = "object"

    def from_json(self, value: Any) -> TraceConfig:
        """Return the options; raise :exc:`ValueError` with geth's text."""
        value = _known(_OF_CALL, value, "tracers.TraceCallConfig")
        found = _options(value)
        for name, member, kind in (
            ("stateOverrides", "overrides", StateOverride()),
            ("blockOverrides", "block_overrides", BlockOverride()),
            ("txIndex", "tx_index", Index()),
        ):
            if value.get(name) is not None:
                found[member] = kind.from_json(value[name])
        return TraceConfig(**found)


def _known(members: MemberNames, value: Any, go_type: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise mismatch(value, go_type)
    return members.of(value)


def _options(value: Mapping[str, Any]) -> dict[str, Any]:
    def member(name: str, kind: type, go_name: str) -> Any:
        return _typed(value, name, kind, go_name, "TraceConfig")

    return {
        "logger": StructLogger(
            stack=not member("disableStack", bool, "bool"),
            storage=not member("disableStorage", bool, "bool"),
            memory=bool(member("enableMemory", bool, "bool")),
            return_data=bool(member("enableReturnData", bool, "bool")),
            limit=member("limit", int, "int") or 0,
        ),
        "tracer": member("tracer", str, "string"),
        "tracer_config": value.get("tracerConfig"),
        "timeout": member("timeout", str, "string"),
    }


def _typed(members: Mapping[str, Any], name: str, kind: type, go_name: str, of: str) -> Any:
    value = members.get(name)
    is_int64 = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    if value is None or (type(value) is kind and (kind is not int or is_int64)):
        return value
    text = str(mismatch(value, go_name))
    if kind is int:
        text = text.replace("number", f"number {value}")
    raise ValueError(_of_field(text, f"{of}.{name}"))


def _of_field(text: str, name: str) -> str:
    """Return an error about a value as an error about a member of an object."""
    return text.replace("Go value", f"Go struct field {name}")


def _tracer_named(name: str, config: Any) -> TracerConfig:
    make = _TRACERS.get(name)
    if make is None:
        # A name alone can't be the code of a tracer.
        is_code, has_engine = not name.isidentifier(), javascript.is_available()
        if is_code and has_engine:
            options = "{}" if config is None else jsoncodec.encode(config).decode()
            return JavaScript(name, options)
        known = ", ".join(_TRACERS)
        hint = f"; tracers in JavaScript need the extra js: {install_hint('js')}"
        raise EvmError(
            f"tracer: expected one of {known}, got {name[:100]!r}{'' if has_engine else hint}"
        )
    if config is not None and not isinstance(config, dict):
        raise EvmError(str(mismatch(config, "native." + name + "Config")))
    return make(config or {})


def _switches(name: str, config: Mapping[str, Any], *members: str) -> tuple[bool, ...]:
    config = MemberNames(*members).of(config)
    try:
        found = [_typed(config, member, bool, "bool", f"{name}Config") for member in members]
    except ValueError as error:
        raise EvmError(str(error)) from None
    return tuple(map(bool, found))


def _call_tracer(config: Mapping[str, Any]) -> TracerConfig:
    return CallTracer(*_switches("callTracer", config, "onlyTopCall", "withLog"))


def _flat_calls(config: Mapping[str, Any]) -> TracerConfig:
    names = "includePrecompiles", "convertParityErrors"
    return FlatCalls(*_switches("flatCallTracer", config, *names))


def _prestate(config: Mapping[str, Any]) -> TracerConfig:
    names = "diffMode", "disableCode", "disableStorage", "includeEmpty"
    diff, no_code, no_storage, empty = _switches("prestateTracer", config, *names)
    if diff and empty:
        raise EvmError("cannot use diffMode with includeEmpty")
    return Prestate(diff, not no_code, not no_storage, empty)


def _mux(config: Mapping[str, Any]) -> TracerConfig:
    if "muxTracer" in config:
        raise EvmError("muxTracer can't contain itself")
    tracers = {name: _tracer_named(name, options) for name, options in config.items()}
    codes = sum(isinstance(each, JavaScript) for each in tracers.values())
    if codes > javascript.MAX_TRACERS:
        raise EvmError(
            f"tracerConfig: expected at most {javascript.MAX_TRACERS} tracers in JavaScript,"
            f" got {codes}; trace again with the others"
        )
    return Mux(tracers)


def _erc7562(config: Mapping[str, Any]) -> TracerConfig:
    config = MemberNames("stackTopItemsSize", "ignoredOpcodes", "withLog").of(config)
    of = "erc7562TracerConfig"
    try:
        size = _typed(config, "stackTopItemsSize", int, "int", of)
        given = _typed(config, "ignoredOpcodes", list, "[]hexutil.Uint64", of)
        with_log = _typed(config, "withLog", bool, "bool", of)
        opcodes = map(Quantity().from_json, given or ())
        # The last byte of a number counts, as in geth.
        ignored = frozenset(opcode & 0xFF for opcode in opcodes)
    except ValueError as error:
        raise EvmError(_of_field(str(error), f"{of}.ignoredOpcodes")) from None
    # No more than the topmost word is ever read, so other sizes make no difference.
    if size is not None and size < 0:
        raise EvmError(f"stackTopItemsSize: expected a number of at least 0, got {size}")
    return Erc7562(DEFAULT_IGNORED if given is None else ignored, bool(with_log))


_TRACERS: dict[str, Callable[[Mapping[str, Any]], TracerConfig]] = {
    "callTracer": _call_tracer,
    "flatCallTracer": _flat_calls,
    "prestateTracer": _prestate,
    "4byteTracer": lambda _: FourByte(),
    "noopTracer": lambda _: Noop(),
    "muxTracer": _mux,
    "erc7562Tracer": _erc7562,
}
