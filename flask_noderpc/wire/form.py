"""The form of a node's JSON: its differences from the JSON that the schemas encode from the
same values.

Go distinguishes null, empty and absent members, and forks of CometBFT add or omit members.
Domain values don't record these differences. A decoded result stores them in ``form``, beside
its values, and the form is applied when the same dialect encodes the result.

A form never changes a value: clients decode the same values with and without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from .. import jsoncodec
from ..domain.abci import BlockResults, ExecTxResult
from ..domain.responses import (
    ResultBlock,
    ResultBlockchainInfo,
    ResultBlockSearch,
    ResultCommit,
    ResultHeader,
    ResultTx,
    ResultTxSearch,
)
from .fields import NOT_DECODED, Json

log = logging.getLogger("flask_noderpc.wire")

Patch = dict[str, Any]
"""Differences of a JSON value: ``{"value": …}`` replaces it, ``{"from": name}`` copies the
value of another member, ``{"items": {position: patch}}`` changes a list, and ``{"members":
{name: patch}}`` changes an object, with all its names in ``"order"`` if the schema has other
names."""

Names = frozenset[str]
"""Names of all members of a result's schemas."""

_TXS = "txs_results"
# Maximum size of a form in bytes; and the size that the patch of a result may always have. A
# larger patch must not be longer than the result's JSON.
_MAX_BYTES, _FEW_BYTES = 16_384, 1_024
# Members that a store takes from the header, so that differences in them are not recorded.
_DERIVED = ("block_id", "app_hash")


def difference(own: Json, found: Json, known: Names) -> Patch | None:
    """Return the patch that turns ``own`` into ``found``, or ``None`` if both are the same
    JSON.

    ``known`` are the names of the schemas' members. The patch omits other members if a client
    could confuse them with a schema's member.
    """
    if own == found and type(own) is type(found):
        return None
    own, found = jsoncodec.opened(own), jsoncodec.opened(found)
    if isinstance(own, dict) and isinstance(found, dict):
        found = _without_aliases(found, own, known)
        renamed = {name: own[name] for name in own.keys() - found.keys()}
        changed = {
            name: difference(own[name], value, known)
            if name in own
            else _added(name, value, renamed, known)
            for name, value in found.items()
        }
        members = {name: patch for name, patch in changed.items() if patch is not None}
        # A proxy may sort the members, so their order alone is not a difference.
        if own.keys() != found.keys():
            return {"members": members, "order": list(found)}
        return {"members": members} if members else None
    if isinstance(own, list) and isinstance(found, list) and len(own) == len(found):
        patches = [difference(*pair, known) for pair in zip(own, found, strict=True)]
        items = {str(i): patch for i, patch in enumerate(patches) if patch is not None}
        return {"items": items} if items else None
    same = type(own) is type(found) and own == found
    return None if same else {"value": _cleaned(found, known)}


def _added(name: str, value: Json, renamed: dict[str, Json], known: Names) -> Patch:
    for other, each in sorted(renamed.items()):
        if value and value == each:
            return {"from": other}
    return {"value": _cleaned(value, known) if name in known else value}


def _cleaned(value: Json, known: Names) -> Json:
    """Return the JSON of a schema's member without aliases, at any depth."""
    value = jsoncodec.opened(value)
    if isinstance(value, list):
        return [_cleaned(each, known) for each in value]
    if not isinstance(value, dict):
        return value
    rest = _without_aliases(value, (), known)
    return {name: _cleaned(each, known) for name, each in rest.items()}


def _without_aliases(
    found: dict[str, Json], own: Collection[str], known: Names
) -> dict[str, Json]:
    """Return an object without its aliases: members that no schema has, but whose names Go's
    decoders would match with a schema's member, such as ``Height``, or ``gasUsed`` in
    protobuf's JSON."""
    if found.keys() <= known:
        return found
    folded = {*map(_folded, own), *_folded_names(known)}
    return {
        name: value
        for name, value in found.items()
        if name in own or name in known or _folded(name) not in folded
    }


def _folded(name: str) -> str:
    return name.casefold().replace("_", "")


@cache
def _folded_names(known: Names) -> Names:
    return frozenset(map(_folded, known))


def patched(own: Json, patch: Patch) -> Json:
    """Return a JSON value with a patch applied. A value of another shape than the patch
    expects, such as a list instead of an object, is returned unchanged."""
    if "value" in patch:
        return patch["value"]
    own = jsoncodec.opened(own)
    if "items" in patch and isinstance(own, list):
        for position, each in patch["items"].items():
            if int(position) < len(own):
                own[int(position)] = patched(own[int(position)], each)
    elif "members" in patch and isinstance(own, dict):
        members = patch["members"]
        names = patch.get("order", own)
        return {
            name: _patched_member(own, name, members[name]) if name in members else own[name]
            for name in names
            if name in members or name in own
        }
    return own


def _patched_member(own: dict[str, Json], name: str, patch: Patch) -> Json:
    return own.get(patch["from"]) if "from" in patch else patched(own.get(name), patch)


# Forms of decoded results.


def has_form(result: type) -> bool:
    """Return True if decoded results of a class keep their form."""
    return result in _FORM_SETTERS


def attach_form(
    result: Any,
    dialect: str,
    own: Json,
    found: Json,
    load: Callable[[Json], Any],
    known: Names,
) -> Any:
    """Return a result that was decoded from the JSON ``found``, with the form of that JSON.

    ``own`` is the JSON that the dialect encodes from the result, and ``known`` are the names
    of the members that the dialect loads.
    """
    try:
        derived = {name: own[name] for name in _DERIVED if name in own and found.get(name)}
        found = {**found, **derived}
        # Record a null or missing app hash in the patch, as a store takes the app hash from the
        # header.
        shown = {**own, "app_hash": 0} if own.get("app_hash", "") is None else own
        patch = None if shown == found else difference(shown, found, known)
        if patch is None or load(own) != result:
            return result
        if len(jsoncodec.encode(patch)) > max(_FEW_BYTES, len(jsoncodec.encode(own))):
            _log_too_large(dialect)
            return result
        return _FORM_SETTERS[type(result)](result, dialect, patch)
    except (RecursionError, OverflowError, *NOT_DECODED):
        # Callers of ``Dialect.load`` may pass objects that JSON text can't represent.
        return result


def _block_results(result: BlockResults, dialect: str, patch: Patch) -> BlockResults:
    txs = _inner(patch, _TXS).pop("items", {})
    found = tuple(
        _tx_result(each, dialect, txs.get(str(position)))
        for position, each in enumerate(result.tx_results)
    )
    if not _inner(patch, _TXS):
        patch.get("members", {}).pop(_TXS, None)
    own = _packed(dialect, patch) if any(patch.values()) else b""
    return replace(result, tx_results=found if txs else result.tx_results, form=own)


def _inner(patch: Patch, name: str) -> Patch:
    found: Patch = patch.get("members", {}).get(name, {})
    return found


def _tx_result(result: ExecTxResult, dialect: str, patch: Patch | None) -> ExecTxResult:
    return replace(result, form=_packed(dialect, patch)) if patch else result


def _block(result: ResultBlock, dialect: str, patch: Patch) -> ResultBlock:
    if result.block is None:
        return result
    return replace(result, block=replace(result.block, form=_packed(dialect, patch)))


def _tx(result: ResultTx, dialect: str, patch: Patch) -> ResultTx:
    own = _inner(patch, "tx_result")
    return replace(result, tx_result=_tx_result(result.tx_result, dialect, own))


def _packed(dialect: str, patch: Patch) -> bytes:
    form = jsoncodec.encode([dialect, patch])
    if len(form) <= _MAX_BYTES:
        return form
    _log_too_large(dialect)
    return b""


@cache
def _log_too_large(dialect: str) -> None:
    """Log the warning once per process, as it may apply to every block."""
    log.warning(
        "a node of the dialect %s adds members to its results that exceed the limit (%d bytes,"
        " or the size of the result): such results are served without them",
        dialect,
        _MAX_BYTES,
    )


_FORM_SETTERS: dict[type, Callable[[Any, str, Patch], Any]] = {
    BlockResults: _block_results,
    ResultBlock: _block,
    ResultTx: _tx,
}


def encode_with_form(result: Any, dialect: str, dump: Callable[[Any], Json]) -> Json:
    """Return the JSON of a result in the form of the node that it came from.

    If the form is damaged, return the output of ``dump`` without it.
    """
    own = dump(result)
    try:
        for path, form, names in _FORMS.get(type(result), _no_forms)(result):
            if form:
                dialect_of_form, patch = jsoncodec.decode(form)
                for name in names:
                    patch = _inner(patch, name)
                own = _at(own, path, patch) if dialect_of_form == dialect else own
    except (RecursionError, LookupError, *NOT_DECODED):
        return dump(result)
    return own


def _at(own: Json, path: tuple[str | int, ...], patch: Patch) -> Json:
    if not path:
        return patched(own, patch)
    own[path[0]] = _at(own[path[0]], path[1:], patch)
    return own


_Forms = Iterator[tuple[tuple[str | int, ...], bytes, tuple[str, ...]]]
"""Paths in a result's JSON, each with the form that contains the patch for this path, and the
names of the members that lead to the patch inside the form."""

_WHOLE, _HEADER = (), ("block", "header")


def _no_forms(result: object) -> _Forms:
    return iter(())


def _forms_of_results(result: BlockResults) -> _Forms:
    for position, each in enumerate(result.tx_results):
        if each.form:
            yield (_TXS, position), each.form, _WHOLE
    yield (), result.form, _WHOLE


def _forms_of_block(result: ResultBlock) -> _Forms:
    yield (), result.block.form if result.block else b"", _WHOLE


def _forms_of_blocks(result: ResultBlockSearch) -> _Forms:
    for position, each in enumerate(result.blocks):
        yield ("blocks", position), each.block.form if each.block else b"", _WHOLE


def _forms_of_header(result: ResultHeader) -> _Forms:
    yield ("header",), result.form, _HEADER


def _forms_of_commit(result: ResultCommit) -> _Forms:
    yield ("signed_header", "header"), result.signed_header.form, _HEADER


def _forms_of_metas(result: ResultBlockchainInfo) -> _Forms:
    for position, each in enumerate(result.block_metas):
        yield ("block_metas", position, "header"), each.form, _HEADER


def _forms_of_tx(result: ResultTx) -> _Forms:
    yield ("tx_result",), result.tx_result.form, _WHOLE


def _forms_of_txs(result: ResultTxSearch) -> _Forms:
    for position, each in enumerate(result.txs):
        yield ("txs", position, "tx_result"), each.tx_result.form, _WHOLE


_FORMS: dict[type, Callable[[Any], _Forms]] = {
    BlockResults: _forms_of_results,
    ResultBlock: _forms_of_block,
    ResultBlockSearch: _forms_of_blocks,
    ResultBlockchainInfo: _forms_of_metas,
    ResultCommit: _forms_of_commit,
    ResultHeader: _forms_of_header,
    ResultTx: _forms_of_tx,
    ResultTxSearch: _forms_of_txs,
}
